"""The worker's job: give facts their vectors, and bring the LanceDB table up to date."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

from perdure.embed.base import Embedder
from perdure.errors import InputError, PerdureError, StoreUnavailableError
from perdure.failpoints import fail_point
from perdure.index.feeding import CROSSOVER, Feeding
from perdure.index.missing import embed_missing
from perdure.lance.drift import (
    check_files,
    drop_elsewhere,
    drop_folder,
    drop_index,
    former_place,
    index_state,
    missing_files,
    record_files,
    unproved,
)
from perdure.lance.table import OPTIMIZE_AFTER, LanceIndex, drop_at, names_at, place_of, rows_of, table_name, url_of
from perdure.store import outbox
from perdure.store.outbox import IndexState
from perdure.store.spaces import VectorSpace
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.text.pluralize import counted

BULK, LARGEST = 1_000, 20_000
"""When so many facts wait, all that wait are written at once, up to a limit: a write looks through the whole table."""
GROWTH = 2
"""The approximate index and that of words are built anew when the table has grown so many times larger."""
_log = logging.getLogger("perdure.worker")


@dataclass(eq=False)
class Indexer:
    """Works off what the outbox names. May be killed between any two steps: each can be repeated.

    One process at a time runs it: the one that holds the worker's lock.
    """

    store: Store
    embedder: Callable[[], Embedder | None]  # loads that of the store's space when it is first needed
    batch: int  # facts in a write to LanceDB: a write of one row costs as much as of fifty
    _: KW_ONLY
    crossover: int = CROSSOVER  # vectors from which on the approximate index is built
    feeding: Feeding | None = None  # whether there is to be a table; None: always

    def __post_init__(self) -> None:
        self._index: LanceIndex | None = None
        self._place = place_of(self.store)
        self._url = url_of(self._place)
        self._wordless = False  # the index of words cannot be built; it is tried again at the next start
        self._space: VectorSpace | None = None
        self._inspected: str | None = None
        self._resting_until = 0.0

    def step(self) -> bool:
        """Do one batch; return whether there was anything to do."""
        return embed_missing(self.store, self.embedder) or self._index_some()

    def restart(self, why: str) -> None:
        """Begin the table anew: under a new name, from every vector in SQLite."""
        self._release()
        space = self.store.space()
        if space is not None:
            _log.warning("rebuilding the LanceDB table: %s", why)
            self._queue_all(space, IndexState(index_state(self.store, space).generation + 1))

    def optimise(self) -> str:
        """Merge the table's fragments and drop versions that no reader needs; return one line about it.

        A table that the store is too small for is removed, if all that it holds stands in SQLite.
        """
        space = self.store.space()
        if space is None or not index_state(self.store, space).version:
            return "there is no LanceDB table yet"
        self._inspect(space)
        if self.feeding is not None and self.feeding.ends(space):
            return self._ended()
        index = self._opened(space)
        self._optimize(index)
        return counted(index.size, "row")

    def close(self) -> None:
        """Merge what was written in single batches, and release the table."""
        if self._index is not None:
            try:
                if self._index.writes:
                    self._optimize(self._index)
            except StoreUnavailableError as error:
                _log.warning("%s", error)
            self._release()

    def _index_some(self) -> bool:
        space = self.store.space()
        if space is None or self.store.clock.now() < self._resting_until:
            return False
        try:
            if not self._begun(space):
                return False
            self._inspect(space)
            with self.store.database.read() as connection:
                batch = outbox.next_batch(connection, LARGEST)
                if len(batch) < BULK:
                    batch = outbox.next_batch(connection, self.batch)
                patient = not outbox.resting(connection)
            if not batch:
                return self._trained()
            index = self._opened(space)
            bad = self._apply(index, space, list(dict.fromkeys(fact_id for _, fact_id in batch)), patient=patient)
            fail_point("indexer.applied")
            self._settle(index, space, batch, bad)
        except StoreUnavailableError as error:
            return self._rest(error)
        return True

    def _ended(self) -> str:
        """Remove the table of a small store, unless it may hold what is nowhere else; return one line about it."""
        if found := unproved(self.store):
            return f"the LanceDB table is kept, since it differs from SQLite in {found} places; see perdure verify"
        self._release()
        drop_elsewhere(self.store)
        self.store.database.apply(outbox.end)
        drop_index(self.store)
        return "LanceDB table removed: a store of this size is searched in memory"

    def _apply(
        self, index: LanceIndex, space: VectorSpace, fact_ids: Sequence[str], *, patient: bool
    ) -> dict[str, PerdureError]:
        """Bring the rows of these facts up to date, and return those that cannot be, with what is wrong.

        A batch that fails is halved until the facts that it fails by stand alone. A failure that is not plainly
        a row's is first taken for LanceDB's own, if `patient`: the disk may be full.
        """
        try:
            rows = rows_of(self.store.database, fact_ids, space.id, self.store.clock.now())
            fail_point("indexer.read")
            live = {row["id"] for row in rows}
            index.apply(rows, [fact_id for fact_id in fact_ids if fact_id not in live])
        except (InputError, StoreUnavailableError) as error:
            if patient and isinstance(error, StoreUnavailableError):
                raise
            if len(fact_ids) == 1:
                return {fact_ids[0]: error}
            middle = len(fact_ids) // 2
            first = self._apply(index, space, fact_ids[:middle], patient=patient)
            return first | self._apply(index, space, fact_ids[middle:], patient=patient)
        return {}

    def _begun(self, space: VectorSpace) -> bool:
        """Return whether there is a table to feed; one that is due is begun, with every vector that there is."""
        if self.store.database.query(outbox.fed):
            return True
        due = self.feeding is None or self.feeding.begins(space)
        if due:
            self._queue_all(space, index_state(self.store, space))
        return due

    def _settle(
        self, index: LanceIndex, space: VectorSpace, batch: Sequence[tuple[int, str]], bad: Mapping[str, PerdureError]
    ) -> None:
        version = index.version
        failures = [error for error in bad.values() if isinstance(error, StoreUnavailableError)]
        works = len(bad) < len({fact_id for _, fact_id in batch})
        with self.store.database.write() as connection:
            outbox.done(connection, [seq for seq, fact_id in batch if fact_id not in bad])
            for fact_id, error in bad.items():
                hopeless = isinstance(error, InputError)
                if hopeless or works:
                    kind = type(error.__cause__ or error).__name__
                    entries = [seq for seq, named in batch if named == fact_id]
                    outbox.failed(connection, entries, kind, at_once=hopeless)
                    _log.warning("memory %s cannot be indexed: %s", fact_id, kind)
            _change(connection, space, version=version)
            fail_point("indexer.done")
        record_files(self.store)
        if failures and not works:
            raise failures[0]
        if index.writes >= OPTIMIZE_AFTER:
            self._optimize(index)

    def _rest(self, error: StoreUnavailableError) -> bool:
        with self.store.database.write() as connection:
            attempts = outbox.rest(connection, self.store.clock.now(), type(error.__cause__ or error).__name__)
            self._resting_until = outbox.state(connection).retry_at or 0.0
        _log.warning("LanceDB paused after %d failures: %s", attempts, error)
        self._release()
        return False

    def _optimize(self, index: LanceIndex) -> None:
        lost = missing_files(self.store)
        if lost:
            self.restart(f"missing: {counted(len(lost), 'file')}")
            return
        index.optimize()
        self._note(index)
        record_files(self.store, pruned=True)

    def _trained(self) -> bool:
        """Build the indexes that the table wants: that of words, and the approximate one if it is large.

        Return whether any was built.
        """
        index, space = self._index, self._space
        if index is None or space is None:
            return False
        known, size = index_state(self.store, space), index.size
        built = {}
        if not self._wordless and size >= max(1, GROWTH * known.words) and self._worded(index):
            built["words"] = size
        if size >= max(self.crossover, GROWTH * known.trained):
            index.train()
            built["trained"] = size
        if built:
            self._note(index, **built)
            record_files(self.store)
        return bool(built)

    def _worded(self, index: LanceIndex) -> bool:
        """Build the index of words; return whether it is there. Without it SQLite's answers, and all else goes on."""
        try:
            index.index_words()
        except StoreUnavailableError as error:
            self._wordless = True
            _log.warning("%s", error)
        return not self._wordless

    def _note(self, index: LanceIndex, **built: int) -> None:
        if self._space is not None:
            self.store.database.apply(_change, self._space, version=index.version, **built)

    def _inspect(self, space: VectorSpace) -> None:
        """At the start, see whether the table that SQLite knows of is still there and whole; else make it anew."""
        known = index_state(self.store, space)
        if self._inspected == space.id and not known.suspect:
            return
        if known.version and known.url != self._url:
            self._leave(known)
            self.restart("its location has changed")
        elif known.suspect and (problems := check_files(self.store)):
            self.restart(f"damaged: {counted(len(problems), 'file')}")
        elif known.version and not self._is_there(table_name(space.id, known.generation)):
            self.restart("it is missing")
        elif known.suspect or self._wants_index(space, known):
            self._opened(space)
        if known.suspect:
            self.store.database.apply(_change, space, suspect=False)
        self._inspected = space.id

    def _leave(self, known: IndexState) -> None:
        """Remove the table from where it was; one that may hold what is nowhere else is left behind, and named."""
        try:
            if found := unproved(self.store):
                _log.warning(
                    "the LanceDB table in %s is kept, since it cannot be read or differs from SQLite in %d places",
                    known.url or self.store.lance_folder, found,
                )  # fmt: skip
            elif known.url:
                drop_at(former_place(self.store, known))
            else:
                drop_folder(self.store)
        except StoreUnavailableError as error:
            _log.warning("this store has tables left in %s; remove them there: %s", known.url, error)

    def _is_there(self, name: str) -> bool:
        if isinstance(self._place, Path):
            return (self._place / f"{name}.lance").exists()
        return name in names_at(self._place)

    def _wants_index(self, space: VectorSpace, known: IndexState) -> bool:
        # A table that nothing is written to is opened all the same if it wants one of its indexes.
        sql = "SELECT count(*) FROM vectors WHERE embedding_id = ?"
        count: int = self.store.database.query(run, sql, (space.id,))[0][0]
        return count >= min(max(1, GROWTH * known.words), max(self.crossover, GROWTH * known.trained))

    def _opened(self, space: VectorSpace) -> LanceIndex:
        if self._index is not None and self._space == space:
            return self._index
        self._release()
        known = index_state(self.store, space)
        if known.version and (problem := self._reopened(space, known)):
            self.restart(problem)
            known = index_state(self.store, space)
        if self._index is None:
            self._queue_all(space, known)
            self._index = self._connect(space, known, create=True)
            self._index.drop_others()
        self._space = space
        return self._index

    def _reopened(self, space: VectorSpace, known: IndexState) -> str | None:
        """Open the table that is there; return what is wrong with it, if anything."""
        try:
            index = self._connect(space, known, create=False)
            if index.version >= known.version:
                self._index = index
                return None
        except StoreUnavailableError as error:
            # Raises where the place cannot be reached: that says nothing of the table.
            self._is_there(table_name(space.id, known.generation))
            return f"it cannot be opened ({type(error.__cause__ or error).__name__})"
        index.close()
        return f"it was rolled back to a version before {known.version}"

    def _connect(self, space: VectorSpace, known: IndexState, *, create: bool) -> LanceIndex:
        return LanceIndex(self._place, space.id, space.dims, create=create, generation=known.generation)

    def _queue_all(self, space: VectorSpace, known: IndexState) -> None:
        # Before the table is made: a table that lacks facts which are in no outbox would pass for whole.
        with self.store.database.write() as connection:
            outbox.queue_all(connection, space.id, self.store.clock.now())
            outbox.put_index_state(connection, space.id, replace(known, url=self._url))

    def _release(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None


def _change(connection: Connection, space: VectorSpace, /, **values: Any) -> None:
    outbox.put_index_state(connection, space.id, replace(outbox.index_state(connection, space.id), **values))


def mark_suspect(store: Store) -> None:
    """Have the worker look through LanceDB's files when it starts next: a search had trouble with them."""
    space = store.space()
    if space is not None:
        with store.database.write(durable=False) as connection:
            if outbox.index_state(connection, space.id).version:
                _change(connection, space, suspect=True)
