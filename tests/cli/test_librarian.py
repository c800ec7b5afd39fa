"""`perdure librarian`: what a person is told before a language model reads what they said, and what they answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.errors import SettingsError
from perdure.hooks.types import TurnContext
from tests.cli.calling import call, call_json

pytestmark = pytest.mark.usefixtures("settings_file")


def test_it_says_what_goes_where_and_what_it_costs(home: Path) -> None:
    told = call("librarian", "on").stdout
    for word in ("claude -p", "llm_endpoint is not set", "against your plan", "billed", "a turn", "daily_tokens"):
        assert word in told, word
    assert call("librarian", "status", "--json").json["librarian"] is True


def test_it_says_how_many_tokens_a_day_are_used_at_the_present_rate(home: Path) -> None:
    with Memory.open(home) as memory:
        for number in range(30):
            memory.turns.before(f"Which stall is number {number}?", TurnContext(session_id=str(number % 3), host="a"))
        assert memory.settle()
    assert "about 24,000 tokens a day" in call("librarian", "on").stdout


def test_a_no_is_kept_too(home: Path, settings_file: Path) -> None:
    call("librarian", "on")
    assert "librarian = true" in settings_file.read_text()
    call("librarian", "off")
    assert "librarian = false" in settings_file.read_text()
    assert call("librarian", "status", "--json").json["librarian"] is False


def test_while_it_is_off_nothing_is_read_even_on_request(home: Path, tmp_path: Path) -> None:
    said = {"host": "claude-code", "session": "s", "scopes": ["user"], "at": 1.0, "said": "The stall needs two people."}
    with Memory.open(home, librarian=True, timers=False) as memory:
        memory._engine.store.database.apply(lambda c: c.execute(
            "INSERT INTO meta (key, value) VALUES ('librarian_turn:1', ?)", (json.dumps(said),)))  # fmt: skip
    with pytest.raises(SettingsError, match="perdure librarian on"):
        call("librarian", "run")
    assert call_json("librarian", "status")["waiting"] == 1
