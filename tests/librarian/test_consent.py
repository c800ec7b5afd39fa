"""A yes is asked for once, and a no holds at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perdure.api import consent
from perdure.api.memory import Memory
from perdure.clock import SystemClock
from perdure.hooks.types import TurnContext
from tests.kit import OpenMemory

SAID = "The stall needs two people on Sundays."


pytestmark = pytest.mark.usefixtures("settings_file")


def nothing(system: str, prompt: str, schema: Mapping[str, Any]) -> str:
    return '{"operations": []}'


def say(memory: Memory, text: str = SAID) -> None:
    memory.turns.after([{"role": "user", "content": text}], True, TurnContext(session_id="s", host="library"))
    assert memory.settle()


def test_a_no_holds_at_once_in_a_process_that_was_told_yes(home: Path, open_memory: OpenMemory) -> None:
    consent.keep(home, True)
    memory = open_memory(embedder="none", watch=False, timers=False, clock=SystemClock(), llm=nothing)
    say(memory)
    assert memory.admin.librarian()["waiting"] == 1
    consent.keep(home, False)
    say(memory, "The stall needs three people on Mondays.")
    assert memory.admin.librarian()["waiting"] == 0
    assert memory.admin.librarian(run=True)["did"] == "off"
    assert memory.admin.run_job("librarian") == "off"


def test_a_yes_holds_after_a_no_although_the_environment_says_yes(
    home: Path, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_LIBRARIAN", "true")
    memory = open_memory(embedder="none", watch=False, timers=False, clock=SystemClock(), llm=nothing)
    consent.keep(home, False)
    consent.keep(home, True)
    say(memory)
    assert memory.admin.librarian()["waiting"] == 1
    consent.keep(home, True)
    assert memory.admin.librarian()["waiting"] == 1


def test_a_program_may_say_yes_for_itself(home: Path, open_memory: OpenMemory) -> None:
    consent.keep(home, False)
    memory = open_memory(embedder="none", watch=False, timers=False, clock=SystemClock(), llm=nothing, librarian=True)
    say(memory)
    assert memory.admin.librarian(run=True)["did"] == "nothing"
    assert memory.admin.librarian()["waiting"] == 0


PASSING = """
import os, sys
from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext
memory = Memory.open(sys.argv[1], embedder="none", guest=True, librarian=True, timers=False, llm=lambda *given: "")
said = [{"role": "user", "content": "The stall needs two people on Sundays."}]
memory.turns.after(said, True, TurnContext(session_id="s", host="library"))
os._exit(0)
"""


def test_what_a_process_takes_in_that_ends_with_its_answer_waits_too(home: Path, open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="none", watch=False, timers=False)
    subprocess.run([sys.executable, "-c", PASSING, str(home)], check=True)
    assert memory.admin.librarian()["waiting"] == 1


OFF = """
import sys, time
from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext
def ask(system, prompt, schema):
    raise SystemExit("asked")
with Memory.open(sys.argv[1], embedder="none", watch=False, llm=ask) as memory:
    for number in range(21):
        said = [{"role": "user", "content": f"The stall needs {number} people on Sundays."}]
        context = TurnContext(session_id="s", host="claude-code" if number % 2 else "library")
        memory.turns.before("How many people does the stall need?", context)
        memory.turns.after(said, True, context)
    assert memory.settle()
    memory.turns.session_end(context)
    assert memory.settle()
    time.sleep(1)
print([name for name in sys.modules if "librarian" in name or name.startswith("perdure.models")])
"""


def test_off_a_turn_imports_nothing_of_it_and_starts_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, ran = tmp_path / "bin" / "claude", tmp_path / "ran"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho > {ran}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    done = subprocess.run(
        [sys.executable, "-c", OFF, str(tmp_path / "home")], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
    assert not ran.exists()
