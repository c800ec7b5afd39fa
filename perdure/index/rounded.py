"""Vectors in memory, a byte for each number.

The nearest are chosen by these, and only they are read from the disk and compared in full. All products of a query are
taken at once, so whatever decides who may see a row is a mask over numbers, and no graph has to know of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perdure.embed.base import Vector, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.intp]

SPARE = 16
"""So many more than asked for are to be compared in full. Rounding shifts a cosine by 0.0005 (standard deviation):
enough to swap neighbours at the end of a list; `python -m bench.ann` prints what is lost."""
LEVELS = 127
"""To either side of zero."""
SPARSE = 8
"""If fewer than one row in so many is asked for, these are copied together first."""


class RoundedMatrix:
    """Rows of vectors, each rounded to 255 steps of its own size. Not locked."""

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
        from numkong import cdist

        asked_for = self._count if rows is None else len(rows)
        if not asked_for:
            return np.zeros(0, dtype=np.float32)
        some = rows is not None and asked_for * SPARSE < self._count
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
    steps = np.where(np.isfinite(peaks), peaks, 0).astype(np.float32) / np.float32(LEVELS)
    with np.errstate(invalid="ignore", over="ignore"):
        levels = np.rint(vectors / np.maximum(steps, np.finfo(np.float32).tiny)[:, None])
        return steps, np.clip(levels, -LEVELS, LEVELS).astype(np.int8)


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
