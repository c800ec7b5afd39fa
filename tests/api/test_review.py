"""What is over a limit waits for review; what waits is not recalled; every word on it can be taken back."""

from __future__ import annotations

import logging

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import TurnContext
from tests.kit import OpenMemory, complaints

PEOPLE = ("sister", "brother", "dentist", "neighbour", "landlord", "doctor", "teacher", "plumber")


def tell(memory: Memory, *texts: str, session: str = "s") -> None:
    for text in texts:
        memory.turns.after([{"role": "user", "content": text}], True, TurnContext(session_id=session))
    memory.settle()


def lines(first: int, last: int) -> list[str]:
    return [f"My {person} lives in house {number}." for number, person in enumerate(PEOPLE)][first:last]


def states(memory: Memory) -> dict[str, str]:
    return {fact.text: fact.review_state for fact in memory.admin.list(limit=100)}


def test_a_flood_in_one_message_waits_for_review_and_nothing_is_lost(
    open_memory: OpenMemory, caplog: pytest.LogCaptureFixture
) -> None:
    memory = open_memory(capture_limits={"turn": 3})
    pinned = memory.pin(memory.store("My favourite colour is teal.").id)
    with caplog.at_level(logging.WARNING):
        tell(memory, " ".join(lines(0, 8)))
    assert sorted(states(memory)) == sorted([pinned.text, *lines(0, 8)])
    assert [states(memory)[text] for text in lines(0, 8)] == ["approved"] * 3 + ["pending"] * 5
    assert memory.status().review == 5
    assert complaints(caplog) == [
        "5 memories of one turn are pending review: over the limit of 3 memories in one turn; see perdure review"
    ]
    assert memory.get(pinned.id).pinned
    assert memory.get(pinned.id).review_state == "approved"
    assert all("over the limit" in fact.metadata["review"] for fact in memory.admin.review())


def test_a_conversation_has_a_limit_and_another_one_goes_on(open_memory: OpenMemory) -> None:
    memory = open_memory(capture_limits={"session": 2})
    tell(memory, *lines(0, 3))
    tell(memory, *lines(3, 5), session="other")
    assert [states(memory)[text] for text in lines(0, 5)] == [*["approved"] * 2, "pending", *["approved"] * 2]


def test_a_day_has_a_limit_and_the_next_one_goes_on(open_memory: OpenMemory, clock: ManualClock) -> None:
    memory = open_memory(capture_limits={"day": 2})
    for number, text in enumerate(lines(0, 3)):
        tell(memory, text, session=str(number))
    clock.advance(90_000.0)
    tell(memory, lines(3, 4)[0], session="later")
    assert [states(memory)[text] for text in lines(0, 4)] == ["approved", "approved", "pending", "approved"]


def test_what_is_said_again_costs_nothing_of_the_limit(open_memory: OpenMemory) -> None:
    memory = open_memory(capture_limits={"turn": 2})
    tell(memory, f"{lines(0, 1)[0]} {lines(0, 1)[0]} {lines(0, 1)[0]} {lines(1, 2)[0]}")
    assert set(states(memory).values()) == {"approved"}


def test_what_waits_takes_nobodys_place_until_it_is_approved(open_memory: OpenMemory, clock: ManualClock) -> None:
    memory = open_memory(capture_limits={"day": 1})
    tell(memory, "I live in Graz.")
    clock.advance(60.0)
    tell(memory, "I moved to Linz.", session="other")
    [waiting] = memory.admin.review()
    assert [item.text for item in getattr(memory.recall("Where do I live?"), "items", ())] == ["I live in Graz."]
    memory.admin.approve(waiting.id[:8])
    assert [fact.value for fact in memory.lookup("user", "location")] == ["Linz"]
    memory.undo()
    assert {fact.value for fact in memory.lookup("user", "location")} == {"Graz", "Linz"}
    assert [fact.id for fact in memory.admin.review()] == [waiting.id]


def test_what_was_rejected_stays_out_until_it_is_stored_on_purpose(open_memory: OpenMemory) -> None:
    memory = open_memory(capture_limits={"turn": 1})
    tell(memory, " ".join(lines(0, 2)))
    [waiting] = memory.admin.review()
    assert memory.admin.reject(waiting.id, dry_run=True)[0].review_state == "pending"
    assert memory.admin.reject(waiting.id)[0].review_state == "rejected"
    assert memory.admin.review() == []
    tell(memory, lines(1, 2)[0], session="again")
    assert states(memory)[lines(1, 2)[0]] == "rejected"
    assert memory.recall("Where does my brother live?") is None
    memory.store(lines(1, 2)[0])
    assert states(memory)[lines(1, 2)[0]] == "approved"
    assert memory.recall("Where does my brother live?") is not None


def test_a_word_on_a_memory_is_journalled(open_memory: OpenMemory) -> None:
    memory = open_memory(capture_limits={"turn": 1})
    tell(memory, " ".join(lines(0, 3)))
    first, second = memory.admin.review()
    memory.admin.approve(first.id, first.id, second.id)
    assert [change.action for change in memory.admin.changes()][-2:] == ["approve", "approve"]
    assert len(memory.undo().facts) == 2
    assert len(memory.admin.review()) == 2


def test_what_is_not_there_changes_nothing(open_memory: OpenMemory) -> None:
    memory = open_memory(capture_limits={"turn": 1})
    tell(memory, " ".join(lines(0, 2)))
    [waiting] = memory.admin.review()
    with pytest.raises(NotFoundError, match="deadbeef"):
        memory.admin.approve(waiting.id, "deadbeef")
    with pytest.raises(InputError, match="no memory specified"):
        memory.admin.reject()
    assert [fact.id for fact in memory.admin.review()] == [waiting.id]


def test_a_conversation_delivered_twenty_times_is_captured_once(open_memory: OpenMemory) -> None:
    memory = open_memory()
    history = [
        message
        for text in lines(0, 5)
        for message in ({"role": "user", "content": text}, {"role": "assistant", "content": f"Noted: {text}"})
    ]
    context = TurnContext(session_id="s")
    for _ in range(20):
        memory.turns.after(history, True, context)
    memory.settle()
    assert sorted(states(memory)) == sorted(lines(0, 5))
    assert all(fact.reinforced_count == 0 for fact in memory.admin.list())
    memory.turns.after([*history, {"role": "user", "content": lines(5, 6)[0]}], True, context)
    memory.settle()
    assert sorted(states(memory)) == sorted(lines(0, 6))


@pytest.mark.parametrize("trigger", ["heartbeat", "cron", "subagent", "memory", "compaction", "system", ""])
def test_turns_that_nobody_began_keep_nothing(open_memory: OpenMemory, trigger: str) -> None:
    memory = open_memory(capture_assistant=True)
    context = TurnContext(session_id="s", trigger=trigger)
    said = [{"role": "user", "content": lines(0, 1)[0]}, {"role": "assistant", "content": "The host is called atlas."}]
    assert memory.turns.after(said, True, context) == 0
    assert memory.turns.before_compaction(said, context) == 0
    memory.settle()
    assert states(memory) == {}


def test_what_waits_comes_up_by_no_other_way_either(open_memory: OpenMemory) -> None:
    memory = open_memory(capture_limits={"turn": 1}, recall_profile="standing", directives={"entities": ["teapot"]})
    known = memory.store("The kettle stands in the kitchen.")
    tell(memory, "I live in Graz. My teapot is called Earl.")
    [waiting] = memory.admin.review()
    memory.pin(waiting.id)
    memory.link(known.id, waiting.id)
    for prompt in ("Where does the kettle stand?", "What is my teapot called?", waiting.text):
        recall = memory.recall(prompt)
        assert recall is None or waiting.id not in [item.id for item in recall.items]
    memory.admin.approve(waiting.id)
    recall = memory.recall("What is my teapot called?")
    assert recall is not None
    assert waiting.id in [item.id for item in recall.items]
