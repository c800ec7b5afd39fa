"""The index of a store that may grow: exact, until so many vectors are there that LanceDB answers sooner."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from perdure.index.feeding import VectorCount
from perdure.index.vector_index import ExactIndex, Survey, Surveyor, VectorHit
from perdure.store.search import View

if TYPE_CHECKING:
    from perdure.index.vector_index import Vector, Vectors


class GrowingIndex:
    """Asks the exact index below the crossover; from there on one that knows LanceDB, made of it when first needed."""

    def __init__(self, exact: ExactIndex, count: VectorCount, crossover: int, tiered: Callable[[], Surveyor]) -> None:
        self._exact, self._count, self._crossover, self._make = exact, count, crossover, tiered
        self._tiered: Surveyor | None = None

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        """Return up to `limit` facts that the view's audience may read, nearest first."""
        return self._present().search(query, view, limit)

    def survey(self, queries: Vectors, view: View, limit: int) -> Survey:
        """Return up to `limit` facts that are nearest to any of the queries, and how far the queries are from all."""
        return self._present().survey(queries, view, limit)

    def close(self) -> None:
        """Release what is held."""
        (self._tiered or self._exact).close()

    def _present(self) -> Surveyor:
        if self._tiered is None and self._count.reaches(self._crossover):
            self._tiered = self._make()
        return self._tiered or self._exact
