"""Recorded conversations are captured afterwards, once, and take the place of nothing said since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.errors import StoreBusyError
from perdure.hooks.types import Channel, TurnContext
from perdure.store.transaction import Author

START = 1_800_000_000.0
SAID = [
    {"role": "user", "content": "My sister lives in Porto.", "timestamp": START - 9e6},
    {"role": "assistant", "content": "I love Porto, my brother lives there.", "timestamp": START - 9e6},
    {"role": "user", "content": "I prefer tea over coffee.", "timestamp": START - 9e6},
]


def texts(memory: Memory) -> set[str]:
    return {fact.text for fact in memory.admin.list(limit=1_000)}


def test_what_people_said_in_a_record_becomes_memories(memory: Memory) -> None:
    memory.files.add_transcript(SAID, "old")
    done = memory.upkeep.distill()
    assert (done.sessions, done.messages, done.added) == (1, 2, 2)
    assert texts(memory) == {"My sister lives in Porto.", "I prefer tea over coffee."}
    facts = memory.admin.list()
    assert {(fact.channel, fact.source_date, fact.provenance_session) for fact in facts} == {
        (Channel.TRANSCRIPT_USER, START - 9e6, "old")
    }


def test_again_it_adds_and_changes_nothing_and_goes_on_with_what_is_new(memory: Memory) -> None:
    memory.files.add_transcript(SAID, "old")
    memory.upkeep.distill()
    before = [(fact.id, fact.change_seq) for fact in memory.admin.list()]
    assert memory.upkeep.distill().messages == 0
    assert [(fact.id, fact.change_seq) for fact in memory.admin.list()] == before
    memory.files.add_transcript([*SAID, {"role": "user", "content": "My dog is called Rex."}], "old")
    assert memory.upkeep.distill().messages == 1
    assert len(texts(memory)) == 3


def test_a_dry_run_only_counts(memory: Memory) -> None:
    memory.files.add_transcript(SAID, "old")
    assert (memory.upkeep.distill(dry_run=True).messages, texts(memory)) == (2, set())
    assert memory.upkeep.distill().added == 2


def test_what_was_captured_while_it_went_on_is_left_alone(memory: Memory) -> None:
    memory.turns.after(SAID, True, TurnContext(session_id="live"))
    assert memory.settle()
    before = [(fact.id, fact.change_seq) for fact in memory.admin.list()]
    assert list(memory.upkeep.distill().skipped.values()) == ["captured during the conversation"]
    assert [(fact.id, fact.change_seq) for fact in memory.admin.list()] == before


def test_an_old_word_does_not_replace_a_newer_one(memory: Memory) -> None:
    newer = memory.store("I live in Oslo.")
    memory.files.add_transcript([{"role": "user", "content": "I live in Rome.", "timestamp": START - 9e6}], "old")
    memory.upkeep.distill()
    assert memory.get(newer.id).superseded_at is None


def test_a_record_confirms_and_approves_nothing_that_the_user_said(memory: Memory) -> None:
    kept = memory.store("I prefer tea over coffee.")
    waits = memory.store("My sister lives in Porto.")
    with memory._engine.store.write(Author(Channel.USER)) as tx:
        tx.change(waits.id, "hold", {"review_state": "pending"})
    before = [memory.get(fact.id) for fact in (kept, waits)]
    memory.files.add_transcript(SAID, "old")
    memory.upkeep.distill()
    assert [memory.get(fact.id) for fact in (kept, waits)] == before


def test_others_conversations_are_not_read(tmp_path: Path, memory: Memory) -> None:
    memory.files.add_transcript(SAID, "old")
    eva: dict[str, Any] = {"user": "eva", "embedder": "none", "watch": False}
    with Memory.open(tmp_path / "home", **eva) as other:
        assert other.upkeep.distill().sessions == 0


def test_stopped_halfway_it_goes_on_from_there(memory: Memory) -> None:
    many = [{"role": "user", "content": f"My locker number {n} is called Box {n}."} for n in range(120)]
    memory.files.add_transcript(many, "long")

    def stop(done: int, total: int) -> None:
        raise StoreBusyError("somebody stopped it")

    memory.files.add_transcript(SAID, "older")
    with pytest.raises(StoreBusyError):
        memory.upkeep.distill(progress=stop)
    some = texts(memory)
    assert 0 < len(some) < 122
    memory.upkeep.distill()
    assert some < texts(memory)
    assert len(memory.admin.list(limit=1_000)) == 122
