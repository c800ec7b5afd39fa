"""From which cosine on a vector hit is evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CLEAR = {
    "all-MiniLM-L6-v2 (int8)": 0.54,
    "hash": 0.5,
}
"""Per model: the cosine of a question and a fact that have clearly to do with each other."""

CLEAR_FALLBACK = 0.54
NEIGHBOURS = 8
EMPTY = 0.1
"""What stands for neighbours that a small store does not have: the cosine of unrelated texts."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Sets the floor for each query by how the store answers it.

    One floor for all queries fits none: a question that names someone whom half of the store is about
    comes near all of it, a paraphrase comes near nothing but its answer. So the floor lies halfway between
    the model's clear hit and the query's own background, the mean cosine of the neighbours behind the best hit.

    Attributes:
        clear: cosine of a clear hit.
        fixed: one floor for all queries instead.
    """

    clear: float = CLEAR_FALLBACK
    fixed: float | None = None

    @classmethod
    def of(cls, model: str, fixed: float | None = None) -> Calibration:
        """Return the calibration of a model, by its name."""
        return cls(CLEAR.get(model, CLEAR_FALLBACK), fixed)

    def floor(self, cosines: Sequence[float]) -> float:
        """Return the floor for a query whose nearest facts have these cosines, best first."""
        return (self.clear + background(cosines)) / 2 if self.fixed is None else self.fixed


def background(cosines: Sequence[float]) -> float:
    """Return the mean cosine of the neighbours behind the best hit."""
    behind = list(cosines[1 : 1 + NEIGHBOURS])
    behind += [EMPTY] * (NEIGHBOURS - len(behind))
    return sum(behind) / NEIGHBOURS
