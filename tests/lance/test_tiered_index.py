"""Whatever answers, a large store's index gives what an exact comparison gives, and gives it at once."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perdure.clock import ManualClock
from perdure.hooks.types import Channel
from perdure.index.feeding import Mode
from perdure.index.vector_index import VectorHit, scan
from perdure.lance.indexer import Indexer, mark_suspect
from perdure.lance.table import LanceIndex
from perdure.lance.tiered import TieredIndex
from perdure.store.fact import Fact
from perdure.store.outbox import IndexState
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector

if TYPE_CHECKING:
    from perdure.embed.base import Vector

AUTHOR = Author(Channel.LIBRARY)
SPACE = VectorSpace("tiers", 16, {"model": "made up"})
CROSSOVER = 300
CHANCE = np.random.default_rng(7)
ROUND = np.eye(1, SPACE.dims, dtype=np.float32)[0]


def near(target: Vector, amount: float = 0.05) -> Vector:
    vector: Vector = target + amount * CHANCE.standard_normal(SPACE.dims).astype(np.float32)
    vector /= np.linalg.norm(vector)
    return vector


class SlowLance(LanceIndex):
    """LanceDB on a disk that hangs."""

    gate = threading.Event()

    def search(self, query: Vector, view: View, limit: int, *, at_least: int = 0) -> list[VectorHit]:
        if view.now:  # the searches that warm it up, at no time, still go through
            self.gate.wait()
        return super().search(query, view, limit, at_least=at_least)


class Large:
    """A store above the crossover, indexed, and an index of it."""

    def __init__(self, store: Store, mode: Mode = "auto", count: int = CROSSOVER + 20) -> None:
        self.store = store
        self.seconds = 0.0
        self.troubles = 0
        store.adopt_space(SPACE)
        self.ids = self.add([near(ROUND, 3.0) for _ in range(count)])
        self.work()
        self.index = self.open(mode)

    def open(self, mode: Mode = "auto") -> TieredIndex:
        return TieredIndex(
            self.store, SPACE, mode=mode, crossover=CROSSOVER, patience=30.0, on_trouble=self.trouble,
            now=lambda: self.seconds,
        )  # fmt: skip

    def by(self) -> str:
        return self.index.answered_by

    def trouble(self) -> None:
        self.troubles += 1

    def add(self, vectors: list[Vector], **more: str) -> list[str]:
        with self.store.write(AUTHOR) as tx:
            return [
                tx.add(Fact("heron", **more), StoredVector(SPACE.id, vector.tobytes())).id  # type: ignore[arg-type]
                for vector in vectors
            ]

    def work(self) -> None:
        indexer = Indexer(self.store, lambda: None, 50, crossover=CROSSOVER)
        while indexer.step():
            pass
        indexer.close()

    def view(self, audience: Audience | None = None) -> View:
        return View(audience or Audience.of(), self.store.clock.now())

    def found(self, query: Vector, limit: int = 10, view: View | None = None) -> list[str]:
        return [hit.id for hit in self.index.search(query, view or self.view(), limit)]

    def truth(self, query: Vector, limit: int = 10, view: View | None = None) -> list[str]:
        return [hit.id for hit in scan(self.store.database, SPACE.id, query, view or self.view(), limit)]

    def ready(self) -> None:
        """Let LanceDB be opened, as the first search does in the background."""
        self.found(ROUND)
        assert self.index.wait(60)


@pytest.fixture
def large(store: Store) -> Iterator[Large]:
    made = Large(store)
    yield made
    made.index.close()


class TestWhoAnswers:
    def test_the_matrix_below_the_crossover(self, store: Store) -> None:
        small = Large(store, count=CROSSOVER - 1)
        assert small.found(ROUND) == small.truth(ROUND)
        assert small.by() == "matrix"
        small.index.close()

    def test_a_scan_until_lancedb_is_open_and_then_lancedb(self, large: Large) -> None:
        assert large.found(ROUND) == large.truth(ROUND)
        assert large.by() == "scan"
        assert large.index.wait(60)
        assert large.found(ROUND) == large.truth(ROUND)
        assert large.by() == "lance"

    def test_the_matrix_while_the_crossover_is_passed(self, store: Store) -> None:
        growing = Large(store, count=CROSSOVER - 1)
        growing.found(ROUND)
        growing.add([near(ROUND) for _ in range(5)])
        growing.work()
        assert growing.found(ROUND) == growing.truth(ROUND)
        assert growing.by() == "matrix"
        growing.ready()
        assert growing.found(ROUND) == growing.truth(ROUND)
        assert growing.by() == "lance"
        growing.index.close()

    def test_what_a_setting_forces(self, store: Store) -> None:
        large = Large(store, "exact")
        assert large.found(ROUND) == large.truth(ROUND)
        assert large.by() == "matrix"
        large.index.close()

    @pytest.mark.parametrize("limit", [1, 10, 100])
    def test_the_matrix_finds_what_a_scan_finds_whoever_asks(self, store: Store, limit: int) -> None:
        large = Large(store, "exact")
        for agent, count in (("few", 5), ("many", 200)):
            large.add([near(ROUND, 3.0) for _ in range(count)], scope="agent", scope_target=agent)
        newest, *former = large.truth(ROUND, 40)
        with store.write(AUTHOR) as tx:
            for old in former:
                tx.supersede(old, newest)
        for reader in (None, "few", "many", "nobody"):
            view = large.view(Audience.of(agent=reader))
            for _ in range(5):
                query = near(ROUND, 3.0)
                assert large.found(query, limit, view) == large.truth(query, limit, view)
        assert large.by() == "matrix"
        large.index.close()

    def test_lancedb_by_force_in_a_small_store(self, store: Store) -> None:
        small = Large(store, "lance", count=9)
        small.ready()
        assert small.found(ROUND) == small.truth(ROUND)
        assert small.by() == "lance"
        small.index.close()

    def test_a_scan_for_other_times(self, large: Large) -> None:
        large.ready()
        with large.store.write(AUTHOR) as tx:
            tx.supersede(large.ids[0], large.ids[1])
        former = replace(large.view(), include_superseded=True)
        earlier = replace(large.view(), as_of=large.store.clock.now() - 1)
        for view in (former, earlier):
            assert large.found(ROUND, 1_000, view) == large.truth(ROUND, 1_000, view)
            assert large.by() == "scan"
        assert large.ids[0] in large.found(ROUND, 1_000, former)


class TestRightAtOnce:
    def test_fresh_superseded_forgotten_and_moved_rows(self, large: Large) -> None:
        large.ready()
        fresh = large.add([near(ROUND), near(ROUND)])
        assert set(large.found(ROUND, 2)) == set(fresh)
        with large.store.write(AUTHOR) as tx:
            tx.supersede(fresh[0], large.ids[0])
            tx.supersede(large.ids[1], large.ids[2])
            tx.put_vector(large.ids[3], StoredVector(SPACE.id, ROUND.tobytes()))
            tx.put_vector(large.ids[4], StoredVector(SPACE.id, (-ROUND).tobytes()))
        assert large.found(ROUND, 2) == [large.ids[3], fresh[1]]
        found = large.found(ROUND, 1_000)
        assert large.by() == "lance"
        assert found == large.truth(ROUND, 1_000)
        assert found[-1] == large.ids[4]
        assert not {fresh[0], large.ids[1]} & set(found)

    def test_when_more_of_the_best_are_gone_than_were_asked_for(self, large: Large) -> None:
        large.ready()
        gone = large.truth(ROUND, 60)
        with large.store.write(AUTHOR) as tx:
            for fact_id in gone[:59]:
                tx.supersede(fact_id, gone[59])
        assert large.found(ROUND, 3) == large.truth(ROUND, 3)
        assert large.by() == "lance"

    def test_what_the_worker_did_since(self, large: Large) -> None:
        large.ready()
        for _ in range(3):
            [new] = large.add([near(ROUND, 0.01)])
            large.work()
            assert new in large.found(ROUND, 3)
            assert large.by() == "lance"

    def test_only_the_scopes_of_the_caller(self, large: Large) -> None:
        mine = large.add([near(ROUND, 3.0)], scope="agent", scope_target="me")
        large.add([near(ROUND) for _ in range(40)], scope="agent", scope_target="other")
        large.work()
        large.ready()
        view = large.view(Audience.of(agent="me"))
        found = large.found(ROUND, 1_000, view)
        assert large.by() == "lance"
        assert found == large.truth(ROUND, 1_000, view)
        assert set(found) == {*large.ids, *mine}

    def test_an_expired_fact_takes_no_place(self, large: Large, clock: ManualClock) -> None:
        large.add([near(ROUND, 0.01) for _ in range(5)], decay_class="ephemeral")
        large.work()
        large.ready()
        clock.advance(5 * 3600)
        assert large.found(ROUND, 3) == large.truth(ROUND, 3)
        assert large.by() == "lance"


class TestTrouble:
    def test_a_deleted_folder(self, large: Large) -> None:
        large.ready()
        shutil.rmtree(large.store.lance_folder)
        assert large.found(ROUND) == large.truth(ROUND)
        assert (large.by(), large.troubles) == ("scan", 1)
        large.work()
        large.seconds += 10
        large.ready()
        assert large.found(ROUND) == large.truth(ROUND)
        assert large.by() == "lance"

    @pytest.mark.parametrize("part", ["data", "_indices", "_versions"])
    def test_truncated_files(self, large: Large, part: str) -> None:
        for path in large.store.lance_folder.glob(f"*.lance/{part}/**/*"):
            if path.is_file():
                path.write_bytes(path.read_bytes()[:16])
        large.found(ROUND)
        large.index.wait(60)
        for _ in range(2):
            assert large.found(ROUND) == large.truth(ROUND)
        assert (large.by(), large.troubles) == ("scan", 1)
        mark_suspect(large.store)
        large.work()
        large.seconds += 10
        large.ready()
        assert large.found(ROUND) == large.truth(ROUND)
        assert large.by() == "lance"

    def test_a_table_that_went_back(self, large: Large) -> None:
        large.ready()
        [new] = large.add([near(ROUND, 0.01)])
        large.work()
        # LanceDB names versions so that the newest sorts first.
        for path in sorted(large.store.lance_folder.glob("*.lance/_versions/*.manifest"))[:3]:
            path.unlink()
        assert new in large.found(ROUND)
        assert (large.by(), large.troubles) == ("scan", 1)

    def test_one_that_hangs_is_left_alone(self, store: Store) -> None:
        large = Large(store)

        def slow(known: IndexState) -> LanceIndex:
            return SlowLance(store.lance_folder, SPACE.id, SPACE.dims, create=False, generation=known.generation)

        SlowLance.gate.clear()
        large.index = TieredIndex(
            store, SPACE, crossover=CROSSOVER, patience=0.05, on_trouble=large.trouble, open_lance=slow,
            now=lambda: large.seconds,
        )  # fmt: skip
        large.ready()
        for _ in range(3):
            assert large.found(ROUND) == large.truth(ROUND)
            large.seconds += 1_000
        assert (large.by(), large.troubles) == ("scan", 1)
        SlowLance.gate.set()
        large.index.close()

    def test_it_rests_longer_each_time(self, large: Large) -> None:
        large.ready()
        shutil.rmtree(large.store.lance_folder)
        large.found(ROUND)
        for seconds in (4.0, 2.0, 8.0, 3.0):
            large.seconds += seconds
            large.found(ROUND)
            large.index.wait(60)
        assert large.troubles == 3

    def test_a_closed_one_starts_nothing(self, large: Large) -> None:
        large.index.close()
        assert large.found(ROUND) == large.truth(ROUND)
        assert not large.index.wait(0)


def test_the_first_search_does_not_wait_for_the_import(store: Store) -> None:
    Large(store).index.close()
    code = (
        "import sys; from pathlib import Path; import numpy as np\n"
        "from perdure.store.scope import Audience\n"
        "from perdure.store.search import View\n"
        "from perdure.store.store import Store\n"
        "from perdure.lance.tiered import TieredIndex\n"
        "store = Store(Path(sys.argv[1])); space = store.space()\n"
        "index = TieredIndex(store, space, crossover=300)\n"
        "assert 'lancedb' not in sys.modules\n"
        "query = np.eye(1, space.dims, dtype=np.float32)[0]\n"
        "view = View(Audience.of(), store.clock.now())\n"
        "index.search(query, view, 3); first = index.answered_by\n"
        "assert index.wait(60); index.search(query, view, 3)\n"
        "print(first, index.answered_by); index.close(); store.close()"
    )
    command = [sys.executable, "-c", code, str(store.folder)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True, cwd=root)
    assert done.stdout.split() == ["scan", "lance"]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_vector_of_what_is_no_number_is_found_by_nothing(store: Store, wrong: float) -> None:
    small = Large(store, "exact", count=5)
    damaged = np.full(SPACE.dims, wrong, dtype="<f4").tobytes()
    with store.database.write() as connection:
        run(connection, "UPDATE vectors SET vector = ? WHERE fact_id = ?", (damaged, small.ids[0]))
    assert set(small.found(-ROUND)) == set(small.ids[1:])
    small.index.close()


def test_a_vector_of_the_wrong_length_disturbs_no_search(store: Store) -> None:
    small = Large(store, "exact", count=5)
    with store.database.write() as connection:
        run(connection, "UPDATE vectors SET vector = x'00' WHERE fact_id = ?", (small.ids[0],))
    assert set(small.found(ROUND)) == set(small.truth(ROUND)) == set(small.ids[1:])
    small.index.close()


def test_without_lancedb_a_very_large_store_is_not_read(store: Store) -> None:
    large = Large(store)
    large.index = TieredIndex(store, SPACE, crossover=CROSSOVER, scanned=CROSSOVER + 1)
    assert large.found(ROUND) == []
    assert large.by() == "none"
    assert large.index.wait(60)
    assert large.found(ROUND) == large.truth(ROUND)
