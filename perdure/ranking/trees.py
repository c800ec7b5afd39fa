"""Gradient-boosted trees as plain numbers: from a row of features to a probability, and what speaks for and against.

    {"features": [...], "base": b, "slope": s, "shift": t, "roots": [...], "feature": [...], "threshold": [...],
     "left": [...], "right": [...], "value": [...]}

All trees stand one behind the other. A node is a leaf where `feature` is -1; a row goes left if its feature is at most
the threshold. The sum of the leaves' values and `base` is a log-odds; times `slope`, plus `shift`, it is calibrated.
Applied with numpy; `training/boosted.py` fits and writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from perdure.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_EXTREME: Final = 30.0


@dataclass(frozen=True, slots=True)
class Trees:
    """Trees over named features; the module docstring says what `base`, `slope` and `shift` do."""

    names: Sequence[str]  # of the features, in the order of a row
    base: float
    slope: float
    shift: float
    roots: NDArray[np.int32]  # first node of each tree
    feature: NDArray[np.int32]  # of each node
    threshold: Floats  # of each node
    children: NDArray[np.int32]  # of each node, the right one, then the left one; a leaf is its own child
    value: Floats  # of each node; inside a tree the mean of its leaves
    depth: int  # steps from a root to the furthest leaf

    @classmethod
    def of(cls, plain: Mapping[str, Any], names: Sequence[str]) -> Trees:
        """Build trees from their JSON to be asked with these features; ModelError if they were fitted on others."""
        import numpy as np

        if plain["features"] != list(names):
            raise ModelError("the trees were fitted on different features; fit them again: see training/README.md")
        feature = np.array(plain["feature"], dtype=np.int32)
        leaf, own = feature < 0, np.arange(len(feature))
        sides = [np.where(leaf, own, plain[side]) for side in ("right", "left")]
        depth = np.zeros(len(feature), dtype=int)
        for node in np.flatnonzero(~leaf).tolist():  # a child stands behind its parent
            depth[[sides[0][node], sides[1][node]]] = depth[node] + 1
        return cls(
            names=names, base=plain["base"], slope=plain["slope"], shift=plain["shift"],
            roots=np.array(plain["roots"], dtype=np.int32), feature=np.maximum(feature, 0),
            threshold=np.array(plain["threshold"], dtype=np.float32),
            children=np.stack(sides, axis=1).astype(np.int32).ravel(),
            value=np.array(plain["value"], dtype=np.float32), depth=int(depth.max(initial=0)),
        )  # fmt: skip

    def probabilities(self, rows: Floats) -> list[float]:
        """Return a probability for each row, 0 to 1; `rows` of shape (rows, len(names))."""
        import numpy as np

        odds = np.clip(self.slope * self.log_odds(rows) + self.shift, -_EXTREME, _EXTREME)
        probabilities: list[float] = (1 / (1 + np.exp(-odds))).tolist()
        return probabilities

    def log_odds(self, rows: Floats) -> NDArray[np.float64]:
        """Return the log-odds of each row before they are calibrated."""
        import numpy as np

        *_, reached = self._walk(rows)
        leaves = self.value.take(reached)
        return np.asarray(self.base + leaves.sum(axis=1, dtype=np.float64))

    def reasons(self, rows: Floats, most: int) -> list[dict[str, float]]:
        """Return of each row the features that moved its log-odds most, with how far, the strongest first.

        What a step from a node to its child changes in the mean of the leaves is put down to the feature asked there
        (Saabas 2014, "Interpreting random forests").
        """
        import numpy as np

        count, names = len(rows), self.names
        start = (np.arange(count) * len(names))[:, None]
        moved = np.zeros(count * len(names))
        for before, after in pairwise(self._walk(rows)):
            steps = self.value.take(after) - self.value.take(before)
            moved += np.bincount((start + self.feature.take(before)).ravel(), steps.ravel(), len(moved))
        told = self.slope * moved.reshape(count, len(names))
        strongest = np.argsort(-np.abs(told), axis=1, kind="stable")[:, :most]
        return [
            {names[at]: round(mine[at], 2) for at in places if mine[at]}
            for mine, places in zip(told.tolist(), strongest.tolist(), strict=True)
        ]

    def _walk(self, rows: Floats) -> Iterator[NDArray[np.int32]]:
        """Yield the nodes of shape (rows, trees) that each row comes to, from the roots to the leaves."""
        import numpy as np

        flat, start = rows.ravel(), (np.arange(len(rows), dtype=np.int32) * len(self.names))[:, None]
        node = np.repeat(self.roots[None, :], len(rows), axis=0)
        yield node
        for _ in range(self.depth):
            left = flat.take(start + self.feature.take(node)) <= self.threshold.take(node)
            node = self.children.take(2 * node + left)
            yield node
