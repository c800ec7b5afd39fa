"""The worker's feeding of LanceDB when rows are poisoned, the disk fails, or the table is lost."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.clock import ManualClock
from perdure.hooks.types import Channel
from perdure.lance.drift import check_files, compare
from perdure.lance.indexer import Indexer, mark_suspect
from perdure.lance.table import LanceIndex
from perdure.store import outbox
from perdure.store.fact import Fact
from perdure.store.outbox import IndexState, OutboxState
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector

AUTHOR = Author(Channel.LIBRARY)
SPACE = VectorSpace("made-up", 8, {"model": "made up"})
GOOD = np.eye(1, SPACE.dims, dtype="<f4").tobytes()
BAD = b"\0" * 8


@pytest.fixture
def store(store: Store) -> Store:
    store.adopt_space(SPACE)
    return store


def add(store: Store, *vectors: bytes) -> list[str]:
    with store.write(AUTHOR) as tx:
        return [tx.add(Fact("heron"), StoredVector(SPACE.id, vector)).id for vector in vectors]


def work(store: Store, crossover: int = 1_000_000) -> None:
    indexer = Indexer(store, lambda: None, 50, crossover=crossover)
    while indexer.step():
        pass
    indexer.close()


def known(store: Store) -> IndexState:
    with store.database.read() as connection:
        return outbox.index_state(connection, SPACE.id)


def parked(store: Store) -> dict[str, str]:
    with store.database.read() as connection:
        return dict(outbox.parked(connection))


def indexed(store: Store) -> set[str]:
    index = LanceIndex(store.lance_folder, SPACE.id, SPACE.dims, create=False, generation=known(store).generation)
    ids = index.ids()
    index.close()
    return ids


def anew(store: Store) -> None:
    Indexer(store, lambda: None, 50).restart("a test")
    work(store)


class TestPoison:
    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(poisoned=st.sets(st.integers(0, 49), max_size=50))
    def test_only_the_poisoned_are_parked(self, tmp_path_factory: pytest.TempPathFactory, poisoned: set[int]) -> None:
        store = Store(tmp_path_factory.mktemp("store"))
        store.adopt_space(SPACE)
        ids = add(store, *(BAD if number in poisoned else GOOD for number in range(50)))
        work(store)
        assert parked(store) == {ids[number]: "InputError" for number in poisoned}
        assert indexed(store) == {fact_id for number, fact_id in enumerate(ids) if number not in poisoned}
        assert store.outbox_state().waiting == 0
        store.close()

    def test_a_parked_one_is_reported_and_tried_again_with_a_new_table(self, store: Store) -> None:
        good, bad = add(store, GOOD, BAD)
        work(store)
        assert store.outbox_state() == OutboxState(0, 1, None)
        with store.database.write() as connection:
            run(connection, "UPDATE vectors SET vector = ? WHERE fact_id = ?", (GOOD, bad))
        anew(store)
        assert indexed(store) == {good, bad}
        assert store.outbox_state() == OutboxState(0, 0, None)

    def test_a_new_vector_gets_past_the_parked_one(self, store: Store) -> None:
        [bad] = add(store, BAD)
        work(store)
        with store.write(AUTHOR) as tx:
            tx.put_vector(bad, StoredVector(SPACE.id, GOOD))
        work(store)
        assert indexed(store) == {bad}


class TestDisk:
    def test_when_lancedb_fails_as_a_whole_nothing_is_parked(self, store: Store, clock: ManualClock) -> None:
        store.lance_folder.write_text("not a folder")
        ids = add(store, *[GOOD] * 5)
        indexer = Indexer(store, lambda: None, 50)
        assert not indexer.step()
        first = store.outbox_state()
        assert (first.waiting, first.parked, first.retry_at) == (5, 0, clock.now() + 30)
        store.lance_folder.unlink()
        assert not indexer.step()
        clock.advance(31)
        assert indexer.step()
        indexer.close()
        assert indexed(store) == set(ids)
        assert store.outbox_state() == OutboxState(0, 0, None)

    def test_it_is_left_alone_for_longer_each_time(self, store: Store, clock: ManualClock) -> None:
        store.lance_folder.write_text("not a folder")
        add(store, GOOD, BAD)
        waits = []
        for _ in range(9):
            work(store)
            waits.append((store.outbox_state().retry_at or 0.0) - clock.now())
        assert waits[:3] == [30, 60, 120]
        assert waits[-1] == 3600
        assert (store.outbox_state().waiting, store.outbox_state().parked) == (2, 0)


class TestTheTableIsLost:
    def test_a_deleted_folder_is_filled_again(self, store: Store) -> None:
        ids = add(store, *[GOOD] * 7)
        work(store)
        shutil.rmtree(store.lance_folder)
        work(store)
        assert indexed(store) == set(ids)
        assert not compare(store)

    def test_also_when_a_new_fact_comes_first(self, store: Store) -> None:
        ids = add(store, *[GOOD] * 7)
        work(store)
        shutil.rmtree(store.lance_folder)
        ids += add(store, GOOD)
        work(store)
        assert indexed(store) == set(ids)

    def test_a_table_that_went_back_is_made_anew(self, store: Store) -> None:
        ids = add(store, *[GOOD] * 3)
        work(store)
        ids += add(store, GOOD)
        work(store)
        for path in sorted(store.lance_folder.glob("*.lance/_versions/*.manifest"))[:3]:
            path.unlink()
        ids += add(store, GOOD)
        work(store)
        assert known(store).generation == 1
        assert indexed(store) == set(ids)
        assert not compare(store)

    def test_a_damaged_table_is_made_anew_once_a_search_has_complained(self, store: Store) -> None:
        ids = add(store, *[GOOD] * 3)
        work(store)
        data = next(store.lance_folder.glob("*.lance/data/*"))
        data.write_bytes(data.read_bytes()[:-9] + b"x" * 9)
        assert check_files(store)
        mark_suspect(store)
        work(store)
        assert known(store).generation == 1
        assert not known(store).suspect
        assert check_files(store) == []
        assert indexed(store) == set(ids)

    def test_a_whole_one_is_kept_when_a_search_has_complained(self, store: Store) -> None:
        add(store, GOOD)
        work(store)
        before = known(store)
        mark_suspect(store)
        work(store)
        assert known(store) == before


class TestRebuild:
    def test_from_sqlite_alone(self, store: Store) -> None:
        ids = add(store, *[GOOD] * 2_500)
        with store.write(AUTHOR) as tx:
            tx.supersede(ids[0], ids[1])
        for generation in (1, 2):
            anew(store)
            assert known(store).generation == generation
            assert indexed(store) == set(ids[1:])
            assert not compare(store)
        assert len(list(store.lance_folder.glob("*.lance"))) == 1

    def test_a_kill_leaves_the_rest_in_the_outbox(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("perdure.lance.indexer.LARGEST", 1_000)
        ids = add(store, *[GOOD] * 1_500)
        work(store)
        indexer = Indexer(store, lambda: None, 50)
        indexer.restart("a test")
        assert indexer.step()
        del indexer
        assert 0 < store.outbox_state().waiting < 1_500
        work(store)
        assert indexed(store) == set(ids)
        assert not compare(store)


class TestTraining:
    def test_above_the_crossover_and_again_when_it_has_doubled(self, store: Store) -> None:
        trained = []
        for count in (299, 1, 200, 100):
            add(store, *[GOOD] * count)
            work(store, crossover=300)
            trained.append(known(store).trained)
        assert trained == [0, 300, 300, 600]

    def test_a_store_that_was_indexed_before_the_crossover_was_lowered(self, store: Store) -> None:
        add(store, *[GOOD] * 300)
        work(store)
        assert known(store).trained == 0
        work(store, crossover=300)
        assert known(store).trained == 300

    def test_fragments_stay_few(self, store: Store) -> None:
        indexer = Indexer(store, lambda: None, 50)
        for _ in range(70):
            add(store, GOOD)
            assert indexer.step()
        indexer.close()
        # Each write leaves a fragment; merging them after 32 keeps every search from paying for them.
        index = LanceIndex(store.lance_folder, SPACE.id, SPACE.dims, create=False)
        assert sum(1 for _ in index.chunks(["id"])) <= 2
        index.close()


def test_a_large_backlog_takes_few_writes(store: Store) -> None:
    ids = add(store, *[GOOD] * 2_500)
    indexer = Indexer(store, lambda: None, 50, crossover=1_000_000)
    steps = 0
    while indexer.step():
        steps += 1
    indexer.close()
    assert steps == 2  # one write, and the index of words
    assert indexed(store) == set(ids)
