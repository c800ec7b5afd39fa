"""Explicit search, the graph of links, scopes, versions: what can be seen of memories."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from perdure.errors import InputError, NotFoundError, ScopeError
from tests.cli.calling import call, call_json

pytestmark = pytest.mark.usefixtures("home")

ACTIONS = ["add", "add", "supersede", "succeed", "forget", "forget"]
"""What an update and a forgetting leave in the journal."""


def stored(text: str, *options: str) -> str:
    """Store a memory and return its id."""
    return str(call_json("store", text, *options)["facts"][0]["id"])


def found(*words: str, code: int = 0) -> list[str]:
    return [hit["fact"]["text"] for hit in call_json("search", *words, code=code)["results"]]


def test_search_finds_by_words_and_heeds_every_filter() -> None:
    stored("The staging database is called heron.", "--tags", "infra", "--category", "entity")
    stored("The staging server has a green door.", "--tags", "house", "--category", "fact", "--scope", "global")
    both = {"The staging database is called heron.", "The staging server has a green door."}
    assert set(found("staging")) == both
    assert len(found("staging", "--limit", "1")) == 1
    for chosen in (("--tag", "infra"), ("--category", "entity"), ("--scope", "user:owner")):
        assert found("staging", *chosen) == ["The staging database is called heron."]
    assert set(found("zebra crossing")) == both
    assert found("staging", "--tag", "zebra", code=1) == []
    with pytest.raises(InputError, match="empty"):
        call("search", " ")
    with pytest.raises(click.BadParameter, match="10000"):
        call("search", "staging", "--limit", "0")


def test_tags_are_a_comma_list_or_json_and_a_text_with_neither_is_one() -> None:
    for name, tags in (("heron", "red boat"), ("egret", "red boat,sea"), ("ibis", '["red boat", "sea"]')):
        stored(f"The {name} is a boat.", "--tags", tags)
    assert set(found("boat", "--tag", "red boat")) == {f"The {name} is a boat." for name in ("heron", "egret", "ibis")}
    for tag in ("sea", "red boat, sea", '["sea", "red boat"]'):
        assert set(found("boat", "--tag", tag)) == {"The egret is a boat.", "The ibis is a boat."}


def test_a_filter_reaches_what_lies_behind_many_better_hits(monkeypatch: pytest.MonkeyPatch) -> None:
    # Forty that are alike are wanted, and one that is like them: none may count as known already.
    monkeypatch.setenv("PERDURE_COMPARE", '{"classify": false}')
    for number in range(40):
        stored(f"The harbour has a staging staging staging crane number {number}.")
    stored("In the harbour of long ago there was, behind the mill, staging.", "--tags", "old")
    assert found("staging", "--limit", "2", "--tag", "old")


def test_in_a_pipe_each_memory_is_one_line_whatever_its_length() -> None:
    text = "The staging database is called heron, " + "and it stands in the basement, " * 20 + "behind the lamp."
    stored(text)
    header, line = call("list").stdout.splitlines()
    assert header.split("\t") == ["id", "day", "state", "category", "text"]
    assert line.split("\t")[-1] == text


def test_search_shows_what_never_comes_up_unasked_and_marks_it(tmp_path: Path) -> None:
    stored("The staging database is called heron.")
    call("export", tmp_path / "out.jsonl")
    elsewhere = tmp_path / "elsewhere"
    assert call_json("import", tmp_path / "out.jsonl", "--home", elsewhere)
    assert "heron" not in call("recall", "What is the staging database called?", "--home", elsewhere).stdout
    [hit] = call_json("search", "staging database", "--home", elsewhere)["results"]
    assert hit["marks"] == ["import"]
    assert "import" in call("search", "staging database", "--home", elsewhere).stdout


def test_search_sees_the_past_and_former_versions() -> None:
    old = stored("The staging database is called heron.")
    new = call_json("update", old[:8], "--text", "The staging database is called egret.")["facts"][0]
    assert new["id"] != old
    assert found("staging database") == ["The staging database is called egret."]
    assert len(found("staging database", "--superseded")) == 2
    assert found("staging", "--as-of", "2020-01-01", code=1) == []


def test_an_agent_searches_its_own_memories_and_the_users() -> None:
    stored("The staging database is called heron.", "--agent", "ann")
    assert found("staging", "--agent", "ann")
    assert found("staging", "--agent", "bob", code=1) == []
    assert found("staging", "--user", "eva", code=1) == []
    assert found("staging")


def test_history_shows_all_versions_and_who_changed_what() -> None:
    old = stored("The staging database is called heron.")
    new = call_json("update", old, "--text", "The staging database is called egret.")["facts"][0]["id"]
    call("forget", new)
    for start in (old, new):
        told = call_json("history", start)
        assert [fact["id"] for fact in told["versions"]] == [old, new]
        assert [change["action"] for change in told["changes"]] == ACTIONS
    shown = call("history", new[:8]).stdout
    assert "forgotten" in shown
    assert "forgotten" in shown
    whole = call_json("history")["changes"]
    assert [change["action"] for change in whole] == ACTIONS
    assert call_json("history", "--since", str(whole[2]["seq"]))["changes"] == whole[3:]
    with pytest.raises(NotFoundError):
        call("history", "deadbeef")


def test_the_graph_is_a_tree_of_links() -> None:
    first, second, third = (stored(f"The {name} is number {name}.") for name in ("crane", "heron", "egret"))
    call("link", first, second, "--type", "CAUSED_BY")
    call("link", third, second, "--type", "PART_OF")
    shown = call("graph", first[:8], "--depth", "2").stdout.splitlines()
    assert shown == [
        f"{first[:8]} The crane is number crane.",
        f"└─ CAUSED_BY -> {second[:8]} The heron is number heron.",
        f"   └─ <- PART_OF {third[:8]} The egret is number egret.",
    ]
    assert [each["depth"] for each in call_json("graph", first)["related"]] == [1, 2]
    call("unlink", first, second, "--type", "CAUSED_BY")
    assert call_json("graph", first)["related"] == []
    with pytest.raises(InputError, match="11"):
        call("graph", first, "--depth", "11")


def test_scopes_and_categories_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_CATEGORIES", '{"sailing": "\\\\bboats?\\\\b"}')
    stored("The staging database is called heron.")
    stored("The harbour is closed.", "--agent", "ann", "--category", "fact")
    stored("The pier is wet.", "--scope", "project:pier")
    stored("The quay is long.", "--user", "eva")
    owners = {"agent:ann": 1, "project:pier": 1, "user:owner": 1}
    assert call_json("stats")["by_scope"] == owners
    assert call_json("stats", "--all") == {"total": 4, "by_scope": {**owners, "user:eva": 1}}
    assert call_json("stats", "--scope", "project:pier")["total"] == 1
    for words in (["stats", "--scope", "user:eva"], ["list", "--scope", "user:eva"]):
        with pytest.raises(ScopeError, match="add --user eva"):
            call(*words)
    assert call_json("stats", "--scope", "agent:ann", "--agent", "ann")["by_category"] == {"fact": 1}
    assert [fact["text"] for fact in call_json("list", "--scope", "project:pier")["facts"]] == ["The pier is wet."]
    counts = "preference\t0\nfact\t2\ndecision\t0\nentity\t1\nother\t0\nsailing\t0\n"
    assert call("stats").stdout.endswith(counts)


def test_pinned_memories_are_listed_until_unpinned() -> None:
    one = stored("The staging database is called heron.")
    stored("The harbour is closed.")
    call("pin", one)
    assert [fact["id"] for fact in call_json("list", "--pinned")["facts"]] == [one]
    call("unpin", one)
    assert call_json("list", "--pinned")["facts"] == []


def test_many_are_forgotten_by_scope_or_date_only() -> None:
    stored("The staging database is called heron.")
    stored("The pier is wet.", "--scope", "project:pier")
    assert call_json("forget", "--scope", "project:pier", "--dry-run") == {"forgotten": 0, "chosen": 1}
    assert call_json("forget", "--scope", "project:pier") == {"forgotten": 1, "chosen": 1}
    assert call_json("stats", "--all")["by_scope"] == {"user:owner": 1}
    assert call_json("forget", "--before", "2020-01-01", code=1) == {"forgotten": 0, "chosen": 0}
    for wrong in (("forget",), ("forget", "deadbeef", "--before", "2020-01-01"), ("store",), ("update", "deadbeef")):
        with pytest.raises(click.UsageError):
            call(*wrong)


def test_a_memory_is_given_with_an_option_and_all_its_parts() -> None:
    [fact] = call_json(
        "store", "--text", "Lunch is at noon.", "--decay", "durable", "--importance", "0.9", "--entity", "lunch",
        "--key", "time", "--value", "noon", "--why", "the canteen closes", "--category", "fact",
    )["facts"]  # fmt: skip
    assert (fact["decay_class"], fact["importance"], fact["why"]) == ("durable", 0.9, "the canteen closes")
    assert (fact["entity"], fact["key"], fact["value"], fact["category"]) == ("lunch", "time", "noon", "fact")
    [changed] = call_json("update", fact["id"], "--tags", "food,canteen", "--importance", "0.4")["facts"]
    assert (changed["id"], changed["tags"], changed["importance"]) == (fact["id"], ["food", "canteen"], 0.4)


def test_a_scope_of_an_agents_user_is_named_and_shown_as_it_is_written() -> None:
    stored("The harbour is closed.", "--agent", "ann", "--user", "eva", "--category", "fact")
    stored("The pier is wet.", "--agent", "ann", "--user", "eva", "--scope", "agent:ann")
    assert call_json("stats", "--all")["by_scope"] == {"agent:ann user:*": 1, "agent:ann user:eva": 1}
    both = call_json("list", "--agent", "ann", "--user", "eva")["facts"]
    assert {fact["scope_target"] for fact in both} == {"ann user:*", "ann user:eva"}
    assert [fact["text"] for fact in call_json("list", "--agent", "ann")["facts"]] == ["The pier is wet."]
    with pytest.raises(ScopeError, match="add --agent ann --user eva"):
        call("list", "--scope", "agent:ann user:eva")
    assert [fact["text"] for fact in call_json("list")["facts"]] == ["The pier is wet."]
    for scope in ("agent:ann", "agent:ann user:*"):
        [fact] = call_json("list", "--agent", "ann", "--user", "eva", "--scope", scope)["facts"]
        assert fact["text"] == "The pier is wet."
    assert "agent:ann user:eva" in call("stats", "--all").stdout


def test_what_an_agent_took_in_without_a_user_is_assigned_and_taken_back() -> None:
    stored("The harbour is closed.", "--agent", "ann")
    trial = call_json("assign", "agent:ann", "--to", "user:eva", "--dry-run")
    assert (trial["memories"], trial["target"], trial["batch"], trial["dry_run"]) == (
        1,
        "agent:ann user:eva",
        None,
        True,
    )
    assert call_json("list", "--agent", "ann", "--user", "eva")["facts"] == []
    said = call("assign", "agent:ann", "--to", "user:eva").stdout.splitlines()
    assert said[0] == "Assigned 1 memory and 0 conversations from agent:ann to agent:ann user:eva"
    assert len(call_json("list", "--agent", "ann", "--user", "eva")["facts"]) == 1
    assert call_json("list", "--agent", "ann")["facts"] == []
    assert call_json("assign", "agent:ann", "--to", "user:eva", code=1)["memories"] == 0
    call(*said[1].partition("perdure ")[2].split())
    assert len(call_json("list", "--agent", "ann")["facts"]) == 1
    assert call_json("assign", "agent:ann", "--all-users")["target"] == "agent:ann user:*"
    for wrong in ([], ["--to", "user:eva", "--all-users"]):
        with pytest.raises(click.UsageError):
            call("assign", "agent:ann", *wrong)
