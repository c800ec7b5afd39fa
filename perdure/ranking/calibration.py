"""From which cosine on a vector hit is evidence, whatever the model.

Every constant is a cosine of one model, all-MiniLM-L6-v2 (the reference). What other models return is brought onto its
scale first: the same 60 pairs of a question and a memory are measured with either, and where their cosines lie is made
to agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

CLEAR: Final = 0.54
"""The cosine of a question and a fact that have clearly to do with each other."""
NEIGHBOURS: Final = 8
EMPTY: Final = 0.1
"""What stands for neighbours that a small store does not have: the cosine of unrelated texts."""
MAX_LIFT: Final = 0.12
"""So much nearer at the most a clear hit must be in a store that foreign questions come near."""
PASSING: Final = 0.05
"""The share of foreign questions that may find something: one in 20 may be about what the store holds."""
LEAST_SPAN: Final = 1e-4
"""Two levels that are no further apart are one."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Where the cosines of a model lie, measured on pairs of a question and the memory that answers it."""

    unrelated: float  # mean cosine of a question and the memories of the other pairs
    chance: float  # exceeded by one in a hundred of those cosines
    answer: float  # mean cosine of a question and its own memory


REFERENCE: Final = Levels(unrelated=0.0571, chance=0.2764, answer=0.4541)
"""Of all-MiniLM-L6-v2 with int8 weights, for which every constant was chosen."""
DEFAULT: Final = Levels(unrelated=0.0736, chance=0.3291, answer=0.4877)
"""Of the default model."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps the cosines of a model onto the scale of the reference."""

    stretch: float = 1.0  # factor applied to a cosine
    offset: float = 0.0  # added to the stretched cosine

    @classmethod
    def of(cls, levels: Levels) -> Scale:
        """Return the scale on which a model's unrelated texts lie where those of the reference do.

        It stretches as far as neither answers nor what chance brings come to lie beyond the reference's. So a
        model that tells the two apart less well brings up less, and not more that is wrong; one that tells nothing
        apart is not stretched at all, and nothing is evidence then.
        """
        spans = (
            (levels.answer - levels.unrelated, REFERENCE.answer - REFERENCE.unrelated),
            (levels.chance - levels.unrelated, REFERENCE.chance - REFERENCE.unrelated),
        )
        stretch = min((reference / own for own, reference in spans if own > LEAST_SPAN), default=0.0)
        return cls(stretch, REFERENCE.unrelated - stretch * levels.unrelated)

    def common(self, cosine: float) -> float:
        """Return what the cosine would be of the reference.

        Beyond a clear hit the same text stays the same: a cosine of 1 is 1 on either scale.
        """
        value = self.offset + self.stretch * cosine
        most = self.offset + self.stretch
        if value <= CLEAR or most <= CLEAR:
            return value
        return CLEAR + (value - CLEAR) * (1 - CLEAR) / (most - CLEAR)

    def own(self, value: float) -> float:
        """Return the cosine of the model that is `value` on the common scale. A stretch of 0 has none."""
        most = self.offset + self.stretch
        if value > CLEAR and most > CLEAR:
            value = CLEAR + (value - CLEAR) * (most - CLEAR) / (1 - CLEAR)
        return (value - self.offset) / self.stretch


@dataclass(frozen=True, slots=True)
class Calibration:
    """Sets the floor for each query by how the store answers it.

    One floor for all queries fits none: a question that names someone whom half of the store is about comes near all of
    it, a paraphrase comes near nothing but its answer. So the floor lies halfway between a clear hit and the query's
    own background, the mean cosine of the neighbours behind the best hit.
    """

    scale: Scale = Scale()  # maps the model's cosines onto the scale of `CLEAR` and the floor
    lift: float = 0.0  # how far above `CLEAR` a clear hit must be in this store
    fixed: float | None = None  # one floor for all queries instead, in the model's own cosines

    def common(self, cosine: float) -> float:
        """Return a cosine of the model as it is compared with the floor."""
        return self.scale.common(cosine) if self.fixed is None else cosine

    def floor(self, cosines: Sequence[float]) -> float:
        """Return the floor for a query whose nearest facts have these cosines, best first, all of `common`."""
        return (CLEAR + self.lift + background(cosines)) / 2 if self.fixed is None else self.fixed


def lift(nearest: Sequence[Sequence[float]]) -> float:
    """Return how far above `CLEAR` a clear hit must be so that unrelated questions find nothing in a store.

    The more a store holds, the nearer chance comes to some question. All but one in 20 of them must find nothing; but a
    store that is about such questions is not silenced for it. `nearest` holds, for each question, the cosines of its
    nearest facts, best first.
    """
    needed = sorted(2 * cosines[0] - background(cosines) - CLEAR for cosines in nearest if cosines)
    if not needed:
        return 0.0
    return min(MAX_LIFT, max(0.0, needed[math.ceil((1 - PASSING) * len(needed)) - 1]))


def background(cosines: Sequence[float]) -> float:
    """Return the mean cosine of the neighbours behind the best hit."""
    behind = list(cosines[1 : 1 + NEIGHBOURS])
    behind += [EMPTY] * (NEIGHBOURS - len(behind))
    return sum(behind) / NEIGHBOURS
