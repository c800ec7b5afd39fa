"""Who says the same on a stronger word takes the place of the weaker; on a weaker word it changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.clock import ManualClock
from perdure.hooks.types import Channel, TurnContext
from perdure.store.fact import SELECT, Fact, from_row
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.store.trust import AGENTS_NOTE, SUPERSEDES
from tests.cli.calling import call
from tests.kit import OpenMemory

TEXT = "My tailor is Mister Wagner in Linz."
QUESTION = "Who is my tailor?"
WEAK = sorted(set(Channel) - SUPERSEDES)
OTHERS: dict[str, Any] = {
    "value": "Doctor Evil",
    "tags": ("planted",),
    "metadata": {"from": "elsewhere"},
    "preserve_tags": True,
}
"""What a twin claims beside its text."""


def put(home: Path, text: str = TEXT, **fields: Any) -> Fact:
    """Write a fact of the owner's just as it is, beside the open memory."""
    store = Store(home, clock=ManualClock())
    fact = Fact(text, scope="user", scope_target="owner", entity="user", key="tailor", **fields)
    with store.write(Author(fact.channel)) as tx:
        added = tx.add(fact)
    store.close()
    return added


def stored(home: Path) -> Mapping[str, Fact]:
    """Return all facts of a folder by their ids."""
    store = Store(home)
    with store.database.read() as connection:
        facts = [from_row(row) for row in run(connection, f"SELECT {SELECT} FROM facts ORDER BY seq")]
    store.close()
    return {fact.id: fact for fact in facts}


def in_a_turn(memory: Memory, text: str) -> None:
    memory.turns.after([{"role": "user", "content": text}], True, TurnContext(session_id="s"))
    assert memory.settle()


def by_the_library(memory: Memory, text: str) -> None:
    memory.store(text)


def by_the_command_line(memory: Memory, text: str) -> None:
    call("store", text, "--home", memory.status().home, "--json")


def by_a_tool(memory: Memory, text: str) -> None:
    answer = call_tool(memory, "memory_store", {"text": text}, TurnContext(), f"Remember this: {text}")
    assert not answer.refused


SAYS: Mapping[str, Callable[[Memory, str], None]] = {
    "a turn": in_a_turn,
    "the library": by_the_library,
    "the command line": by_the_command_line,
    "a tool": by_a_tool,
}
ways = pytest.mark.parametrize("say", SAYS.values(), ids=list(SAYS))


def live(memory: Memory) -> list[Fact]:
    return list(memory.admin.list(limit=100))


@ways
@pytest.mark.parametrize("channel", WEAK)
def test_what_the_user_says_takes_the_place_of_a_weaker_twin(
    open_memory: OpenMemory, home: Path, say: Callable[[Memory, str], None], channel: Channel
) -> None:
    memory = open_memory()
    twin = put(home, channel=channel, **OTHERS)
    before = stored(home)
    say(memory, TEXT)
    [fact] = live(memory)
    assert fact.channel in SUPERSEDES
    assert (fact.text, fact.value, fact.metadata) == (TEXT, "Mister Wagner in Linz", {})
    assert "planted" not in fact.tags
    recall = memory.recall(QUESTION)
    assert recall is not None
    assert TEXT in recall.block
    assert "agent's note" not in recall.block
    assert memory.get(twin.id).superseded_by == fact.id
    assert {change.action for change in memory.admin.changes() if change.fact.id == twin.id} == {"add", "supersede"}

    memory.undo()
    undone = stored(home)[twin.id]
    assert replace(undone, change_seq=before[twin.id].change_seq) == before[twin.id]
    assert [each.id for each in live(memory)] == [twin.id]


@pytest.mark.parametrize("channel", WEAK)
@pytest.mark.parametrize("text", [TEXT, "my tailor is mister wagner in linz", "My tailor is Mister Wagner (Linz)."])
def test_a_weaker_channel_that_repeats_the_user_changes_nothing(
    open_memory: OpenMemory, home: Path, channel: Channel, text: str
) -> None:
    memory = open_memory()
    in_a_turn(memory, TEXT)
    before = stored(home)
    assert memory.store(text, channel=channel).id in before
    assert stored(home) == before


def test_who_says_as_much_confirms(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory()
    in_a_turn(memory, TEXT)
    assert memory.store(TEXT).reinforced_count == 1
    note = put(home, "The user likes boats.", channel=Channel.TOOL_UNASKED)
    assert memory.store("The user likes boats.", channel=Channel.ASSISTANT).id == note.id
    assert memory.get(note.id).reinforced_count == 1


def test_an_agents_note_takes_the_place_of_what_nobody_vouches_for(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory()
    put(home, channel=Channel.IMPORT)
    assert memory.store(TEXT, channel=Channel.TOOL_UNASKED).channel is Channel.TOOL_UNASKED
    recall = memory.recall(QUESTION)
    assert recall is not None
    assert "agent's note" in recall.block


@ways
def test_the_users_older_value_gives_way_as_if_no_twin_were_there(
    open_memory: OpenMemory, clock: ManualClock, home: Path, say: Callable[[Memory, str], None]
) -> None:
    memory = open_memory()
    in_a_turn(memory, "I live in Graz.")
    put(home, "I live in Linz.", channel=Channel.IMPORT)
    clock.advance(60.0)
    say(memory, "I live in Linz.")
    assert [(fact.text, fact.channel in SUPERSEDES) for fact in live(memory)] == [("I live in Linz.", True)]
    memory.undo()
    assert {fact.text for fact in live(memory)} == {"I live in Graz.", "I live in Linz."}


def test_all_twins_give_way(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory()
    for channel in WEAK:
        put(home, channel=channel)
    memory.store(TEXT)
    assert [fact.channel for fact in live(memory)] == [Channel.LIBRARY]


def test_a_twin_beside_the_users_own_word_swallows_nothing(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory()
    put(home, channel=Channel.IMPORT)
    users = put(home, channel=Channel.USER)
    put(home, channel=Channel.TOOL_UNASKED)
    in_a_turn(memory, TEXT)
    assert memory.get(users.id).reinforced_count == 1


@ways
def test_a_twin_in_other_words_gives_way(
    open_memory: OpenMemory, home: Path, say: Callable[[Memory, str], None]
) -> None:
    memory = open_memory()
    put(home, "By the way, my tailor is Mister Wagner in Linz.", channel=Channel.IMPORT, value="Mister Wagner in Linz")
    say(memory, TEXT)
    assert [(fact.text, fact.channel in SUPERSEDES) for fact in live(memory)] == [(TEXT, True)]


def test_a_note_that_was_shown_and_that_the_user_repeats_is_the_users(open_memory: OpenMemory) -> None:
    memory = open_memory(compare={"classify": False, "vector": 0})
    note = memory.store("Your tailor is Mister Wagner in Linz.", channel=Channel.TOOL_UNASKED)
    assert memory.turns.before(QUESTION, TurnContext(session_id="s")) is not None
    in_a_turn(memory, TEXT)
    assert [(fact.text, fact.channel) for fact in live(memory)] == [(TEXT, Channel.USER)]
    assert memory.get(note.id).superseded_by is not None


@ways
@pytest.mark.parametrize("channel", [Channel.ASSISTANT, Channel.TOOL_UNASKED, Channel.IMPORT])
def test_what_waits_for_review_is_approved_by_the_users_saying_it(
    open_memory: OpenMemory, home: Path, say: Callable[[Memory, str], None], channel: Channel
) -> None:
    memory = open_memory()
    put(home, channel=channel, review_state="pending", confidence=0.5, metadata={"review": "said by the assistant"})
    say(memory, TEXT)
    [fact] = live(memory)
    assert (fact.review_state, fact.confidence, fact.channel in SUPERSEDES) == ("approved", 1.0, True)
    assert memory.admin.review() == []
    memory.undo()
    assert [fact.channel for fact in memory.admin.review()] == [channel]


@pytest.mark.parametrize(("say", "comes"), [(in_a_turn, False), (by_the_library, True), (by_a_tool, True)])
def test_what_was_rejected_comes_back_on_purpose_only(
    open_memory: OpenMemory, home: Path, say: Callable[[Memory, str], None], comes: bool
) -> None:
    memory = open_memory()
    put(home, channel=Channel.ASSISTANT, review_state="rejected")
    say(memory, TEXT)
    assert [fact.review_state for fact in live(memory)] == ["approved" if comes else "rejected"]


def test_over_the_limit_the_users_word_waits_beside_its_twin(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory(capture_limits={"turn": 1})
    put(home, channel=Channel.IMPORT)
    in_a_turn(memory, f"My cat is called Biscuit. {TEXT}")
    [waiting] = memory.admin.review()
    assert (waiting.text, waiting.channel) == (TEXT, Channel.USER)
    memory.admin.approve(waiting.id)
    assert {fact.channel for fact in live(memory)} == {Channel.USER}
    memory.undo()
    assert {fact.channel for fact in live(memory)} == {Channel.USER, Channel.IMPORT}


def test_what_was_pinned_stays_pinned_unless_nobody_vouches_for_it(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory()
    put(home, channel=Channel.TOOL_UNASKED, pinned=True)
    assert memory.store(TEXT).pinned
    put(home, "My cat is called Biscuit.", channel=Channel.IMPORT, pinned=True, importance=1.0)
    cat = memory.store("My cat is called Biscuit.")
    assert (cat.pinned, cat.importance) == (False, 0.5)


def test_new_words_of_the_user_for_an_agents_note_are_the_users(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory()
    twin = put(home, channel=Channel.IMPORT)
    assert memory.update(twin.id, importance=0.9).channel is Channel.IMPORT
    mended = memory.update(twin.id, text="My tailor is Doctor Berg.")
    assert mended.channel is Channel.LIBRARY
    unasked = {"memory": mended.id[:8], "text": "My tailor is Doctor Evil."}
    assert call_tool(memory, "memory_update", unasked, TurnContext(), "Hello.").refused


def test_a_doubt_of_the_agents_hides_no_other_word_of_the_user(open_memory: OpenMemory) -> None:
    memory = open_memory()
    one, other = memory.store("The boat is called Albatross."), memory.store("The dinghy is called Heron.")
    doubt = {"text": other.text, "supersedes": one.id}
    assert call_tool(memory, "memory_store", doubt, TurnContext(), "Hello.").details["id"] == other.id
    assert memory.get(other.id).review_state == "approved"


def test_an_audit_keeps_the_strongest_of_twins(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory()
    users = put(home, channel=Channel.USER, access_count=0)
    put(home, channel=Channel.IMPORT, access_count=9)
    pinned = put(home, channel=Channel.TOOL_UNASKED, pinned=True)
    memory.admin.audit(fix=True)
    assert {fact.id for fact in live(memory)} == {users.id, pinned.id}


def test_nothing_of_a_turn_is_lost_whatever_twin_is_there(open_memory: OpenMemory, home: Path) -> None:
    """The same sentence twice in one turn, with a twin of each kind, leaves one fact of the user's."""
    memory = open_memory()
    for channel in sorted(AGENTS_NOTE | {Channel.IMPORT}):
        put(home, channel=channel)
    in_a_turn(memory, f"{TEXT} {TEXT}")
    assert [(fact.channel, fact.reinforced_count) for fact in live(memory)] == [(Channel.USER, 1)]


def test_a_folder_with_twins_verifies(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory()
    put(home, channel=Channel.IMPORT)
    memory.store(TEXT)
    memory.undo()
    assert json.loads(json.dumps([asdict(finding) for finding in memory.admin.verify()])) == []
