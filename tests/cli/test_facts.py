"""Commands on single memories."""

from __future__ import annotations

import re
from contextlib import suppress

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
            "ending": {"at": None, "fades_at": None, "words": None, "told": "permanently"},
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
    assert call_json("show", lasting["id"])["ending"]["told"] == "permanently"
    fading = {fact["id"]: fact["ending"] for fact in call_json("list", "--fading")["facts"]}
    assert fading.keys() == {named["id"], worded["id"]}
    assert fading[named["id"]]["at"] == named["expires_at"]
    assert "because of its decay class 'active'; each use extends it" in fading[named["id"]]["told"]
    assert fading[worded["id"]]["words"] == "for now"
    assert "because it says 'for now'" in fading[worded["id"]]["told"]
    shown = call("list", "--fading").output
    assert "because it says 'for now'" in shown
    assert "allergic" not in shown
    assert "kept\tpermanently" in call("show", lasting["id"]).output


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
    assert "Showing 1 of 8: 6 present, 1 forgotten, 1 former." in shown
    assert "Next page: repeat with --behind" in shown
    assert "Not shown: 1 belonging to other users. Include them: perdure list --all" in shown
    assert "\tagent:main\t" in call("list", "--limit", "50").output
    assert "\tuser:eva\t" in call("list", "--all", "--limit", "50").output


def test_the_status_has_no_codes_for_nothing() -> None:
    call_json("store", "The staging database is called heron.")
    shown = call("status").stdout
    assert "None" not in shown
    assert "()" not in shown
    assert "automatic recall\tyes" in shown
    assert call_json("status")["read_only"] is None


def test_words_are_forgotten_after_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    heron, egret = (
        call_json("store", text)["facts"][0]["id"]
        for text in ("The heron nests at the big lake.", "The egret nests in tall reeds.")
    )
    refused = call("forget", "heron", code=2)
    assert f"{heron[:8]}\t" in refused.stdout
    assert "--yes" in refused.stderr
    assert [each["id"] for each in call("rm", "nests", "--json", code=2).json["facts"]] in (
        [heron, egret], [egret, heron],
    )  # fmt: skip
    call("forget", "heron", "--dry-run")
    assert call_json("stats")["total"] == 2
    assert call_json("forget", "walrus", code=1)["facts"] == []
    with pytest.raises(NotFoundError, match="deadbeef"):
        call("forget", "deadbeef")
    monkeypatch.setattr("perdure.cli.changes.is_asked", lambda: True)
    for words, answer, left in (
        ("heron", "\n", 2), ("heron", "y\n", 1), ("egret", "n\n", 1), ("nests", "y\n", 0),
    ):  # fmt: skip
        with suppress(click.Abort):
            call("forget", words, stdin=answer)
        assert call_json("stats")["total"] == left
    call("unforget", heron, egret)
    for answer, left in (("9\n\n", 2), ("all\n", 0)):
        with suppress(click.Abort):
            call("forget", "it", "nests", stdin=answer)
        assert call_json("stats")["total"] == left
    call("unforget", heron, egret)
    assert call("forget", heron, egret).stdout.endswith(f"Forgotten. Undo: perdure unforget {heron[:8]} {egret[:8]}\n")


def test_no_id_stands_without_its_text() -> None:
    first, second = (call_json("store", f"The {name} is blue.")["facts"][0]["id"] for name in ("kettle", "pot"))
    call("update", first, "--text", "The kettle is red.")
    texts = ("The kettle is blue.", "The kettle is red.", "The pot is blue.")
    for words in (
        ("link", first, second), ("graph", first), ("unlink", first, second), ("history",), ("undo", "--dry-run"),
        ("list",), ("purge", second, "--dry-run"), ("forget", second, "--dry-run"),
    ):  # fmt: skip
        shown = call(*words).stdout
        for name in (first[:8], second[:8]):
            assert all(any(text in line for text in texts) for line in shown.splitlines() if name in line), shown


def test_nothing_to_show_is_said() -> None:
    for words in (
        "list", "history", "review", "review --replaced", "backup list", "checkpoint list", "alias list", "vault list",
        "model status", "files status", "stats --all", "reflect", "classify", "purge --status",
    ):  # fmt: skip
        shown = call(*words.split()).stdout.splitlines()
        assert shown, words
        assert "\t" not in shown[-1] or len(shown) > 1, (words, shown)
    assert call("list").stdout == "No memory matches.\n"
    call("purge", "--query", "heron", code=1)


def test_every_command_has_help_with_an_example() -> None:
    for name in COMMANDS:
        assert "Example" in call(name, "--help").output, name


def test_show_speaks_of_a_memory_in_words() -> None:
    short = call_json("store", "The staging database is called heron.", "--tags", "infra")["facts"][0]["id"][:8]
    shown = call("show", short).stdout
    for said in ("may be recalled", "permanently", "staging database / name = heron", "the command line", "0 times"):
        assert said in shown
    assert not re.search(r"None|\(\)|\d{9}\.|normalized_hash", shown)
    assert call_json("show", short)["normalized_hash"]


def test_triggers_are_given_shown_replaced_and_removed() -> None:
    sore, fever = "what can I take for my sore throat", "the little one has a temperature again"
    given = ("--trigger", sore, "--trigger", fever)
    short = call_json("store", "I'm allergic to penicillin.", *given)["facts"][0]["id"][:8]
    assert f"{sore} (user)" in call("show", short).stdout
    call("update", short, "--trigger", fever)
    assert call_json("show", short)["triggers"] == [{"text": fever, "origin": "user"}]
    call("update", short, "--trigger", "")
    assert call_json("show", short)["triggers"] == []
    with pytest.raises(InputError, match="limit is 200"):
        call("update", short, "--trigger", "x" * 201)


def test_lookup_finds_what_names_a_thing_that_no_memory_is_about() -> None:
    call("store", "My dog Biscuit is nine.")
    call("store", "I like rye bread.")
    found = call("lookup", "biscuit")
    assert ("nine" in found.stdout, "rye" in found.stdout) == (True, False)
    call("lookup", "hamster", code=1)


def test_an_id_that_is_forgotten_already_says_so() -> None:
    [fact] = call_json("store", "The staging database is called heron.")["facts"]
    call("forget", fact["id"])
    with pytest.raises(InputError, match="already forgotten; restore it: perdure unforget"):
        call("forget", fact["id"])
