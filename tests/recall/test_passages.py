"""Passages of past conversations earn their place in a block."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import Channel, TurnContext
from tests.kit import DAY, START, OpenMemory, for_each

ASKED = "What about the kayak in Tarifa?"


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory(embedder="none")


def record(memory: Memory, *texts: str, at: float = START - 3 * DAY, session: str = "then") -> None:
    said = [
        {"role": "user", "name": "Ada", "content": text, "timestamp": at + number} for number, text in enumerate(texts)
    ]
    assert memory.files.add_transcript(said, session) == len(texts)
    memory.files.sync()


def block(memory: Memory, prompt: str = ASKED) -> str:
    found = memory.turns.before(prompt, TurnContext(session_id="now"))
    return found.block if found else ""


@for_each(
    ("said", "shown"),
    [
        ("What does a kayak in Tarifa cost?", False),
        ("Find me a kayak in Tarifa.", False),
        ("Can you book the kayak in Tarifa?", False),
        ("Is there a kayak in Tarifa? And where in Tarifa is the kayak?", False),
        ("Forget that the kayak is in Tarifa.", False),
        ("Vergiss, dass das kayak in Tarifa ist.", False),
        ("Please forget that the kayak is in Tarifa. Where is the kayak?", False),
        ("The kayak is kept in Tarifa.", True),
        ("Forget that I own a car. The kayak is kept in Tarifa.", True),
        ("My kayak is in Tarifa, is it windy there?", True),
        ("Find me a shed. The kayak has been in Tarifa since May.", True),
    ],
)
def test_what_the_user_only_asked_for_is_no_memory(
    open_memory: OpenMemory, tmp_path: Path, said: str, shown: bool
) -> None:
    memory = open_memory(tmp_path / str(abs(hash(said))), embedder="none")
    record(memory, said)
    assert ("kayak" in block(memory)) == shown


def test_the_day_is_told_that_a_word_meant_and_who_spoke(memory: Memory) -> None:
    # Said on Tuesday, 12 January 2027.
    record(memory, "We brought the kayak to Tarifa last Friday, and tomorrow the rack comes.")
    shown = block(memory)
    assert "Ada: We brought the kayak to Tarifa last Friday (8 January), and tomorrow (13 January) the rack" in shown
    assert "[sessions/2027-01-12]" in shown


def test_what_a_fact_says_is_not_said_again(memory: Memory) -> None:
    record(memory, "Hi there! Our kayak is kept in Tarifa. Do you see?")
    assert block(memory).count("kayak") == 1
    memory.store("The kayak is kept in Tarifa.")
    assert block(memory).count("kayak") == 1
    record(memory, "The kayak is kept in Tarifa, in the shed of Ramon.", session="later")
    assert "Ramon" in block(memory)


def test_what_another_passage_says_is_not_said_again_and_the_newest_stays(memory: Memory, clock: ManualClock) -> None:
    for number in range(3):
        record(memory, "The kayak is kept in Tarifa.", at=clock.now() + number * DAY, session=f"{number}")
    clock.advance(3 * DAY)
    assert block(memory).count("kayak") == 1
    assert "2027-01-17" in block(memory)


def test_what_was_replaced_says_so_and_what_is_said_again_does_not(memory: Memory, clock: ManualClock) -> None:
    old = memory.store("The kayak is kept in Tarifa.", channel=Channel.USER)
    record(memory, "The kayak is kept in Tarifa.")
    clock.advance(DAY)
    memory.store("The kayak is kept in Faro.", channel=Channel.USER, supersedes=old.id)
    assert "Ada: The kayak is kept in Tarifa. (earlier, 2027-01-12)" in block(memory)
    record(memory, "I paint. The kayak is kept in Tarifa. It is green, that kayak.", session="long")
    assert '(out of date: "The kayak is kept in Tarifa.")' in block(memory)
    clock.advance(DAY)
    record(memory, "The kayak is kept in Tarifa.", at=clock.now(), session="again")
    assert any("Tarifa" in line and "earlier" not in line for line in block(memory).split("\n") if "2027-01-17" in line)


def test_what_was_forgotten_is_not_shown(memory: Memory) -> None:
    fact = memory.store("The kayak is kept in Tarifa.")
    record(memory, "The kayak is kept in Tarifa.")
    memory.forget(fact.id)
    assert block(memory) == ""
