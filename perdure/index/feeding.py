"""When a store has a derived table at all, and asks it: only where that is quicker than to compare all vectors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from perdure.errors import StoreUnavailableError
from perdure.extras import absent, how_to_install
from perdure.index.vector_index import ExactIndex, Survey, Surveyor, VectorHit, scan, surveyed
from perdure.store import outbox, spaces
from perdure.store.search import View, WordIndex
from perdure.store.spaces import VectorSpace
from perdure.store.sql import Backend, run
from perdure.store.store import Store

if TYPE_CHECKING:
    from perdure.embed.base import Vector, Vectors


CROSSOVER = 300_000
"""Vectors from which on LanceDB answers. At 384 dimensions, on two busy cores, `python -m bench.ann` printed that it
takes 2.26 times as long as the matrix with 200,000, and .79 times with 300,000."""
TELL_FROM = 2 / 3
"""Of the crossover: from there on who has not installed LanceDB is told, with 200,000 memories."""
FEED_FROM = 0.8
"""Of the crossover: from there on a table is built, so that it is there when it is needed."""
END_BELOW = 0.4
"""Of the crossover: below, a table that is there is given up. Far enough from the former that none comes and goes."""
_RECOUNT = 100
"""Vectors are counted again when a hundredth of what is asked about has come in."""

PACKAGES = ("lancedb", "pyarrow")
"""What the extra `lancedb` brings. They weigh more than all else together, so they are not there by default."""
REMEDY = f"run {how_to_install('lancedb')}, then restart the programs that use the store"

Mode = Literal["auto", "exact", "lance"]
_log = logging.getLogger("perdure.store")


class VectorCount:
    """How many vectors a space has, counted seldom."""

    def __init__(self, database: Backend, space_id: str) -> None:
        self._database = database
        self._space_id = space_id
        self._count = self._counted_at = 0

    def reaches(self, least: int) -> bool:
        """Return whether there are at least so many."""
        with self._database.read() as connection:
            # The highest row number is never below the count, and costs nothing.
            highest: int = run(connection, "SELECT coalesce(max(rowid), 0) FROM vectors")[0][0]
            if highest < least:
                return False
            if abs(highest - self._counted_at) * _RECOUNT >= least:
                sql = "SELECT count(*) FROM vectors WHERE embedding_id = ?"
                self._count = run(connection, sql, (self._space_id,))[0][0]
                self._counted_at = highest
        return self._count >= least


class Feeding:
    """Tells by mode and size whether a table is to be begun, or given up. Until one is begun nothing is queued for it.

    One that is there goes on being fed between the two sizes, whatever the mode. Without LanceDB none is touched.
    """

    def __init__(self, database: Backend, mode: Mode = "auto", crossover: int = CROSSOVER) -> None:
        """Judge the stores of one database; see `TieredIndex` for the mode and the crossover."""
        self._database = database
        # Its table is one machine's, and what that lacks stands in an outbox, which is for one reader.
        self._mode = "exact" if database.shared else mode
        self._crossover = crossover
        self._counts: dict[str, VectorCount] = {}
        self.possible = not absent(*PACKAGES)

    def wanted(self, space: VectorSpace) -> bool:
        """Return whether there is a table to feed, or one is due."""
        return self.possible and (self._database.query(outbox.fed) or self.begins(space))

    def begins(self, space: VectorSpace) -> bool:
        """Return whether a space that has no table should get one."""
        if not self.possible:
            return False
        if self._mode == "lance":
            return bool(self._database.query(run, "SELECT 1 FROM facts LIMIT 1"))
        return self._mode == "auto" and self._reaches(space, int(FEED_FROM * self._crossover))

    def ends(self, space: VectorSpace) -> bool:
        """Return whether the table of a space is of no use any more."""
        return self._mode != "lance" and not self._reaches(space, int(END_BELOW * self._crossover))

    def lacking(self, space: VectorSpace) -> str:
        """Return why a store wants LanceDB where it is not installed; empty: it wants none, or has it."""
        if self.possible or self._database.shared:
            return ""
        if self._database.query(outbox.fed):
            return "this store has a LanceDB table, but LanceDB is not installed; SQLite is searched instead"
        least = int(TELL_FROM * self._crossover)
        if self._mode != "auto" or not self._reaches(space, least):
            return ""
        return (
            f"this store has more than {least:,} memories, and LanceDB is not installed; above {self._crossover:,} it"
            " is faster than the exact index"
        )

    def _reaches(self, space: VectorSpace, least: int) -> bool:
        return self._counts.setdefault(space.id, VectorCount(self._database, space.id)).reaches(least)


class IndexFeed:
    """What a host's process does for the derived table. For the keeper's thread, but for `behind`."""

    def __init__(
        self, store: Store, feeding: Feeding, start_worker: Callable[[], None], *, batch: int, seconds: float
    ) -> None:
        """Prepare."""
        self._store = store
        self._feeding = feeding
        self._start_worker = start_worker
        self._batch = batch
        self._seconds = seconds
        self._told = False

    def look(self) -> None:
        """Start the worker if it has anything to do; say once that LanceDB is wanted and not installed."""
        if not self._told and (lacking := self.lacking()):
            self._told = True
            _log.warning("%s; %s", lacking, REMEDY)
        if self._begins():
            self._start_worker()
            return
        state = self._store.outbox_state()
        if state.oldest is None or self._store.space() is None or not self._fed() or not self._feeding.possible:
            return
        now = self._store.clock.now()
        if state.retry_at is not None and now < state.retry_at:
            return
        if state.waiting >= self._batch or now - state.oldest >= self._seconds:
            self._start_worker()

    def behind(self) -> bool:
        """Return whether the table lacks something, or is to be begun."""
        return self._begins() or bool(self._store.outbox_state().waiting)

    def lacking(self) -> str:
        """Return why the store wants LanceDB where it is not installed; see `Feeding.lacking`."""
        space = self._store.space()
        return self._feeding.lacking(space) if space is not None else ""

    def _begins(self) -> bool:
        with self._store.database.read() as connection:
            space = None if outbox.fed(connection) else spaces.active(connection)
        return space is not None and self._feeding.begins(space)

    def _fed(self) -> bool:
        """Return whether there is a table; what was queued for one that never was is dropped."""
        if self._store.database.query(outbox.fed):
            return True
        with self._store.database.write(durable=False) as connection:
            if not outbox.fed(connection):
                outbox.end(connection)
        return False


class GrowingIndex:
    """Asks the exact index, from the crossover on one that knows LanceDB, and the database itself for other times.

    Usable from any thread. Without `tiered` there is no LanceDB, however large the store.
    """

    def __init__(
        self, exact: ExactIndex, database: Backend, space_id: str, crossover: int = CROSSOVER,
        tiered: Callable[[], Surveyor] | None = None,
    ) -> None:  # fmt: skip
        self._exact, self._database, self._space_id = exact, database, space_id
        self._count, self._crossover, self._make = VectorCount(database, space_id), crossover, tiered
        self._lock = threading.Lock()
        self._tiered: Surveyor | None = None

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        """Return up to `limit` facts that the view's audience may read, nearest first."""
        if view.as_of is not None:
            # What the matrix holds is true now; later facts would take the places of those of then.
            return scan(self._database, self._space_id, query, view, limit)
        return self._present().search(query, view, limit)

    def survey(self, queries: Vectors, view: View, limit: int) -> Survey:
        """Return up to `limit` facts that are nearest to any of the queries, and how far the queries are from all."""
        if view.as_of is not None:
            return surveyed(self._database, self._space_id, self, queries, view, limit)
        return self._present().survey(queries, view, limit)

    name = "lance"

    def words(self, terms: Sequence[str], view: View, limit: int) -> Sequence[tuple[str, float]]:
        """Return what LanceDB finds by words; see `WordIndex.words`."""
        present = self._present()
        if not isinstance(present, WordIndex):
            raise StoreUnavailableError("this store has no LanceDB table yet")
        return present.words(terms, view, limit)

    def close(self) -> None:
        """Release what is held, and begin with LanceDB no more."""
        with self._lock:
            self._make = None
        (self._tiered or self._exact).close()

    def _present(self) -> Surveyor:
        if self._tiered is None and self._make is not None and self._count.reaches(self._crossover):
            with self._lock:
                if self._tiered is None and self._make is not None:
                    self._tiered = self._make()
        return self._tiered or self._exact
