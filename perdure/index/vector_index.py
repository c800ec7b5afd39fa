"""Nearest vectors: a rounded matrix, the protocol, the index that compares with every one, and a search without it."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from perdure.embed.base import Vector, Vectors
from perdure.heap import give_back
from perdure.ranking.calibration import Scale
from perdure.store.scope import Scope
from perdure.store.search import View
from perdure.store.sql import Backend, Row, marks, newest, run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.intp]

SPARE = 16
"""So many more than asked for are to be compared in full. Rounding shifts a cosine by 0.0005 (standard deviation):
enough to swap neighbours at the end of a list; `python -m bench.ann` prints what is lost."""
_LEVELS = 127
"""To either side of zero."""
_SPARSE = 8
"""If fewer than one row in so many is asked for, these are copied together first."""
CHUNK = 1024
"""Vectors that are read at a time: 1.5 MB at 384 dimensions, more would leave holes in memory."""
SAMPLE = 256
"""Vectors that tell how far a query is from all, where not all are compared."""
COUNTED = 2_000
"""So many facts are counted there at the most: what is larger is large, and counting a million takes seconds."""
NOBODY = -1
"""The scope code of rows that are in no answer."""


class RoundedMatrix:
    """Rows of vectors, each rounded to 255 steps of its own size: a byte for each number. Not locked.

    The nearest are chosen by these, and only they are read from the disk and compared in full. All products of a query
    are taken at once, so whatever decides who may see a row is a mask over numbers, and no graph has to know of it.
    """

    def __init__(self, dims: int, capacity: int = 0) -> None:
        """Hold vectors of so many numbers; memory for `capacity` of them is taken in one piece."""
        import numpy as np

        self._count = 0
        self._levels = np.zeros((capacity, dims), dtype=np.int8)
        self._steps = np.zeros(capacity, dtype=np.float32)

    def __len__(self) -> int:
        return self._count

    def append(self, vectors: Vectors) -> None:
        """Add float32 vectors of shape (rows, dims)."""
        import numpy as np

        self.put(np.arange(self._count, self._count + len(vectors)), vectors)

    def put(self, rows: Rows | list[int], vectors: Vectors) -> None:
        """Put float32 vectors of shape (rows, dims), at least one, into these rows, which may lie behind the last."""
        import numpy as np

        self._count = max(self._count, int(np.max(rows)) + 1)
        self._levels = roomier(self._levels, self._count)
        self._steps = roomier(self._steps, self._count)
        self._steps[rows], self._levels[rows] = rounded(vectors)

    def drop(self, row: int) -> None:
        """Overwrite a row with zeros; the others keep their numbers."""
        self._steps[row] = 0
        self._levels[row] = 0

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget all rows but these, of shape (rows,); the others move up."""
        self._levels, self._steps = self._levels[: self._count][kept], self._steps[: self._count][kept]
        self._count = len(self._steps)

    def products(self, query: Vector, rows: Rows | None = None) -> NDArray[np.float32]:
        """Return the products of a query, float32 of shape (dims,), with some rows, in their order, or with all."""
        import numpy as np
        from simsimd import cdist

        asked_for = self._count if rows is None else len(rows)
        if not asked_for:
            return np.zeros(0, dtype=np.float32)
        some = rows is not None and asked_for * _SPARSE < self._count
        levels = self._levels[rows] if some else self._levels[: self._count]
        steps, asked = rounded(query[None, :])
        whole = np.asarray(cdist(asked, levels, "dot"))[0]
        products: NDArray[np.float32] = (whole if some or rows is None else whole[rows]).astype(np.float32)
        products *= steps[0] * (self._steps[: self._count] if rows is None else self._steps[rows])
        return products


def rounded(vectors: Vectors) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Return the step of each row, of shape (rows,), and its numbers in steps, of shape (rows, dims)."""
    import numpy as np

    peaks = np.abs(vectors).max(axis=1)
    # What is not a number, as in a damaged file, is nowhere near: it must not come before what is one.
    steps = np.where(np.isfinite(peaks), peaks, 0).astype(np.float32) / np.float32(_LEVELS)
    with np.errstate(invalid="ignore", over="ignore"):
        levels = np.rint(vectors / np.maximum(steps, np.finfo(np.float32).tiny)[:, None])
        return steps, np.clip(levels, -_LEVELS, _LEVELS).astype(np.int8)


def roomier(array: NDArray[Any], needed: int) -> NDArray[Any]:
    """Return the array if it has so many rows, and else a copy with more, zeros behind what is there."""
    import numpy as np

    if needed <= len(array):
        return array
    more = np.zeros((max(needed, len(array) + len(array) // 8), *array.shape[1:]), dtype=array.dtype)
    more[: len(array)] = array
    return more


def highest(scores: NDArray[np.float32], limit: int) -> Rows:
    """Return the positions of the highest scores, highest first; of equal ones the first."""
    import numpy as np

    if len(scores) > limit:
        # Sorting them all would cost more than the product did.
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        some = np.flatnonzero(scores >= least)
    else:
        some = np.arange(len(scores))
    order: Rows = some[np.argsort(-scores[some], kind="stable")[:limit]]
    return order


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A fact found by its vector, with the cosine of the two."""

    id: str
    cosine: float


@dataclass(frozen=True, slots=True)
class Survey:
    """How near the parts of a query are to the facts that a view shows."""

    ids: Sequence[str]  # the nearest facts by their best part, nearest first
    cosines: NDArray[np.float32]  # of each part with each of these, of shape (parts, ids)
    # `totals`, `squares`: of each part, the sum of its cosines with `count` facts, and of their squares: all that the
    # view shows, or a sample of them; of shape (parts,).
    totals: NDArray[np.float32]
    squares: NDArray[np.float32]
    count: int  # how many facts these are
    # How many facts the view shows, at least `count`; of a large store that is not compared as a whole, 2,000.
    texts: int
    seen: int = 0  # the newest number of the journal then; 0: it was not looked up


class VectorIndex(Protocol):
    """Finds the facts whose vectors are nearest.

    What it returns is a hint: the reader checks each hit against the database, so an index may lag behind, but
    not leak.
    """

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        """Return up to `limit` facts that the view's audience may read, nearest first.

        `query`: float32 of shape (dims,), length one; `limit`: at least 1.
        """

    def close(self) -> None:
        """Release what the index holds."""


class Surveyor(VectorIndex, Protocol):
    """A vector index that can also be asked by several vectors at once."""

    def survey(self, queries: Vectors, view: View, limit: int) -> Survey:
        """Return up to `limit` facts that are nearest to any of the queries, and how far the queries are from all.

        `queries`: float32 of shape (parts, dims), rows of length one; `limit`: at least 1.
        """


def dots(vectors: NDArray[np.float32], query: Vector) -> NDArray[np.float32]:
    """Return the products of a query with vectors of shape (rows, dims), in this thread alone.

    `vectors @ query` would wake the threads of BLAS. They spin for tens of milliseconds after the product is there,
    and take the processor from the legs that run beside it.
    """
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):  # a damaged vector says so by its product
        products: NDArray[np.float32] = np.vecdot(vectors, query)
    return products


def cosines(database: Backend, query: Vector, ids: Iterable[str], embedding_id: str) -> dict[str, float]:
    """Return the cosine of the query and each of these facts that has a vector in this space."""
    return {fact_id: row[0] for fact_id, row in all_cosines(database, query[None, :], ids, embedding_id).items()}


def all_cosines(
    database: Backend, queries: Vectors, ids: Iterable[str], embedding_id: str
) -> dict[str, tuple[float, ...]]:
    """Return the cosines of queries of shape (parts, dims) and each of these facts that has a vector in this space."""
    wanted, dims = list(ids), queries.shape[1]
    of = f"embedding_id = ? AND length(vector) = ? AND fact_id IN ({marks(wanted)})"
    sql = f"SELECT fact_id, vector FROM vectors WHERE {of}"
    rows = database.query(run, sql, (embedding_id, 4 * dims, *wanted))
    matrix = _matrix_of([blob for _, blob in rows], dims)
    found = zip(*(dots(matrix, query).tolist() for query in queries), strict=True)
    # A damaged vector may hold what is not a number, and is near nothing.
    return {row[0]: each for row, each in zip(rows, found, strict=True) if all(map(math.isfinite, each))}


def surveyed(
    database: Backend, embedding_id: str, index: VectorIndex, queries: Vectors, view: View, limit: int
) -> Survey:
    """Survey with an index that takes one query at a time; the rest is told by a sample of what the view shows."""
    import numpy as np

    hits = [hit for query in queries for hit in index.search(query, view, limit)]
    best: dict[str, float] = {}
    for hit in hits:
        best[hit.id] = max(hit.cosine, best.get(hit.id, hit.cosine))
    nearest = sorted(best, key=lambda fact_id: -best[fact_id])[:limit]
    found = all_cosines(database, queries, nearest, embedding_id)
    condition, values = view.sql(database.dialect)
    joined = "FROM facts JOIN vectors v ON v.fact_id = facts.id AND v.embedding_id = ? AND length(v.vector) = ?"
    bound = (embedding_id, 4 * queries.shape[1], *values)
    counted = f"SELECT count(*) FROM (SELECT 1 {joined} WHERE {condition} LIMIT {COUNTED}) AS held"
    with database.read() as connection:
        [(texts,)] = run(connection, counted, bound)
        rows = run(connection, f"SELECT v.vector {joined} WHERE {condition} LIMIT {SAMPLE}", bound)
    sample = _matrix_of([blob for (blob,) in rows], queries.shape[1])
    around = np.stack([dots(sample, query) for query in queries])
    return _survey(found, nearest, around, texts)


def _survey(
    found: Mapping[str, tuple[float, ...]], nearest: Iterable[str], around: NDArray[np.float32], texts: int
) -> Survey:
    """Put a survey together: exact cosines by id, and those of each part, of shape (parts, facts), with what it saw."""
    import numpy as np

    # The order is that of the exact cosines.
    ids = sorted((fact_id for fact_id in nearest if fact_id in found), key=lambda fact_id: -max(found[fact_id]))
    exact = np.array([found[fact_id] for fact_id in ids], dtype=np.float32).reshape(len(ids), len(around)).T
    around = np.nan_to_num(around, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
    return Survey(ids, exact, around.sum(1), (around**2).sum(1), around.shape[1], texts)


def scan(
    database: Backend, embedding_id: str, query: Vector, view: View, limit: int, *, among: Collection[str] | None = None
) -> list[VectorHit]:
    """Compare the query with the vectors of all facts that may be seen, read from the database in chunks.

    `query`: float32 of shape (dims,), length one; `limit`: at least 1. Returns the nearest ones, nearest first; exact.
    """
    condition, values = view.sql(database.dialect)
    sql = (
        "SELECT facts.id, v.vector FROM facts JOIN vectors v ON v.fact_id = facts.id AND v.embedding_id = ?"
        f" AND length(v.vector) = ? WHERE {condition}"
    )
    bound: tuple[object, ...] = (embedding_id, 4 * query.size, *values)
    if among is not None:
        sql += " AND facts.id IN (SELECT value FROM json_each(?))"
        bound += (json.dumps(list(among)),)
    best: list[VectorHit] = []
    with database.read() as connection:
        rows = connection.execute(sql, bound)
        while chunk := list(islice(rows, CHUNK)):
            scores = dots(_matrix_of([row[1] for row in chunk], query.size), query)
            best += [VectorHit(chunk[row][0], float(scores[row])) for row in highest(scores, limit)]
            best = sorted(best, key=lambda hit: -hit.cosine)[:limit]
    return best


class ExactIndex:
    """All vectors of one space in one rounded matrix; compares with every one of them, and with the best in full.

    Follows the database by the journal: before each search only what changed since the last one is read.
    """

    def __init__(self, database: Backend, embedding_id: str, dims: int) -> None:
        self._database = database
        self._embedding_id = embedding_id
        self._dims = dims
        self._lock = threading.Lock()
        self._reset()

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        """Return up to `limit` facts that the view's audience may read, nearest first."""
        with self._lock:
            self._refresh()
            rows = self._allowed(view)
            if len(rows) > limit + SPARE:
                some = None if len(rows) == len(self._ids) else rows
                rows = rows[highest(self._matrix.products(query, some), limit + SPARE)]
            ids = [self._ids[row] for row in rows]
        found = cosines(self._database, query, ids, self._embedding_id)
        hits = [VectorHit(fact_id, found[fact_id]) for fact_id in ids if fact_id in found]
        return sorted(hits, key=lambda hit: -hit.cosine)[:limit]

    def survey(self, queries: Vectors, view: View, limit: int) -> Survey:
        """Return up to `limit` facts that are nearest to any of the queries, and how far the queries are from all."""
        import numpy as np

        with self._lock:
            self._refresh()
            rows = self._allowed(view)
            some = None if len(rows) == len(self._ids) else rows
            around = np.stack([self._matrix.products(query, some) for query in queries])
            seen = self._seen
            near = rows[highest(around.max(0), limit + SPARE)]
            ids = [self._ids[row] for row in near]
        found = all_cosines(self._database, queries, ids, self._embedding_id)
        whole = _survey(found, ids, around, len(rows))
        return replace(whole, ids=whole.ids[:limit], cosines=whole.cosines[:, :limit], seen=seen)

    @property
    def loaded(self) -> bool:
        """Whether the matrix is in memory, so that a search costs little."""
        return self._seen > 0

    def close(self) -> None:
        """Drop the matrix; a later search would read it again."""
        with self._lock:
            self._reset()

    def _reset(self) -> None:
        import numpy as np

        self._seen = 0
        self._ids: list[str] = []
        self._rows: dict[str, int] = {}
        self._codes: dict[Scope, int] = {}
        self._matrix = RoundedMatrix(self._dims)
        self._scopes = np.zeros(0, dtype=np.int32)
        self._current = np.zeros(0, dtype=bool)
        self._expires = np.zeros(0, dtype=np.float64)

    def _allowed(self, view: View) -> NDArray[np.intp]:
        """Return the rows that count in a view."""
        import numpy as np

        count = len(self._ids)
        # Those without facts get no code: each conversation has a scope of its own.
        codes = [self._codes[scope] for scope in view.audience.among(self._codes)]
        # The last place stands for NOBODY.
        readable = np.zeros(len(self._codes) + 1, dtype=bool)
        readable[codes] = True
        allowed = readable[self._scopes[:count]]
        if view.as_of is None:
            allowed &= self._expires[:count] > view.now
            if not view.include_superseded:
                allowed &= self._current[:count]
        return np.flatnonzero(allowed)

    def _refresh(self) -> None:
        changed = "SELECT fact_id FROM journal WHERE seq > ? AND seq <= ?"
        with self._database.read() as connection:
            last = newest(connection)
            if last == self._seen:
                return
            first = not self._ids
            if first:
                sql = "SELECT count(*) FROM vectors WHERE embedding_id = ?"
                self._matrix = RoundedMatrix(self._dims, run(connection, sql, (self._embedding_id,))[0][0])
            rows = connection.execute(
                "SELECT f.id, f.scope, f.scope_target, f.forgotten_at IS NULL, f.superseded_at IS NULL, f.expires_at,"
                " v.vector FROM facts f JOIN vectors v ON v.fact_id = f.id AND v.embedding_id = ?"
                f" AND length(v.vector) = ? WHERE f.id IN ({changed})",
                (self._embedding_id, 4 * self._dims, self._seen, last),
            )
            while chunk := list(islice(rows, CHUNK)):
                self._put(chunk)
            gone = (
                f"{changed} AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.fact_id = journal.fact_id"
                " AND v.embedding_id = ?)"
            )
            for (fact_id,) in run(connection, gone, (self._seen, last, self._embedding_id)):
                self._drop(fact_id)
            self._seen = last
        if first:
            give_back()

    def _put(self, chunk: Sequence[Row]) -> None:
        ids, kinds, targets, kept, current, expires, blobs = zip(*chunk, strict=True)
        for fact_id in ids:
            if fact_id not in self._rows:
                self._rows[fact_id] = len(self._ids)
                self._ids.append(fact_id)
        self._scopes = roomier(self._scopes, len(self._ids))
        self._current = roomier(self._current, len(self._ids))
        self._expires = roomier(self._expires, len(self._ids))
        rows = [self._rows[fact_id] for fact_id in ids]
        self._matrix.put(rows, _matrix_of(blobs, self._dims))
        # A forgotten fact keeps its row under a code that no audience has.
        self._scopes[rows] = [
            self._code(Scope(kind, target)) if keeps else NOBODY
            for kind, target, keeps in zip(kinds, targets, kept, strict=True)
        ]
        self._current[rows] = current
        self._expires[rows] = [math.inf if moment is None else moment for moment in expires]

    def _drop(self, fact_id: str) -> None:
        # What was removed from the database for good must not stay in memory either.
        row = self._rows.get(fact_id)
        if row is not None:
            self._matrix.drop(row)
            self._scopes[row] = NOBODY

    def _code(self, scope: Scope) -> int:
        return self._codes.setdefault(scope, len(self._codes))


def _matrix_of(blobs: Sequence[bytes], dims: int) -> NDArray[np.float32]:
    import numpy as np

    return np.frombuffer(b"".join(blobs), dtype="<f4").reshape(-1, dims)


@dataclass(frozen=True, slots=True)
class ScaledIndex:
    """Finds what another index finds, in the same order."""

    index: VectorIndex
    scale: Scale

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        """Return what the index finds; see `VectorIndex.search`."""
        return [VectorHit(hit.id, self.scale.common(hit.cosine)) for hit in self.index.search(query, view, limit)]

    def close(self) -> None:
        """Release what the index holds."""
        self.index.close()
