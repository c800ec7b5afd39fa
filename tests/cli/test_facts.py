"""Commands on single memories."""

from __future__ import annotations

import re

import click
import pytest

from perdure.cli.main import COMMANDS
from perdure.errors import InputError, NotFoundError
from tests.cli.calling import call, call_json

pytestmark = pytest.mark.usefixtures("home")


def test_a_memory_is_stored_shown_forgotten_and_brought_back() -> None:
    [stored] = call_json("store", "The staging database is called heron.", "--tags", "infra")["facts"]
    assert (stored["channel"], stored["tags"]) == ("cli", ["infra"])
    short = stored["id"][:8]
    assert call_json("show", short)["text"] == stored["text"]
    assert call_json("list", "--tag", "infra")["facts"] == [
        stored
        | {
            "state": "present",
            "hidden": None,
            "ending": {"at": None, "fades_at": None, "words": None, "told": "for good"},
        }
    ]
    assert call_json("list", "--tag", "other")["facts"] == []

    call_json("forget", short)
    assert call_json("list", "--state", "present")["facts"] == []
    assert call_json("show", short)["state"] == "forgotten"
    call_json("unforget", short)
    assert len(call_json("list", "--state", "present")["facts"]) == 1
    assert call_json("stats") == {
        "total": 1, "by_scope": {"user:owner": 1}, "by_category": {"entity": 1}, "by_channel": {"cli": 1},
        "by_tag": {"infra": 1},
    }  # fmt: skip


def test_a_correction_can_be_looked_up_as_it_was_and_undone() -> None:
    call_json("store", "My birthday is on May 3rd.")
    call_json("store", "Actually, my birthday is on May 4th.")
    assert [fact["value"] for fact in call_json("lookup", "User", "Birthday")["facts"]] == ["May 4th"]
    assert [fact["state"] for fact in call_json("list")["facts"]] == ["present", "former"]

    tried = call_json("undo", "--dry-run")
    assert [fact["value"] for fact in call_json("lookup", "User", "Birthday")["facts"]] == ["May 4th"]
    undone = call_json("undo")
    assert len(undone["facts"]) == 2
    assert {**undone, "dry_run": True} == tried
    assert [fact["value"] for fact in call_json("lookup", "user", "birthday")["facts"]] == ["May 3rd"]


def test_what_fades_and_ends_is_told_with_when_and_why() -> None:
    lasting, named, worded = (
        call_json("store", *words)["facts"][0]
        for words in (
            ("I'm allergic to bees.",),
            ("The kettle is broken.", "--decay", "active"),
            ("We use the old oven for now.",),
        )
    )
    assert call_json("show", lasting["id"])["ending"]["told"] == "for good"
    fading = {fact["id"]: fact["ending"] for fact in call_json("list", "--fading")["facts"]}
    assert fading.keys() == {named["id"], worded["id"]}
    assert fading[named["id"]]["at"] == named["expires_at"]
    assert "as the class 'active' it was given says; each use puts it off" in fading[named["id"]]["told"]
    assert fading[worded["id"]]["words"] == "for now"
    assert "as it says 'for now'" in fading[worded["id"]]["told"]
    shown = call("list", "--fading").output
    assert "as it says 'for now'" in shown
    assert "allergic" not in shown
    assert "kept\tfor good" in call("show", lasting["id"]).output


def test_memories_are_linked() -> None:
    ids = [call_json("store", f"The {name} is number {number}.")["facts"][0]["id"] for number, name in enumerate("ab")]
    made = call_json("link", ids[0], ids[1], "--type", "CAUSED_BY", "--strength", "0.5")
    assert (made["type"], made["strength"]) == ("CAUSED_BY", 0.5)
    assert call_json("unlink", ids[0], ids[1], "--type", "CAUSED_BY", "--dry-run")["dry_run"]
    assert "CAUSED_BY" in {each["link"]["type"] for each in call_json("graph", ids[0], "--depth", "1")["related"]}
    call_json("unlink", ids[0], ids[1], "--type", "CAUSED_BY")
    assert "CAUSED_BY" not in {each["link"]["type"] for each in call_json("graph", ids[0], "--depth", "1")["related"]}
    with pytest.raises(NotFoundError, match="no CAUSED_BY link"):
        call_json("unlink", ids[0], ids[1], "--type", "CAUSED_BY", "--dry-run")


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(NotFoundError, match="deadbeef"):
        call_json("show", "deadbeef")
    for text in ("2026-13-45", "tomorrow", "nan", "1e300", "99999999999999"):
        with pytest.raises(InputError, match=text):
            call_json("list", "--after", text)
    for words in (["list"], ["history"], ["search", "heron"], ["checkpoint", "list"], ["review", "list"]):
        with pytest.raises(click.BadParameter, match="0 is not in the range"):
            call_json(*words, "--limit", "0")


def test_the_list_is_of_all_that_is_kept_page_by_page() -> None:
    ids = [call_json("store", f"The pot number {number} is blue.")["facts"][0]["id"] for number in range(5)]
    call_json("forget", ids[0])
    call_json("update", ids[1], "--text", "The pot number 1 is red.")
    call_json("store", "The agent likes pots.", "--agent", "main")
    call_json("store", "Eva likes pans.", "--user", "eva")
    first = call_json("list", "--limit", "4")
    assert (first["total"], first["elsewhere"]) == (7, 1)
    assert first["states"] == {"present": 5, "forgotten": 1, "former": 1}
    call_json("store", "The pan is new.")
    second = call_json("list", "--limit", "4", "--behind", first["behind"])
    assert second["behind"] is None
    pages = [fact["id"] for fact in first["facts"] + second["facts"]]
    assert len(pages) == len(set(pages)) == 7
    assert set(ids) < set(pages)
    hidden = {
        fact["id"]: fact["hidden"] for fact in call_json("list", "--state", "forgotten", "--state", "former")["facts"]
    }
    assert hidden.keys() == {ids[0], ids[1]}
    assert hidden[ids[0]].startswith("forgotten on ")
    assert hidden[ids[1]].startswith("former: replaced by ")
    assert "Eva likes pans." in [fact["text"] for fact in call_json("list", "--all")["facts"]]
    shown = call("list", "--limit", "1").output
    assert "1 of 8 are shown; in all 6 present, 1 forgotten, 1 former." in shown
    assert "The next page: the same with --behind" in shown
    assert "1 more; perdure list --all shows them" in shown
    assert "\tagent:main\t" in call("list", "--limit", "50").output
    assert "\tuser:eva\t" in call("list", "--all", "--limit", "50").output


def test_the_status_has_no_codes_for_nothing() -> None:
    call_json("store", "The staging database is called heron.")
    shown = call("status").stdout
    assert "None" not in shown
    assert "()" not in shown
    assert "auto recall\tyes" in shown
    assert call_json("status")["read_only"] is None


def test_nothing_to_show_is_said() -> None:
    assert call("list").stdout == "No memory fits.\n"
    call("purge", "--query", "heron", code=1)


def test_every_command_has_help_with_an_example() -> None:
    for name in COMMANDS:
        assert "Example" in call(name, "--help").output, name


def test_show_speaks_of_a_memory_in_words() -> None:
    short = call_json("store", "The staging database is called heron.", "--tags", "infra")["facts"][0]["id"][:8]
    shown = call("show", short).stdout
    for said in ("may come up by itself", "for good", "staging database / name = heron", "the command line", "0 times"):
        assert said in shown
    assert not re.search(r"None|\(\)|\d{9}\.|normalized_hash", shown)
    assert call_json("show", short)["normalized_hash"]


def test_lookup_finds_what_names_a_thing_that_no_memory_is_about() -> None:
    call("store", "My dog Biscuit is nine.")
    call("store", "I like rye bread.")
    found = call("lookup", "biscuit")
    assert ("nine" in found.stdout, "rye" in found.stdout) == (True, False)
    call("lookup", "hamster", code=1)
