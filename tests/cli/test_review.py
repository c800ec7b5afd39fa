"""The commands that keep what is remembered in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from perdure.api.memory import Memory
from perdure.cli.main import cli
from perdure.hooks.types import TurnContext

FLOOD = "My sister lives in Bergen. My brother lives in Porto. My aunt lives in Riga."


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs a command with --json and returns its exit code and what it printed."""
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PERDURE_EMBEDDER", "hash")
    with Memory.open(capture_turn_facts=1) as memory:
        memory.turns.after([{"role": "user", "content": FLOOD}], True, TurnContext(session_id="s"))
        memory.settle()

    def run(*words: str) -> Any:
        result = CliRunner().invoke(cli, [*words, "--json"], standalone_mode=False)
        if result.exception:
            raise result.exception
        return result.return_value, json.loads(result.output)

    return run


def test_what_waits_is_listed_approved_and_rejected(call: Any) -> None:
    _, listed = call("review")
    assert listed == call("review", "list")[1]
    first, second = (fact["id"][:8] for fact in listed["facts"])
    assert call("review", "approve", first, "--dry-run")[1]["facts"][0]["review_state"] == "pending"
    assert call("review", "approve", first)[1]["facts"][0]["review_state"] == "approved"
    assert call("review", "reject", second)[1]["facts"][0]["review_state"] == "rejected"
    assert call("review")[1] == {"facts": []}
    call("undo")
    assert [fact["id"][:8] for fact in call("review")[1]["facts"]] == [second]
    assert call("status")[1]["review"] == 1


def test_an_audit_tells_before_it_mends(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise the duplicate might be found when it is stored, and nothing would be left to the audit.
    monkeypatch.setenv("PERDURE_CLASSIFY_BEFORE_WRITE", "false")
    assert call("audit")[0] == 0
    call("store", "Your sister lives in Bergen!")
    code, told = call("audit", "--fix", "--dry-run")
    assert (code, told["counts"], told["fixed"]) == (1, {"duplicate": 1}, 0)
    code, mended = call("audit", "--fix")
    assert (code, mended["fixed"]) == (0, 1)
    call("undo", "--batch", mended["batch"])
    assert call("audit")[0] == 1


def test_what_has_no_category_gets_one(call: Any) -> None:
    call("store", "I love strong green tea.", "--category", "other")
    assert [each["category"] for each in call("classify", "--dry-run")[1]["classified"]] == ["preference"]
    assert call("classify")[1]["dry_run"] is False
    assert call("classify")[1]["classified"] == []


@pytest.mark.parametrize("command", ["review", "audit", "classify"])
def test_each_prints_for_people_too(call: Any, command: str) -> None:
    result = CliRunner().invoke(cli, [command], standalone_mode=False)
    assert result.exception is None
    assert result.output


def test_what_was_replaced_is_listed_and_taken_back(call: Any) -> None:
    [old] = call("store", "I live in Ghent.")[1]["facts"]
    [new] = call("store", "I moved to Bruges.")[1]["facts"]
    [listed] = call("review", "--replaced")[1]["replaced"]
    assert (listed["old"]["id"], listed["new"]["id"]) == (old["id"], new["id"])
    assert call("review", "--replaced", "--since", "9999-01-01")[1] == {"replaced": []}
    assert call("review", "take-back", old["id"][:8], "--dry-run")[1]["facts"][0]["superseded_at"] is None
    assert call("review", "--replaced")[1]["replaced"] == [listed]
    assert call("review", "take-back", old["id"][:8])[1]["facts"][0]["superseded_at"] is None
    assert call("review", "--replaced")[1] == {"replaced": []}


@pytest.mark.parametrize("words", [("--since", "2026-01-01"), ("--replaced", "list")])
def test_options_of_replaced_that_do_not_fit_are_told(call: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError, match="--replaced"):
        call("review", *words)
