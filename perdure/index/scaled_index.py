"""A vector index whose cosines are on the scale of the default model, for whom every threshold was chosen."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.embed.base import Vector
from perdure.index.vector_index import VectorHit, VectorIndex
from perdure.ranking.calibration import Scale
from perdure.store.search import View


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
