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
    assert call("list", "--tag", "infra")["facts"] == [
        stored
        | {
            "state": "present",
            "hidden": None,
            "ending": {"at": None, "fades_at": None, "words": None, "told": "for good"},
        }
    ]
    assert call("list", "--tag", "other")["facts"] == []

    call("forget", short)
    assert call("list", "--state", "present")["facts"] == []
    assert call("show", short)["state"] == "forgotten"
    call("unforget", short)
    assert len(call("list", "--state", "present")["facts"]) == 1
    assert call("stats") == {"total": 1, "by_scope": {"user:owner": 1}, "by_category": {"entity": 1}}


def test_a_correction_can_be_looked_up_as_it_was_and_undone(call: Any) -> None:
    call("store", "My birthday is on May 3rd.")
    call("store", "Actually, my birthday is on May 4th.")
    assert [fact["value"] for fact in call("lookup", "User", "Birthday")["facts"]] == ["May 4th"]
    assert [fact["state"] for fact in call("list")["facts"]] == ["present", "former"]

    tried = call("undo", "--dry-run")
    assert [fact["value"] for fact in call("lookup", "User", "Birthday")["facts"]] == ["May 4th"]
    undone = call("undo")
    assert len(undone["facts"]) == 2
    assert {**undone, "dry_run": True} == tried
    assert [fact["value"] for fact in call("lookup", "user", "birthday")["facts"]] == ["May 3rd"]


def test_what_fades_and_ends_is_told_with_when_and_why(call: Any) -> None:
    lasting, named, worded = (
        call("store", *words)["facts"][0]
        for words in (
            ("I'm allergic to bees.",),
            ("The kettle is broken.", "--decay", "active"),
            ("We use the old oven for now.",),
        )
    )
    assert call("show", lasting["id"])["ending"]["told"] == "for good"
    fading = {fact["id"]: fact["ending"] for fact in call("list", "--fading")["facts"]}
    assert fading.keys() == {named["id"], worded["id"]}
    assert fading[named["id"]]["at"] == named["expires_at"]
    assert "as the class 'active' it was given says; each use puts it off" in fading[named["id"]]["told"]
    assert fading[worded["id"]]["words"] == "for now"
    assert "as it says 'for now'" in fading[worded["id"]]["told"]
    shown = CliRunner().invoke(cli, ["list", "--fading"], standalone_mode=False).output
    assert "as it says 'for now'" in shown
    assert "allergic" not in shown
    assert "kept\tfor good" in CliRunner().invoke(cli, ["show", lasting["id"]], standalone_mode=False).output


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


def test_the_list_is_of_all_that_is_kept_page_by_page(call: Any, tmp_path: Path) -> None:
    ids = [call("store", f"The pot number {number} is blue.")["facts"][0]["id"] for number in range(5)]
    call("forget", ids[0])
    call("update", ids[1], "--text", "The pot number 1 is red.")
    call("store", "The agent likes pots.", "--agent", "main")
    first = call("list", "--limit", "4")
    assert (first["total"], first["elsewhere"]) == (6, 1)
    assert first["states"] == {"present": 4, "forgotten": 1, "former": 1}
    call("store", "The pan is new.")
    second = call("list", "--limit", "4", "--behind", first["behind"])
    assert second["behind"] is None
    pages = [fact["id"] for fact in first["facts"] + second["facts"]]
    assert len(pages) == len(set(pages)) == 6
    assert set(ids) < set(pages)
    hidden = {fact["id"]: fact["hidden"] for fact in call("list", "--state", "forgotten", "--state", "former")["facts"]}
    assert hidden.keys() == {ids[0], ids[1]}
    assert hidden[ids[0]].startswith("forgotten on ")
    assert hidden[ids[1]].startswith("former: replaced by ")
    assert "The agent likes pots." in [fact["text"] for fact in call("list", "--all")["facts"]]
    shown = CliRunner().invoke(cli, ["list", "--limit", "1"], standalone_mode=False).output
    assert "1 of 7 are shown; in all 5 present, 1 forgotten, 1 former." in shown
    assert "The next page: the same with --behind" in shown
    assert "1 more; perdure list --all shows them" in shown
    everyone = CliRunner().invoke(cli, ["list", "--all", "--limit", "50"], standalone_mode=False).output
    assert "\tagent:main\t" in everyone


def test_nothing_to_show_is_said(call: Any) -> None:
    assert CliRunner().invoke(cli, ["list"], standalone_mode=False).stdout == "No memory fits.\n"
    assert CliRunner().invoke(cli, ["purge", "--query", "heron"], standalone_mode=False).return_value == 1


def test_every_command_has_help_with_an_example() -> None:
    for name in COMMANDS:
        result = CliRunner().invoke(cli, [name, "--help"])
        assert result.exit_code == 0, result.output
        assert "Example" in result.output, name
