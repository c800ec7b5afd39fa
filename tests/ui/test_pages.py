"""The pages: what each shows, and what its buttons do. All of it without a script."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.hooks.types import Channel, Consent, TurnContext
from perdure.text.pluralize import counted
from perdure.ui.page import size
from perdure.ui.pages import difference
from tests.ui.conftest import Browser

BOAT, HERON = "The boat is called Albatross.", "The boat is called Heron."
PROMPT = "What is the boat called?"


def turn(memory: Memory, prompt: str = PROMPT) -> str:
    memory.turns.before(prompt, TurnContext(session_id="chat-1"))
    assert memory.settle()
    return memory.turns.past()[0].id


def undo_of(text: str) -> str:
    found = re.search(r'name="batch" value="(\w+)"', text)
    assert found is not None
    return found[1]


def test_today_shows_what_was_kept_recalled_and_replaced_and_takes_it_back(browser: Browser) -> None:
    memory = browser.memory
    old = memory.store(BOAT).fact
    turn(memory)
    memory.store(HERON, supersedes=old.id)
    shown = browser.text("today")
    assert PROMPT in shown
    assert f"<del>{BOAT}</del>" in shown
    assert HERON in shown
    browser.press("take-back", id=old.id)
    assert {fact.text for fact in memory.admin.list()} == {BOAT, HERON}


def test_each_change_is_taken_back_by_the_button_beside_it(browser: Browser) -> None:
    fact = browser.memory.store(BOAT).fact
    answer = browser.press("forget", id=fact.id, page="today")
    assert f"Forgotten: {BOAT}" in answer.text
    assert not browser.memory.admin.list()
    browser.press("undo", batch=undo_of(answer.text))
    assert [each.text for each in browser.memory.admin.list()] == [BOAT]


def test_memories_are_searched_narrowed_and_paged(browser: Browser) -> None:
    for number in range(45):
        browser.memory.store(f"Boat number {number} lies at pier {number}.", tags=["harbour"])
    browser.memory.pin(browser.memory.store("I like tea with milk.", category="preference").fact.id)
    first = browser.text("memories")
    assert "46 memories" in first
    more = re.search(r'class="more" rel="next" href="[^"?]*\?([^"]*)"', first)
    assert more is not None
    second = browser.client.get(f"{browser.keys.prefix}/memories?{more[1].replace('&amp;', '&')}").text
    assert len(re.findall(r'class="row"', first)) + len(re.findall(r'class="row"', second)) == 46
    assert "I like tea" in browser.text("memories", q="tea")
    assert "Boat number" not in browser.text("memories", q="tea")
    for narrowed in ({"category": "preference"}, {"pinned": "pinned"}):
        shown = browser.text("memories", **narrowed)
        assert "I like tea" in shown
        assert "Boat number" not in shown
    assert "I like tea" not in browser.text("memories", tag="harbour")
    assert "No memories match" in browser.text("memories", origin=Channel.IMPORT.value)
    assert "<html" not in browser.text("memories", q="tea", rows="yes")


def test_what_is_forgotten_is_searched_by_its_words(browser: Browser) -> None:
    for text in (BOAT, "The bike is blue."):
        browser.memory.forget(browser.memory.store(text).fact.id)
    browser.memory.store(HERON)
    shown = browser.text("memories", q="boat called", state="forgotten")
    assert BOAT in shown
    assert HERON not in shown
    assert "bike" not in shown


def test_a_long_query_is_not_said_back_whole(browser: Browser) -> None:
    assert len(browser.text("memories", q="boat " * 4_000)) < 20_000


def test_the_best_of_many_that_were_considered_are_shown_first(browser: Browser) -> None:
    for number in range(60):
        browser.memory.store(f"The boat {number} is called Heron {number}.")
    name = turn(browser.memory, "What is the boat called, Heron 7 or Heron 8?")
    short, whole = browser.text(f"turns/{name}"), browser.text(f"turns/{name}", all="yes")
    considered = len(browser.memory.why(name).considered)
    assert considered > 40
    assert f"Show all {considered}" in short
    assert whole.count("<tr") - short.count("<tr") == considered - 40


def test_what_is_pending_forgotten_or_former_can_be_looked_at(browser: Browser) -> None:
    memory = browser.memory
    gone = memory.store("The bike is blue.").fact
    memory.forget(gone.id)
    memory.store(HERON, supersedes=memory.store(BOAT).fact.id)
    assert "The bike is blue." in browser.text("memories", state="forgotten")
    assert BOAT in browser.text("memories", state="former")
    assert BOAT in browser.text("memories", state="former", q="albatross")
    assert HERON not in browser.text("memories", state="former")


def test_a_memory_is_edited_pinned_forgotten_and_brought_back(browser: Browser) -> None:
    memory = browser.memory
    first = memory.store(BOAT).fact
    shown = browser.press("edit", id=first.id, text=HERON).text
    [fact] = memory.admin.list()
    assert fact.text == HERON
    assert "<del>Albatross.</del>" in shown
    assert "<ins>Heron.</ins>" in shown
    browser.press("pin", id=fact.id, pinned="yes")
    assert memory.get(fact.id).pinned
    browser.press("pin", id=fact.id, pinned="")
    assert not memory.get(fact.id).pinned
    browser.press("forget", id=fact.id)
    assert not memory.admin.list()
    assert "Restore" in browser.text(f"memory/{fact.id}")
    browser.press("unforget", id=fact.id)
    assert [each.text for each in memory.admin.list()] == [HERON]


def test_a_memory_tells_where_it_came_up_and_gets_another_name(browser: Browser) -> None:
    memory = browser.memory
    fact = memory.store(BOAT, entity="boat", key="name", value="Albatross", triggers=["what is on the stern"]).fact
    turn(memory)
    shown = browser.text(f"memory/{fact.id}")
    assert PROMPT in shown
    assert "what is on the stern" in shown
    assert "boat / name = Albatross" in shown
    assert "it did come up" in shown
    browser.press("alias", id=fact.id, name="boat", other="ship")
    assert ("boat", "ship") in [(each.entity, each.value) for each in memory.aliases.list()]


def test_purge_asks_twice(browser: Browser) -> None:
    fact = browser.memory.store(BOAT).fact
    asked = browser.press("purge", id=fact.id)
    assert "Delete this memory permanently?" in asked.text
    assert browser.memory.admin.has(fact.id)
    browser.press("purge", id=fact.id, sure="yes")
    assert not browser.memory.admin.has(fact.id)
    assert browser.get(f"memory/{fact.id}").status_code == 404


def test_export_asks_twice_and_hands_over_every_memory(browser: Browser) -> None:
    browser.memory.store(BOAT)
    assert "Export all memories?" in browser.press("export").text
    given = browser.press("export", sure="yes")
    lines = [json.loads(line) for line in given.text.splitlines()]
    assert any(line.get("text") == BOAT for line in lines)
    assert "attachment" in given.headers["content-disposition"]


def test_a_turn_is_explained_replayed_and_marked(browser: Browser) -> None:
    memory = browser.memory
    boat, tea = memory.store(BOAT).fact, memory.store("I like tea with milk.").fact
    name = turn(memory)
    shown = browser.text(f"turns/{name}")
    assert BOAT in shown
    assert ">recalled<" in shown
    browser.press("mark", turn=name, id=boat.id, wanted="no")
    browser.press("mark", turn=name, id=tea.id[:8], wanted="yes")
    assert memory.turns.one(name).marks == {boat.id: False, tea.id: True}
    found = memory.admin.evaluate()
    # What should have come has learnt the prompt since.
    assert (found.marks, found.marks_right) == (2, 1)
    memory.forget(boat.id)
    assert "The same prompt today" in browser.text(f"turns/{name}", replay="yes")
    browser.press("mark", turn=name, id=tea.id, wanted="clear")
    assert memory.turns.one(name).marks == {boat.id: False}


def test_the_page_is_the_owners_and_tells_what_a_turn_in_a_repository_was_shown(tmp_path: Path) -> None:
    here = TurnContext(session_id="chat-1", project="project:boats-0123456789ab")
    with Memory.open(tmp_path, whole=True, embedder="none", timers=False, watch=False) as memory:
        browser = Browser(memory)
        browser.enter()
        memory.turns.before("Remember this.", here)
        memory.turns.after([{"role": "user", "content": BOAT}], True, here)
        assert memory.settle()
        fact = memory.admin.list()[0]
        assert (fact.text, fact.scope) == (BOAT, "project")
        memory.turns.before(PROMPT, replace(here, session_id="chat-2"))
        memory.store("Eva sails.", scope="user:owner")
        assert memory.settle()
        name = memory.turns.past()[0].id
        for page in ("turns", f"turns/{name}", "today"):
            assert f"<li>{BOAT}</li>" in browser.text(page)
        assert BOAT in browser.text(f"turns/{name}", replay="yes").partition("The same prompt today")[2]
        for page in ("memories", "today", f"memory/{fact.id}"):
            assert "project:boats-0123456789ab" in browser.text(page)
        assert "1 memory" in browser.text("memories", scope=here.project)
        assert ">Remember this.</a>" in browser.text(f"memory/{fact.id}")
        browser.press("forget", id=fact.id)
        last = browser.text("today").partition("Undo the last change")[2]
        assert "forget: <a" in last
        assert BOAT in last
        browser.press("undo", batch=undo_of(browser.text("today")))
        assert memory.get(fact.id).forgotten_at is None


def test_a_turn_tells_the_passages_that_it_was_shown(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    notes = tmp_path_factory.mktemp("notes") / "MEMORY.md"
    notes.write_text("# Boats\n\nThe boat called Albatross lies at pier nine.\n", encoding="utf-8")
    browser.memory.files.add(notes.parent)
    browser.memory.files.sync()
    name = turn(browser.memory, "At which pier lies the boat called Albatross?")
    assert "lies at pier nine.</li>" in browser.text(f"turns/{name}")
    notes.write_text("# Boats\n\n\nThere is no boat any more.\n", encoding="utf-8")
    browser.memory.files.sync()
    assert "<li>MEMORY.md#L1-L3</li>" in browser.text(f"turns/{name}")


def test_a_memory_that_should_have_come_is_found_by_its_words(browser: Browser) -> None:
    fact, name = browser.memory.store("I like tea with milk.").fact, turn(browser.memory)
    assert f'name="id" value="{fact.id}"' in browser.text(f"turns/{name}", find="tea milk")
    assert "No memories match" in browser.text(f"turns/{name}", find="coffee")


def test_review_approves_rejects_and_looks_for_what_may_go(browser: Browser) -> None:
    memory = browser.memory
    old = memory.store(BOAT).fact
    for text in (HERON, "The boat is called Egret."):
        call_tool(memory, "memory_update", {"memory": old.id, "text": text}, TurnContext(), consent=Consent.UNAVAILABLE)
    egret, heron = memory.admin.review()
    for fact in (egret, heron):
        assert fact.text in browser.text("review")
    browser.press("decide", id=heron.id, answer="approve")
    browser.press("decide", id=egret.id, answer="reject")
    assert [memory.get(fact.id).review_state for fact in (heron, egret)] == ["approved", "rejected"]
    assert memory.get(old.id).superseded_by == heron.id
    memory.store("My password is hunter2horse!")
    assert "No suggestions." in browser.text("review", look="yes")


def test_files_are_found_with_where_they_stand(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "MEMORY.md").write_text("# Boats\n\nThe albatross lies at pier nine.\n", encoding="utf-8")
    browser.memory.files.add(folder)
    browser.memory.files.sync()
    shown = browser.text("files", q="albatross pier")
    assert "pier nine" in shown
    assert "<cite>MEMORY.md#L" in shown
    assert "MEMORY.md" not in browser.text("files", q="unrelated zebra")
    assert str(folder) in browser.text("files")


def test_health_shows_jobs_sizes_and_what_is_wrong(browser: Browser) -> None:
    shown = browser.text("health")
    for word in ("backup", "facts.db", "prune", "Model"):
        assert word in shown
    assert "<table>" in browser.text("health", look="yes")


def test_the_librarian_is_switched_on_and_off_with_its_terms_and_shows_what_it_did(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.touch()
    monkeypatch.setenv("PERDURE_CONFIG", str(config))
    said = browser.memory.store(BOAT)
    runs = [{"at": 1_800_000_000.0, "turns": 3, "did": "remember 1", "batch": said.batch}]
    failing = {"codex": {"failures": 2, "why": "away", "again_at": 1_800_000_300.0}}
    browser.memory._engine.store.note("librarian", json.dumps({"runs": runs, "failing": failing}))
    shown = browser.text("health")
    for words in ("Off", "claude -p", "may be billed", "Switch on", "remember 1", "3 turns", "failed 2 times"):
        assert words in shown, words
    assert "Switch off" in browser.press("librarian", wanted="yes").text
    assert "librarian = true" in config.read_text()
    assert "Switch on" in browser.press("librarian", wanted="no").text
    assert "librarian = false" in config.read_text()
    browser.press("undo", batch=said.batch, page="health")
    assert browser.memory.search("boat albatross") == []


def test_what_cannot_be_done_is_said_and_changes_nothing(browser: Browser) -> None:
    assert browser.press("forget", id="00000000").status_code == 404
    answer = browser.press("edit", id=browser.memory.store(BOAT).fact.id, text=" ")
    assert answer.status_code == 400
    assert "Something went wrong" in answer.text
    assert browser.get("memories", scope="nonsense:x:y").status_code == 400
    assert browser.get("memories", behind="ffffffff-0000").status_code == 404
    assert browser.get("turns", before="soon").status_code == 200


def test_another_callers_memories_are_not_there(browser: Browser) -> None:
    home = browser.memory.status().home
    with Memory.open(home, agent="main", embedder="none", timers=False, watch=False) as other:
        theirs = other.store(BOAT, scope="agent:main").fact
        other.turns.before(PROMPT, TurnContext(agent_id="main", session_id="chat-9"))
        assert other.settle()
        their_turn = other.turns.past()[0].id
    for page in ("today", "memories", "turns", "review"):
        assert BOAT not in browser.text(page)
    assert BOAT not in browser.text("memories", q="boat albatross")
    for page in (f"memory/{theirs.id}", f"turns/{their_turn}"):
        assert browser.get(page).status_code == 404
    assert browser.press("forget", id=theirs.id).status_code == 404
    assert browser.press("mark", turn=their_turn, id=theirs.id, wanted="yes").status_code == 404


def test_words_and_figures_are_said_as_people_say_them() -> None:
    assert [counted(1, "memory"), counted(2_000, "memory")] == ["1 memory", "2,000 memories"]
    assert [counted(2, "day"), counted(0, "time"), counted(3, "man", "men")] == ["2 days", "0 times", "3 men"]
    assert [size(12), size(12_345), size(3.2e9)] == ["12 bytes", "12.3 kB", "3.2 GB"]
    assert difference("a b c", "a x c") == [("same", "a"), ("gone", "b"), ("new", "x"), ("same", "c")]
