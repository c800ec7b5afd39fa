"""Commands on single memories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from perdure.cli.main import COMMANDS, cli
from perdure.errors import InputError, NotFoundError


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs a command with --json and returns what it printed."""
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PERDURE_EMBEDDER", "hash")

    def run(*words: str) -> Any:
        result = CliRunner().invoke(cli, [*words, "--json"], standalone_mode=False)
        if result.exception:
            raise result.exception
        return json.loads(result.output)

    return run


def test_a_memory_is_stored_shown_forgotten_and_brought_back(call: Any) -> None:
    [stored] = call("store", "The staging database is called heron.", "--tags", "infra")["facts"]
    assert (stored["channel"], stored["tags"]) == ("cli", ["infra"])
    short = stored["id"][:8]
    assert call("show", short)["text"] == stored["text"]
    assert call("list", "--tag", "infra")["facts"] == [stored]
    assert call("list", "--tag", "other")["facts"] == []

    call("forget", short)
    assert call("list")["facts"] == []
    call("unforget", short)
    assert len(call("list")["facts"]) == 1
    assert call("stats") == {"total": 1, "by_scope": {"user:owner": 1}, "by_category": {"entity": 1}}


def test_a_correction_can_be_looked_up_as_it_was_and_undone(call: Any) -> None:
    call("store", "My birthday is on May 3rd.")
    call("store", "Actually, my birthday is on May 4th.")
    assert [fact["value"] for fact in call("lookup", "User", "Birthday")["facts"]] == ["May 4th"]
    assert len(call("list", "--superseded")["facts"]) == 2

    tried = call("undo", "--dry-run")
    assert [fact["value"] for fact in call("lookup", "User", "Birthday")["facts"]] == ["May 4th"]
    undone = call("undo")
    assert len(undone["facts"]) == 2
    assert {**undone, "dry_run": True} == tried
    assert [fact["value"] for fact in call("lookup", "user", "birthday")["facts"]] == ["May 3rd"]


def test_memories_are_linked(call: Any) -> None:
    ids = [call("store", f"The {name} is number {number}.")["facts"][0]["id"] for number, name in enumerate("ab")]
    made = call("link", ids[0], ids[1], "--type", "CAUSED_BY", "--strength", "0.5")
    assert (made["type"], made["strength"]) == ("CAUSED_BY", 0.5)
    assert call("unlink", ids[0], ids[1], "--type", "CAUSED_BY", "--dry-run")["dry_run"]
    assert "CAUSED_BY" in {each["link"]["type"] for each in call("graph", ids[0], "--depth", "1")["related"]}
    call("unlink", ids[0], ids[1], "--type", "CAUSED_BY")
    assert "CAUSED_BY" not in {each["link"]["type"] for each in call("graph", ids[0], "--depth", "1")["related"]}
    with pytest.raises(NotFoundError, match="no CAUSED_BY link"):
        call("unlink", ids[0], ids[1], "--type", "CAUSED_BY", "--dry-run")


def test_what_is_wrong_is_said(call: Any) -> None:
    with pytest.raises(NotFoundError, match="deadbeef"):
        call("show", "deadbeef")
    for text in ("2026-13-45", "tomorrow", "nan", "1e300", "99999999999999"):
        with pytest.raises(InputError, match=text):
            call("list", "--after", text)
    for words in (["list"], ["history"], ["search", "heron"], ["checkpoint", "list"], ["review", "list"]):
        with pytest.raises(click.BadParameter, match="0 is not in the range"):
            call(*words, "--limit", "0")


def test_nothing_to_show_is_said(call: Any) -> None:
    assert CliRunner().invoke(cli, ["list"], standalone_mode=False).output == "No memory fits.\n"
    assert CliRunner().invoke(cli, ["purge", "--query", "heron"], standalone_mode=False).return_value == 1


def test_every_command_has_help_with_an_example() -> None:
    for name in COMMANDS:
        result = CliRunner().invoke(cli, [name, "--help"])
        assert result.exit_code == 0, result.output
        assert "Example" in result.output, name
