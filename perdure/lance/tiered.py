"""The index that recall asks: exact while a store is small, LanceDB's when it is large, and right in between."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Literal, TypeVar

from perdure.embed.base import Vector, Vectors
from perdure.errors import StoreError, StoreUnavailableError
from perdure.index.feeding import CROSSOVER, Mode, VectorCount
from perdure.index.vector_index import ExactIndex, Survey, VectorHit, scan, surveyed
from perdure.lance.table import LanceIndex, place_of, url_of
from perdure.store import outbox
from perdure.store.outbox import IndexState
from perdure.store.scope import Audience
from perdure.store.search import View, enumerated
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store

MAX_BEHIND = 2_000
"""If LanceDB is behind by more facts, the exact search costs less than both together."""
PATIENCE = 0.4
"""Seconds that a search waits for LanceDB before the exact search answers."""
WARMING, WARM = 8, 100
"""Searches that are made before LanceDB counts as open, and how many each asks for."""
SCANNED = 300_000
"""Vectors that are read from SQLite while LanceDB cannot be asked; more would take longer than any turn waits."""
FIRST_REST = 5.0
LONGEST_REST = 300.0
"""Seconds until LanceDB is tried again after it failed; doubled each time, up to the second."""

Answerer = Literal["none", "matrix", "scan", "lance"]
_Found = TypeVar("_Found")
_log = logging.getLogger("perdure.store")


@dataclass(eq=False)
class TieredIndex:
    """Finds nearest vectors with whatever fits the store's size and works. Usable from any thread.

    LanceDB is imported and opened in a thread of its own and never waited for. What it holds is taken as of the
    outbox: facts that it has not got yet, or has in an old state, are compared exactly.
    """

    store: Store
    space: VectorSpace
    _: KW_ONLY
    exact: ExactIndex | None = None  # None: one of its own
    mode: Mode = "auto"  # "exact" never asks LanceDB, "lance" asks it at any size
    crossover: int = CROSSOVER  # vectors from which on "auto" asks LanceDB
    patience: float = PATIENCE  # seconds to wait for LanceDB's answer
    scanned: int = SCANNED  # vectors that are still read while it cannot be asked; else words alone answer then
    on_trouble: Callable[[], None] = lambda: None  # called, in some thread, when LanceDB failed
    open_lance: Callable[[IndexState], LanceIndex] | None = None  # None: the table is where the store has it
    now: Callable[[], float] = time.monotonic  # seconds
    name = "lance"

    def __post_init__(self) -> None:
        self._place = place_of(self.store)
        self._exact = self.exact or ExactIndex(self.store.database, self.space.id, self.space.dims)
        self._count = VectorCount(self.store.database, self.space.id)
        self._lock = threading.Lock()
        self._lance: LanceIndex | None = None
        self._generation = -1
        self._opening: threading.Thread | None = None
        self._asking: list[threading.Thread] = []
        self._rest = FIRST_REST
        self._resting_until = float("-inf")
        self._closed = False
        self.answered_by: Answerer = "none"
        """What answered the last search."""

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        """Return up to `limit` facts that the view's audience may read, nearest first.

        `query`: float32 of shape (dims,), length one; `limit`: at least 1.
        """
        large = self.mode != "exact" and self._count.reaches(self.crossover)
        if view.as_of is None and not view.include_superseded and (large or self.mode == "lance"):
            found = self._by_lance(query, view, limit)
            if found is not None:
                if large:
                    self._exact.close()
                self.answered_by = "lance"
                return found
        if view.as_of is None and (not large or self._exact.loaded):
            self.answered_by = "matrix"
            return self._exact.search(query, view, limit)
        if view.as_of is None and self._count.reaches(self.scanned):
            self.answered_by = "none"
            return []
        # Neither index knows former times; and a large store's matrix is not read for the time until LanceDB is there.
        self.answered_by = "scan"
        return scan(self.store.database, self.space.id, query, view, limit)

    def survey(self, queries: Vectors, view: View, limit: int) -> Survey:
        """Return up to `limit` facts that are nearest to any of the queries, and how far the queries are from all."""
        large = self.mode != "exact" and self._count.reaches(self.crossover)
        if view.as_of is None and self.mode != "lance" and not large:
            self.answered_by = "matrix"
            return self._exact.survey(queries, view, limit)
        return surveyed(self.store.database, self.space.id, self, queries, view, limit)

    def words(self, terms: Sequence[str], view: View, limit: int) -> Sequence[tuple[str, float]]:
        """Return up to `limit` facts that hold one of the terms; see `WordIndex.words`.

        LanceDB tells it alone: where it lacks the newest state of any fact, it is not asked.
        """
        if self.mode != "lance" and not self._count.reaches(self.crossover):
            raise StoreUnavailableError("the store is not large enough for LanceDB")
        behind, known, view = self._state(view)
        if not known.words:
            raise StoreUnavailableError("LanceDB has no full-text index yet")
        if behind is None or behind:
            raise StoreUnavailableError("LanceDB is behind")
        lance = self._ready(known)
        if lance is None:
            raise StoreUnavailableError("LanceDB is opening, or paused after a failure")
        try:
            return self._within(lambda: lance.words(terms, view, limit, at_least=known.version))
        except StoreUnavailableError as error:
            self._trip(str(error))
            raise

    def wait(self, timeout: float) -> bool:
        """Wait until LanceDB is open, if it is being opened; return whether it is."""
        opening = self._opening
        if opening is not None:
            opening.join(timeout)
        return self._lance is not None

    def close(self) -> None:
        """Release what is held. A thread that LanceDB holds up is left to end by itself."""
        with self._lock:
            self._closed = True
            lance, self._lance = self._lance, None
        if lance is not None:
            lance.close()
        self._exact.close()

    def _by_lance(self, query: Vector, view: View, limit: int) -> list[VectorHit] | None:
        """Return what LanceDB and the outbox have between them, or None if LanceDB cannot be asked now."""
        behind, known, view = self._state(view)
        if behind is None or not known.version or not (known.trained or self.mode == "lance"):
            return None
        lance = self._ready(known)
        if lance is None:
            return None
        try:
            hits = self._current(lance, query, view, limit, behind, known.version)
        except StoreUnavailableError as error:
            self._trip(str(error))
            return None
        self._rest = FIRST_REST
        fresh = scan(self.store.database, self.space.id, query, view, limit, among=behind) if behind else []
        return sorted([*hits, *fresh], key=lambda hit: -hit.cosine)[:limit]

    def _state(self, view: View) -> tuple[set[str] | None, IndexState, View]:
        """Return what LanceDB lacks, if it is little, what is known of its table, and the view in scopes of its own.

        Of a table that is not where this process looks for it, nothing is known.
        """
        with self.store.database.read() as connection:
            # The outbox first: what leaves it after this look stands in a version that the second look asks for.
            behind = outbox.pending(connection, MAX_BEHIND)
            known = outbox.index_state(connection, self.space.id)
            view = replace(view, audience=enumerated(connection, view.audience))
        return behind, known if known.url == url_of(self._place) else IndexState(), view

    def _current(
        self, lance: LanceIndex, query: Vector, view: View, limit: int, behind: set[str], version: int
    ) -> list[VectorHit]:
        """Ask until there are enough hits that are not in an old state."""
        most = limit + len(behind)
        asked = min(2 * limit, most)
        while True:
            found = self._within(partial(lance.search, query, view, asked, at_least=version))
            hits = [hit for hit in found if hit.id not in behind]
            if len(hits) >= limit or len(found) < asked or asked == most:
                return hits[:limit]
            asked = min(2 * asked, most)

    def _within(self, ask: Callable[[], _Found]) -> _Found:
        answer: Future[_Found] = Future()

        def work() -> None:
            try:
                answer.set_result(ask())
            except StoreError as error:
                answer.set_exception(error)

        asking = threading.Thread(target=work, name="perdure-lance", daemon=True)
        with self._lock:
            self._asking = [*filter(threading.Thread.is_alive, self._asking), asking]
            asking.start()
        try:
            return answer.result(self.patience)
        except TimeoutError:
            raise StoreUnavailableError(
                f"LanceDB has not answered within {self.patience} seconds; SQLite is searched instead"
            ) from None

    def _ready(self, known: IndexState) -> LanceIndex | None:
        """Return the open table, or None; then it is being opened, unless LanceDB rests."""
        with self._lock:
            if self._lance is not None and self._generation == known.generation:
                return self._lance
            busy = any(thread is not None and thread.is_alive() for thread in (self._opening, *self._asking))
            if busy or self._closed or self.now() < self._resting_until:
                return None
            self._lance = None
            self._opening = threading.Thread(target=self._open, args=(known,), name="perdure-lance-open", daemon=True)
            self._opening.start()
            return None

    def _open(self, known: IndexState) -> None:
        import numpy as np

        try:
            lance = (self.open_lance or self._from_place)(known)
            # The first searches read the index from the disk; no turn should pay for them.
            chance = np.random.default_rng(0)
            for _ in range(WARMING):
                query = chance.standard_normal(self.space.dims, dtype=np.float32)
                query /= np.linalg.norm(query)
                lance.search(query, View(Audience.of(), 0.0), WARM, at_least=known.version)
            if known.words:
                lance.words(["warm"], View(Audience.of(), 0.0), WARM, at_least=known.version)
        except StoreError as error:
            self._trip(str(error))
            return
        with self._lock:
            if not self._closed:
                self._lance, self._generation = lance, known.generation
                return
        lance.close()

    def _from_place(self, known: IndexState) -> LanceIndex:
        return LanceIndex(self._place, self.space.id, self.space.dims, create=False, generation=known.generation)

    def _trip(self, problem: str) -> None:
        with self._lock:
            if self._closed:
                return
            self._lance = None
            self._resting_until = self.now() + self._rest
            rest, self._rest = self._rest, min(2 * self._rest, LONGEST_REST)
        _log.warning("falling back to SQLite and exact vector search for %d seconds: %s", rest, problem)
        self.on_trouble()
