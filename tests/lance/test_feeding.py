"""A store has a derived table only when recall will soon read it; until then nothing waits for one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.clock import ManualClock
from perdure.hooks.types import Channel
from perdure.index.feeding import END_BELOW, FEED_FROM, Feeding, IndexFeed, Mode
from perdure.lance.drift import compare
from perdure.lance.indexer import Indexer, mark_suspect
from perdure.store import outbox
from perdure.store.fact import Fact
from perdure.store.outbox import IndexState
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector

SPACE = VectorSpace("space", 2, {})
AUTHOR = Author(Channel.LIBRARY)
CROSSOVER = 50
ENOUGH = int(FEED_FROM * CROSSOVER)
LEFT = int(END_BELOW * CROSSOVER)
VECTOR = StoredVector(SPACE.id, b"\0\0\x80\x3f\0\0\0\0")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "home", clock=ManualClock())
    opened.adopt_space(SPACE)
    yield opened
    opened.close()


def add(store: Store, count: int) -> list[str]:
    with store.write(AUTHOR) as tx:
        return [tx.add(Fact(f"Note {store.clock.now()} {number}."), VECTOR).id for number in range(count)]


def looked(store: Store, mode: Mode = "auto") -> int:
    """Return how often the worker is started by a look at a store in which whatever waits is due."""
    started: list[int] = []
    feeding = Feeding(store.database, mode, CROSSOVER)
    IndexFeed(store, feeding, lambda: started.append(1), batch=1, seconds=0.0).look()
    return len(started)


def worker(store: Store, mode: Mode = "auto") -> Indexer:
    feeding = Feeding(store.database, mode, CROSSOVER)
    return Indexer(store, lambda: None, 10, crossover=CROSSOVER, feeding=feeding)


def work(store: Store, mode: Mode = "auto") -> None:
    indexer = worker(store, mode)
    while indexer.step():
        pass
    indexer.close()


def state(store: Store) -> tuple[bool, IndexState]:
    with store.database.read() as connection:
        return outbox.fed(connection), outbox.index_state(connection, SPACE.id)


def test_a_small_store_starts_no_worker_and_queues_nothing(store: Store) -> None:
    add(store, ENOUGH - 1)
    assert looked(store) == 0
    work(store)
    mark_suspect(store)
    assert store.outbox_state().waiting == 0
    assert not store.lance_folder.exists()
    assert state(store) == (False, IndexState())


def test_a_table_is_built_whole_before_it_is_needed_and_fed_from_then_on(store: Store) -> None:
    first = add(store, ENOUGH)
    assert looked(store) == 1
    assert store.outbox_state().waiting == 0
    work(store)
    assert looked(store) == 0
    more = add(store, 3)
    assert store.outbox_state().waiting == 3
    assert looked(store) == 1
    work(store)
    assert not compare(store)
    assert state(store)[1].version
    with store.write(AUTHOR) as tx:
        for fact_id in [*first, *more][LEFT:]:
            tx.remove(fact_id, "prune")
    # Between the two sizes it goes on.
    add(store, 2)
    assert store.outbox_state().waiting
    work(store)
    assert not compare(store)


@pytest.mark.parametrize(("mode", "starts"), [("auto", 0), ("exact", 0), ("lance", 1)])
def test_one_vector_begins_a_table_only_where_it_is_asked_for(store: Store, mode: Mode, starts: int) -> None:
    assert looked(store, mode) == 0
    add(store, 1)
    assert looked(store, mode) == starts
    work(store, mode)
    assert state(store)[0] is bool(starts)
    assert store.lance_folder.exists() is bool(starts)


def test_exact_begins_none_however_large(store: Store) -> None:
    add(store, 2 * CROSSOVER)
    assert looked(store, "exact") == 0
    work(store, "exact")
    assert not store.lance_folder.exists()


def test_what_an_earlier_version_queued_for_no_table_is_dropped(store: Store) -> None:
    [fact_id] = add(store, 1)
    with store.database.write() as connection:
        run(connection, "INSERT INTO outbox (fact_id, queued_at) VALUES (?, 0)", (fact_id,))
    assert looked(store) == 0
    assert store.outbox_state().waiting == 0


def test_the_table_of_a_small_store_is_removed_once_it_is_proved_to_be_derived(store: Store) -> None:
    ids = add(store, LEFT - 2)
    work(store, "lance")
    with store.write(AUTHOR) as tx:
        tx.supersede(ids[0], ids[1])
    add(store, 1)
    assert worker(store, "lance").optimise().endswith(" rows")
    assert store.lance_folder.exists()
    assert "table removed" in worker(store).optimise()
    assert not store.lance_folder.exists()
    assert store.outbox_state().waiting == 0
    # A reader may still have the former one open.
    assert state(store) == (False, IndexState(1))
    add(store, 1)
    assert looked(store) == store.outbox_state().waiting == 0
    work(store, "lance")
    assert state(store)[1].generation == 1
    assert not compare(store)


@pytest.mark.parametrize("harm", ["lost", "changed", "unreadable"])
def test_a_table_that_may_hold_what_is_nowhere_else_is_kept(store: Store, harm: str) -> None:
    fact_id = add(store, LEFT - 2)[0]
    work(store, "lance")
    with store.database.write() as connection:
        if harm == "lost":
            run(connection, "DELETE FROM vectors WHERE fact_id = ?", (fact_id,))
            run(connection, "DELETE FROM facts WHERE id = ?", (fact_id,))
        elif harm == "changed":
            run(connection, "UPDATE facts SET text = 'Other words.' WHERE id = ?", (fact_id,))
    if harm == "unreadable":
        for path in store.lance_folder.rglob("*.manifest"):
            path.write_bytes(b"nothing")
    assert "is kept" in worker(store).optimise()
    assert store.lance_folder.exists()
    assert state(store)[0]


def test_a_table_whose_folder_is_gone_is_given_up_as_well(store: Store) -> None:
    add(store, 2)
    work(store, "lance")
    shutil.rmtree(store.lance_folder)
    work(store)
    assert "table removed" in worker(store).optimise()
    assert state(store)[0] is False
