"""What was of the moment ends with its session, or when the next one begins; what lasts goes on."""

from __future__ import annotations

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import TurnContext
from tests.kit import DAY, OpenMemory, recalled, say

PERSONA = "Always write in an upbeat tone in this story."
LASTING = "Always use tabs in my code."
WORDS = "Do I want an upbeat tone in what you write?"


def states(memory: Memory) -> dict[str, str]:
    assert memory.settle()
    return {each.fact.text: each.state.value for each in memory.admin.inventory().facts}


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    """A memory to which a part was given in one session, and a wish that lasts told."""
    opened = open_memory(record_sessions=False)
    say(opened, PERSONA, LASTING, session="one")
    assert set(states(opened).values()) == {"present"}
    return opened


def asked(memory: Memory, session: str) -> str:
    found = memory.turns.before(WORDS, TurnContext(session_id=session))
    return found.block if found else ""


def ended(memory: Memory) -> bool:
    return [text for text, state in states(memory).items() if state == "present"] == [LASTING]


def test_it_ends_with_its_session_alone(memory: Memory) -> None:
    memory.turns.session_end(TurnContext(session_id="another"))
    assert not ended(memory)
    memory.turns.before_compaction([], TurnContext(session_id="one"))
    assert not ended(memory)
    memory.turns.session_end(TurnContext(session_id="one"))
    assert ended(memory)
    assert recalled(memory, WORDS) == []


def test_it_is_of_its_session_alone_and_ends_when_the_next_begins(memory: Memory) -> None:
    assert "upbeat" in asked(memory, "one")
    assert not ended(memory)
    assert "upbeat" not in asked(memory, "two")
    assert ended(memory)


def test_a_session_that_goes_on_ends_nothing_of_its_own(memory: Memory) -> None:
    memory.turns.session_start(TurnContext(session_id="one"))
    assert not ended(memory)
    memory.turns.session_start(TurnContext(session_id="two"))
    assert ended(memory)


def test_without_a_session_it_lives_for_a_day(open_memory: OpenMemory, clock: ManualClock) -> None:
    memory = open_memory()
    memory.turns.after([{"role": "user", "content": PERSONA}], True, TurnContext())
    memory.turns.session_start(TurnContext(session_id="two"))
    assert set(states(memory).values()) == {"present"}
    clock.advance(DAY)
    assert set(states(memory).values()) == {"expired"}


def test_no_session_begins_with_it(memory: Memory) -> None:
    # Else what was said in a session is not repeated in it.
    memory.turns.before_compaction([], TurnContext(session_id="one"))
    found = memory.turns.opening(TurnContext(session_id="one"))
    assert found is not None
    assert [item.text for item in found.items] == [LASTING]
