"""Nearest chunks: signs and rounded vectors in memory, the vectors themselves in the index file.

Fifty thousand vectors of 384 floats take 77 MB; half a byte for each number takes 10, a sign for each 2.4. The chunks
whose signs differ least from the query's are compared once more by their rounded vectors. Only of the best by that are
the vectors read from the file and compared in full: reading one costs as much as comparing dozens in memory.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from perdure.files.generation import Generation
from perdure.heap import give_back
from perdure.store.database import Row, run
from perdure.store.scope import Audience, Scope
from perdure.store.vector_index import dots

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

CANDIDATES = 2
SPARE = 32
"""So many times more than asked for, and so many on top, are compared in full. Rounding shifts a cosine by 0.006
(standard deviation): enough to swap neighbours at the end of a list, not to lose one of its beginning."""
BY_SIGNS = 16
LEAST_BY_SIGNS = 1_280
"""So many times more than that, and at least so many, are chosen by signs alone."""
WORD = 64
LEVELS = 7
"""To either side of zero, half a byte in all."""
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
    """The signs and rounded vectors of all chunks of the live generation. Usable from any thread."""

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
                ids = self._candidates(query, audience, sources, CANDIDATES * limit + SPARE)
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
        self._ids = np.zeros(0, dtype=np.int64)
        self._code = np.zeros(0, dtype=np.int32)
        self._signs = np.zeros((-(-dims // WORD), 0), dtype=np.uint64)
        self._steps = np.zeros(0, dtype=np.float32)
        self._rounded = np.zeros((0, -(-dims // 2)), dtype=np.uint8)

    def _refresh(self, generation: Generation, space: str, dims: int) -> None:
        import numpy as np

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
                self._rounded = np.empty((count, -(-dims // 2)), dtype=np.uint8)
            for sql, values in (
                (_NEW_CHUNKS, (seen.chunk, chunk, vector)),
                (_NEW_VECTORS, (seen.chunk, seen.vector, vector)),
            ):
                found = connection.execute(sql, (space, *values))
                while some := list(islice(found, CHUNK)):
                    self._append(some, dims)
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
            vectors = np.concatenate(parts)
            self._signs = np.concatenate([self._signs, _signs(vectors).T], axis=1)
            self._keep_rounded(vectors)

    def _keep_rounded(self, vectors: NDArray[np.float32]) -> None:
        import numpy as np

        steps, rounded = _rounded(vectors)
        count = len(self._steps)
        if count + len(rounded) > len(self._rounded):
            roomier = np.empty((count + max(count // 8, len(rounded)), rounded.shape[1]), dtype=np.uint8)
            roomier[:count] = self._rounded[:count]
            self._rounded = roomier
        self._rounded[count : count + len(rounded)] = rounded
        self._steps = np.concatenate([self._steps, steps])

    def _forget(self, generation: Generation, chunks: list[int]) -> None:
        """Forget these chunks, and whatever else has left the file: looking for it costs as much as a search."""
        import numpy as np

        with generation.database.read() as connection:
            there = [row[0] for row in run(connection, "SELECT id FROM chunks")]
        kept = np.isin(self._ids, there) & ~np.isin(self._ids, chunks)
        self._rounded = self._rounded[: len(kept)][kept]
        self._ids, self._code, self._steps = self._ids[kept], self._code[kept], self._steps[kept]
        self._signs = self._signs[:, kept]

    def _candidates(self, query: Vector, audience: Audience, sources: Collection[str], count: int) -> list[int]:
        import numpy as np

        wanted = [
            code for (scope, source), code in self._codes.items() if audience.may_read(scope) and source in sources
        ]
        everything = len(wanted) == len(self._codes)
        allowed = np.arange(len(self._ids)) if everything else np.flatnonzero(np.isin(self._code, wanted))
        if not allowed.size:
            return []
        distance = np.zeros(len(allowed), dtype=np.uint16)
        # A word of all rows after the other: each pass runs through memory once.
        for word, own in zip(self._signs, _signs(query[None, :])[0], strict=True):
            distance += np.bitwise_count((word if everything else word[allowed]) ^ own)
        by_signs = max(BY_SIGNS * count, LEAST_BY_SIGNS)
        if len(allowed) > by_signs:
            allowed = allowed[np.argpartition(distance, by_signs)[:by_signs]]
        if len(allowed) > count:
            near = self._steps[allowed] * _products(self._rounded[allowed], query)
            allowed = allowed[np.argsort(-near)]
        # A text of many parts has a row for each: as many texts are wanted, not rows.
        return list(dict.fromkeys(self._ids[allowed].tolist()))[:count]


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
    return dict(
        zip((chunk for chunk, _ in rows), np.maximum.reduceat(dots(vectors, query), starts).tolist(), strict=True)
    )


def _rounded(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return each row's step, and its numbers in steps, two in a byte, of shape (rows, dims / 2 rounded up)."""
    import numpy as np

    steps = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / np.float32(LEVELS)
    # What is not a number, as in a damaged file, is rounded to anything: it is compared in full before it counts.
    with np.errstate(invalid="ignore"):
        levels = (np.rint(vectors / steps[:, None]) + (LEVELS + 1)).astype(np.uint8)
    if levels.shape[1] % 2:
        levels = np.pad(levels, ((0, 0), (0, 1)))
    return steps, levels[:, ::2] | levels[:, 1::2] << np.uint8(4)


def _products(rounded: NDArray[np.uint8], query: Vector) -> NDArray[np.float32]:
    """Return the products of a query with rounded vectors, in steps of these."""
    import numpy as np

    even, odd = query[::2], np.zeros(rounded.shape[1], dtype=np.float32)
    odd[: query.size // 2] = query[1::2]
    low, high = (rounded & 15).astype(np.float32), (rounded >> 4).astype(np.float32)
    products: NDArray[np.float32] = dots(low, even) + dots(high, odd) - (LEVELS + 1) * query.sum()
    return products


def _signs(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return a bit per dimension, of shape (rows, dims / 64 rounded up)."""
    import numpy as np

    bits = np.packbits(vectors > 0, axis=1)
    padding = -bits.shape[1] % 8
    if padding:
        bits = np.pad(bits, ((0, 0), (0, padding)))
    signs: NDArray[np.uint64] = np.ascontiguousarray(bits).view(np.uint64)
    return signs
