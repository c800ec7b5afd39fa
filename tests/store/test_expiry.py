"""The end of a fact's life: out of every answer, journalled and undoable; much later out of both stores."""

from __future__ import annotations

from pathlib import Path

import lancedb
import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import NotFoundError
from perdure.store.sql import run
from perdure.store.store import Store
from tests.kit import DAY, START, OpenMemory, recalled, say

TEXT = "The staging database is called heron."
HOUR = 3600.0


def tables(home: Path, fact_id: str) -> list[str]:
    """Return the tables that hold something of a fact."""
    store = Store(home)
    with store.database.read() as connection:
        found = [
            table
            for table, column in (("facts", "id"), ("vectors", "fact_id"), ("memory_links", "target_fact_id"))
            if run(connection, f"SELECT 1 FROM {table} WHERE {column} = ?", (fact_id,))
        ]
        if run(connection, "SELECT 1 FROM facts_fts WHERE facts_fts MATCH 'heron'"):
            found.append("facts_fts")
    store.close()
    return found


def test_what_is_over_expires_softly_and_can_be_undone(memory: Memory, clock: ManualClock) -> None:
    fact = memory.store(TEXT, decay_class="session")
    clock.advance(23 * HOUR)
    assert memory.admin.prune().expired == ()
    clock.advance(2 * HOUR)
    done = memory.admin.prune()
    assert (done.expired, done.removed, done.parked) == ((fact.id,), (), None)
    assert recalled(memory, "staging database") == []
    assert recalled(memory, "staging database", as_of=START + HOUR) == [TEXT]
    assert recalled(memory, "staging database", as_of=START + 24.5 * HOUR) == []
    assert [change.action for change in memory.admin.changes()] == ["add", "expire"]
    assert memory.admin.prune().expired == ()
    assert memory.undo(done.batch).facts == (fact.id,)
    assert recalled(memory, "staging database") == [TEXT]
    assert memory.get(fact.id).expires_at == clock.now() + DAY
    assert memory.admin.verify() == []


def test_unforget_brings_an_expired_fact_back(memory: Memory, clock: ManualClock) -> None:
    fact = memory.store(TEXT, decay_class="session")
    clock.advance(2 * DAY)
    memory.admin.prune()
    assert memory.unforget(fact.id).valid_until is None
    assert recalled(memory, "staging database") == [TEXT]


def test_an_expiry_is_nobodys_last_change(memory: Memory, clock: ManualClock) -> None:
    memory.store(TEXT, decay_class="session")
    clock.advance(2 * DAY)
    kept = memory.store("The kettle in the kitchen is broken.")
    assert memory.admin.prune().expired
    assert memory.undo().facts == (kept.id,)


def test_what_is_uncertain_stays_and_so_does_what_is_pinned(memory: Memory, clock: ManualClock) -> None:
    faint = memory.store(TEXT, decay_class="stable")
    memory.update(faint.id, confidence=0.01)
    pinned = memory.store("The kettle in the kitchen is broken.", decay_class="session")
    memory.pin(pinned.id)
    # Past three quarters of its ninety days it counts half as certain: that moves it down, and does not take it away.
    clock.advance(89 * DAY)
    assert memory.admin.prune().expired == ()
    assert recalled(memory, "staging database") == ["The kettle in the kitchen is broken.", TEXT]
    clock.advance(1000 * DAY)
    assert pinned.id not in memory.admin.prune().expired


def test_what_nobody_gave_an_end_is_there_for_good(memory: Memory, clock: ManualClock) -> None:
    memory.store(TEXT)
    say(memory, "I'm allergic to bees.")
    clock.advance(10_000 * DAY)
    done = memory.admin.prune()
    assert (done.expired, done.removed, done.parked) == ((), (), None)
    assert recalled(memory, "staging database") == [TEXT]
    assert len(memory.admin.live_ids()) == 2


@pytest.mark.sqlite
def test_removal_from_both_stores_after_the_retention(open_memory: OpenMemory, clock: ManualClock, home: Path) -> None:
    memory = open_memory(embedder="hash", vector_index="lance", keep={"expired_days": 10})
    assert memory.ready()
    fact = memory.store(TEXT, decay_class="session")
    other = memory.store("The kettle in the kitchen is broken.")
    memory.link(other.id, fact.id)
    clock.advance(2 * DAY)
    memory.admin.prune()
    clock.advance(9 * DAY)
    assert memory.admin.prune().removed == ()
    assert tables(home, fact.id) == ["facts", "vectors", "memory_links", "facts_fts"]
    clock.advance(1 * DAY)
    assert memory.admin.prune(dry_run=True).removed == (fact.id,)
    assert memory.admin.prune().removed == (fact.id,)
    assert tables(home, fact.id) == []
    assert memory.admin.sync_index()
    assert memory.admin.verify() == []
    memory.close()
    database = lancedb.connect(home / "lancedb")
    [name] = database.list_tables().tables
    assert database.open_table(name).to_arrow()["id"].to_pylist() == [other.id]


def test_the_retention_counts_from_the_prune_not_from_a_time_when_nobody_looked(
    memory: Memory, clock: ManualClock
) -> None:
    fact = memory.store(TEXT, decay_class="session")
    clock.advance(300 * DAY)
    assert (memory.admin.prune().expired, memory.admin.prune().removed) == ((fact.id,), ())
    clock.advance(364 * DAY)
    assert memory.admin.prune().removed == ()
    clock.advance(1 * DAY)
    assert memory.admin.prune().removed == (fact.id,)
    with pytest.raises(NotFoundError):
        memory.get(fact.id)


class TestMassExpiry:
    def test_it_is_refused_and_status_says_so_until_the_clock_is_right(
        self, memory: Memory, clock: ManualClock
    ) -> None:
        for number in range(12):
            memory.store(f"The heron of lake {number} nests early", decay_class="stable")
        clock.advance(3650 * DAY)
        done = memory.admin.prune()
        assert done.parked is not None
        assert (done.parked.facts, done.parked.total, done.expired) == (12, 12, ())
        assert "12 of 12 memories would expire" in str(memory.status().parked_expiry)
        assert memory.admin.run_job("prune").startswith("paused: 12 of 12")
        assert "expire" not in {change.action for change in memory.admin.changes()}
        clock.set(START + DAY)
        assert memory.admin.prune().parked is None
        assert memory.status().parked_expiry is None
        assert len(memory.admin.live_ids()) == 12

    def test_a_word_lets_them_go(self, memory: Memory, clock: ManualClock) -> None:
        for number in range(12):
            memory.store(f"The heron of lake {number} nests early", decay_class="stable")
        clock.advance(3650 * DAY)
        assert memory.admin.prune(dry_run=True).parked is not None
        assert memory.status().parked_expiry is None, "a dry run leaves nothing behind"
        assert memory.admin.prune().parked is not None
        done = memory.admin.prune(confirmed=True)
        assert len(done.expired) == 12
        assert memory.status().parked_expiry is None
        assert len(memory.undo(done.batch).facts) == 12

    def test_a_fifth_is_not_too_much(self, memory: Memory, clock: ManualClock) -> None:
        for number in range(60):
            memory.store(f"The heron of lake {number} nests early", decay_class="session" if number < 12 else "stable")
        clock.advance(2 * DAY)
        assert len(memory.admin.prune().expired) == 12


def test_receipts_and_conversations_are_dropped_in_their_time(
    open_memory: OpenMemory, clock: ManualClock, home: Path
) -> None:
    memory = open_memory(keep={"receipt_days": 5, "conversation_days": 0})
    memory.store(TEXT)
    assert recalled(memory, "staging database") == [TEXT]
    memory.files.add_transcript([{"role": "user", "content": "Where is the heron?"}], "old")
    assert memory.settle()
    assert list((home / "transcripts").rglob("*.jsonl"))
    clock.advance(6 * DAY)
    assert memory.admin.run_job("prune") == "1 receipts dropped, 1 conversations dropped"
    assert not list((home / "transcripts").rglob("*.jsonl"))
    with pytest.raises(NotFoundError):
        memory.why()
    assert memory.admin.run_job("prune") == "nothing is due"


def test_what_is_pinned_does_not_end(memory: Memory, clock: ManualClock) -> None:
    fact = memory.pin(memory.store("The heron nests at the mill.", decay_class="session").id)
    clock.advance(400 * 86_400.0)
    assert fact.id in memory.admin.live_ids()
    memory.pin(fact.id, False)
    assert fact.id in memory.admin.live_ids()
    clock.advance(400 * 86_400.0)
    assert fact.id not in memory.admin.live_ids()
