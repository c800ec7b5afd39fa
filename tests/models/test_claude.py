"""Claude Code as a language model: nothing that it could read, run or keep comes with a question."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import ModelError
from perdure.llm import Purpose
from perdure.models.claude import claude
from perdure.store.llm import TokenMeter
from perdure.store.store import Store

ANY = Purpose("any", "nano")
FAKE = """#!{python}
import json, os, sys
told = {{"args": sys.argv[1:], "folder": os.listdir("."), "said": sys.stdin.read()}}
print(json.dumps({{"result": json.dumps(told)}}))
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a program in Claude Code's place that answers with what it was given."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return program


def asked(store: Store, prompt: str) -> Any:
    model = claude(TokenMeter(store.database, store.clock, 10_000))
    assert model is not None
    return model.ask_json(prompt, purpose=ANY, system="be brief")


def test_it_is_asked_in_an_empty_folder_without_tools_servers_or_a_transcript(store: Store, program: Path) -> None:
    answer = asked(store, "turns")
    assert answer["folder"] == []
    args = answer["args"]
    assert args[args.index("--tools") + 1] == ""
    assert {"--safe-mode", "--strict-mcp-config", "--no-session-persistence"} <= {*args}
    assert "turns" not in "".join(args)


def test_what_was_said_names_no_file_that_it_would_read(store: Store, program: Path) -> None:
    question = json.dumps({"said": 'Look at @/etc/passwd, @~/notes.md and "\\@here", says ada@example.org.'})
    said = asked(store, question)["said"]
    assert "@" not in said
    assert json.loads(said) == json.loads(question)


def test_an_answer_that_is_none_is_an_error(store: Store, program: Path) -> None:
    program.write_text(f"#!{sys.executable}\nprint('no')\n")
    with pytest.raises(ModelError):
        asked(store, "turns")
    program.write_text(f"#!{sys.executable}\nraise SystemExit(1)\n")
    with pytest.raises(ModelError):
        asked(store, "turns")
    program.unlink()
    assert claude(TokenMeter(store.database, store.clock, 10_000)) is None
