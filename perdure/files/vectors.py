"""Nearest chunks: rounded vectors in memory, the vectors themselves in the index file."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from perdure.files.generation import Generation
from perdure.heap import give_back
from perdure.index.rounded import SPARE, RoundedMatrix, highest
from perdure.index.vector_index import dots
from perdure.store.scope import Audience, Scope
from perdure.store.sql import Row, run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

CHUNK = 1024
"""Vectors that are read at a time."""
_COLUMNS = "c.id, c.scope, c.scope_target, c.source, e.vectors"
_NEW_CHUNKS = (
    f"SELECT {_COLUMNS} FROM chunks c CROSS JOIN embedding_cache e ON e.hash = c.hash AND e.space = ?"
    " WHERE c.id > ? AND c.id <= ? AND e.seq <= ?"
)
_NEW_VECTORS = (
    f"SELECT {_COLUMNS} FROM embedding_cache e CROSS JOIN chunks c ON c.hash = e.hash AND e.space = ?"
    " WHERE c.id <= ? AND e.seq > ? AND e.seq <= ?"
)
"""Of texts that were indexed before they were embedded."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """Up to where a generation has been read: of which space, which chunk, which vector."""

    generation: int = 0
    space: str = ""
    chunk: int = 0
    vector: int = 0


class ChunkVectors:
    """The rounded vectors of all chunks of the live generation. Usable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen = _Seen()
        self._loaded = False

    def nearest(
        self,
        generation: Generation,
        space: str,
        query: Vector,
        audience: Audience,
        sources: Collection[str],
        limit: int,
    ) -> dict[int, float]:
        """Return the cosines of up to `limit` chunks that the audience may read, nearest first.

        Args:
            generation: where the chunks are.
            space: the embedder's identity.
            query: float32 of shape (dims,), length one.
            audience: who asks.
            sources: which kinds of files.
            limit: at least 1.

        Raises:
            StoreError: the index cannot be read.
        """
        with self._lock:
            self._refresh(generation, space, query.size)
            while True:
                ids = self._candidates(query, audience, sources, limit + SPARE)
                found = cosines(generation, space, query, ids)
                if len(found) == len(ids):
                    break
                # What has left the file is noticed only here. It must not take the place of what is there.
                self._forget(generation, [chunk for chunk in ids if chunk not in found])
        best = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit]
        return dict(best)

    def close(self) -> None:
        """Drop what is in memory; a later search would read it again."""
        with self._lock:
            # A process that never compared vectors has not imported numpy, and need not.
            if self._loaded:
                self._reset(0)

    def _reset(self, dims: int) -> None:
        import numpy as np

        self._loaded = True
        self._seen = _Seen()
        self._codes: dict[tuple[Scope, str], int] = {}
        self._ids = self._starts = np.zeros(0, dtype=np.int64)
        self._code = np.zeros(0, dtype=np.int32)
        self._matrix = RoundedMatrix(dims)

    def _refresh(self, generation: Generation, space: str, dims: int) -> None:
        if (self._seen.generation, self._seen.space) != (generation.number, space):
            self._reset(dims)
            self._seen = _Seen(generation.number, space)
        newest = "SELECT (SELECT coalesce(max(id), 0) FROM chunks), (SELECT coalesce(max(seq), 0) FROM embedding_cache)"
        first = not len(self._ids)
        with generation.database.read() as connection:
            [(chunk, vector)] = run(connection, newest)
            if (chunk, vector) == (self._seen.chunk, self._seen.vector):
                return
            # Whatever fails on the way, the next call begins anew.
            seen, self._seen = self._seen, _Seen()
            if first:
                # One of the right size: every larger one that takes its place would leave a hole in memory.
                [(count,)] = run(connection, "SELECT count(*) FROM chunks")
                self._matrix = RoundedMatrix(dims, count)
            for sql, values in (
                (_NEW_CHUNKS, (seen.chunk, chunk, vector)),
                (_NEW_VECTORS, (seen.chunk, seen.vector, vector)),
            ):
                found = connection.execute(sql, (space, *values))
                while some := list(islice(found, CHUNK)):
                    self._append(some, dims)
        self._starts = starts_of(self._ids)
        if first:
            give_back()
        self._seen = _Seen(generation.number, space, chunk, vector)

    def _append(self, rows: list[Row], dims: int) -> None:
        import numpy as np

        ids: list[int] = []
        codes: list[int] = []
        parts: list[NDArray[np.float32]] = []
        for chunk, kind, target, source, blob in rows:
            vectors = np.frombuffer(blob, dtype="<f4")
            if vectors.size % dims:
                continue
            vectors = vectors.reshape(-1, dims)
            code = self._codes.setdefault((Scope(kind, target), source), len(self._codes))
            ids += [chunk] * len(vectors)
            codes += [code] * len(vectors)
            parts.append(vectors)
        if ids:
            self._ids = np.concatenate([self._ids, np.array(ids, dtype=np.int64)])
            self._code = np.concatenate([self._code, np.array(codes, dtype=np.int32)])
            self._matrix.append(np.concatenate(parts))

    def _forget(self, generation: Generation, chunks: list[int]) -> None:
        """Forget these chunks, and whatever else has left the file: looking for it costs as much as a search."""
        import numpy as np

        with generation.database.read() as connection:
            there = [row[0] for row in run(connection, "SELECT id FROM chunks")]
        kept = np.isin(self._ids, there) & ~np.isin(self._ids, chunks)
        self._ids, self._code = self._ids[kept], self._code[kept]
        self._starts = starts_of(self._ids)
        self._matrix.keep(kept)

    def _candidates(self, query: Vector, audience: Audience, sources: Collection[str], count: int) -> list[int]:
        import numpy as np

        allowed = np.array(
            [audience.may_read(scope) and source in sources for scope, source in self._codes], dtype=bool
        )
        rows = None if allowed.all() else np.flatnonzero(allowed[self._code])
        # A text of many parts has a row for each, one behind the other: as many texts are wanted, not rows.
        ids, starts = self._ids, self._starts
        if rows is not None:
            ids = ids[rows]
            starts = starts_of(ids)
        if len(starts) > count:
            best = self._matrix.products(query, rows)
            if len(starts) < len(ids):
                best = np.maximum.reduceat(best, starts)
            starts = starts[highest(best, count)]
        return list(dict.fromkeys(ids[starts].tolist()))


def starts_of(ids: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return where each run of equal ids begins."""
    import numpy as np

    return np.flatnonzero(np.diff(ids, prepend=-1))


def cosines(generation: Generation, space: str, query: Vector, ids: Iterable[int]) -> dict[int, float]:
    """Return the cosine of the query and each of these chunks that is there and has a vector; of parts the best."""
    import numpy as np

    sql = (
        "SELECT c.id, e.vectors FROM chunks c CROSS JOIN embedding_cache e ON e.hash = c.hash AND e.space = ?"
        " WHERE c.id IN (SELECT value FROM json_each(?))"
    )
    with generation.database.read() as connection:
        rows = run(connection, sql, (space, json.dumps(list(ids))))
    size = query.nbytes
    rows = [(chunk, blob) for chunk, blob in rows if blob and not len(blob) % size]
    if not rows:
        return {}
    vectors = np.frombuffer(b"".join(blob for _, blob in rows), dtype="<f4").reshape(-1, query.size)
    starts = np.cumsum([0, *(len(blob) // size for _, blob in rows[:-1])])
    best = np.maximum.reduceat(dots(vectors, query), starts).tolist()
    # A damaged vector may hold what is not a number, and is near nothing.
    return {row[0]: cosine for row, cosine in zip(rows, best, strict=True) if math.isfinite(cosine)}
