"""Connecting asks once whether a language model may read what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.errors import InputError
from tests.cli.calling import call, call_json
from tests.hosts.machine import Machine

QUESTION = "May the librarian read"


@pytest.fixture(autouse=True)
def claude(machine: Machine) -> Path:
    """Return Claude Code's program, which is not run here."""
    program = machine.home / "bin" / "claude"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a person be asked."""
    monkeypatch.setattr("perdure.hosts.connect.cli.is_asked", lambda: True)


def setting() -> tuple[bool, str]:
    found = call_json("config", "get", "librarian")
    return found["value"], found["from"]


def test_without_a_terminal_it_is_off_and_nothing_is_asked(machine: Machine) -> None:
    assert QUESTION not in call("connect", "claude-code").output
    assert setting() == (False, "default")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("yes", [True, False])
def test_on_a_terminal_it_asks_once_and_keeps_the_answer(machine: Machine, yes: bool) -> None:
    told = call("connect", "claude-code", stdin=f"n\n{'y' if yes else 'n'}\n")
    for word in ("claude -p", "against your plan", "may be billed", "tokens a turn", QUESTION):
        assert word in told.stderr, word
    assert setting()[0] is yes
    assert setting()[1] != "default"
    assert QUESTION not in call("connect", "claude-code", stdin="n\n").output
    call("disconnect", "claude-code")
    assert QUESTION not in call("connect", "claude-code", stdin="n\n").output


@pytest.mark.usefixtures("terminal")
def test_a_host_without_a_model_that_may_be_asked_is_not_asked_about(
    machine: Machine, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert QUESTION not in call("connect", "codex", stdin="n\n").output
    claude.unlink()
    assert QUESTION not in call("connect", "claude-code", stdin="n\n").output
    monkeypatch.setenv("PERDURE_LLM_ENDPOINT", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("PERDURE_LLM_MODEL", "small")
    told = call("connect", "codex", stdin="n\ny\n").stderr
    assert "http://127.0.0.1:9/v1" in told
    assert setting()[0] is True


def test_scripts_answer_by_an_option(machine: Machine) -> None:
    assert "would be on" in call("connect", "claude-code", "--librarian", "--dry-run").stdout
    assert setting() == (False, "default")
    assert "librarian is on" in call_json("connect", "claude-code", "--librarian")["notes"][-1]
    assert setting()[0] is True
    call("connect", "claude-code", "--no-librarian")
    assert setting()[0] is False
    with pytest.raises(InputError, match="llm_endpoint"):
        call("connect", "codex", "--librarian")
    with pytest.raises(InputError, match="specify the host"):
        call("connect", "--librarian")
