"""What a memory's standing adds to, or takes from, how well it fits a prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

RECENT_DAYS = 90.0
"""An older memory is not recent at all."""
FRESH_DAYS = 7.0
"""A memory that lives at least so much longer is as fresh as any."""
_DIRECTIVE_FACTOR = 1.25
_LONG_TERM = {"permanent": 1.2, "durable": 1.1, "stable": 1.1}


ADJUSTED = ("salience", "confidence", "directive")
"""The adjustments that are made by default; all are in `_FACTORS`."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a memory apart from the prompt."""

    importance: float  # 0 to 1
    confidence: float  # 0 to 1, at the time of asking; see `perdure.ranking.decay.confidence_at`
    # Times it was used: opened by a tool, confirmed or repeated by the user, or needed for a reply. Being put into a
    # prompt does not count: what comes up often would come up ever more often.
    uses: int
    age_days: float  # since it was said
    remaining_days: float | None  # until it expires; None: never
    decay_class: str  # one of `perdure.ranking.decay.LIFETIMES`
    directive: bool = False  # whether a directive brings it up for this prompt


def adjusted(score: float, standing: Standing, names: Collection[str]) -> tuple[float, Mapping[str, float]]:
    """Return the score (0 to 1) with the adjustments of these names, and the factor of each that changed it.

    Of two that reach 1, the product of score and factors still tells which is ahead.
    """
    factors = {name: factor(standing) for name, factor in _FACTORS.items() if name in names}
    applied = {name: factor for name, factor in factors.items() if factor != 1.0}
    return _share(score * math.prod(applied.values())), MappingProxyType(applied)


def _importance_recency(standing: Standing) -> float:
    recency = _share(1.0 - standing.age_days / RECENT_DAYS)
    return (0.7 + 0.3 * _share(standing.importance)) * (0.8 + 0.2 * recency)


def _long_term(standing: Standing) -> float:
    return _LONG_TERM.get(standing.decay_class, 1.0)


def _salience(standing: Standing) -> float:
    return 1.0 + 0.1 * math.log1p(max(0, standing.uses))


def _freshness(standing: Standing) -> float:
    # Freshness and confidence have the shares of the documented sum (60 % BM25, 25 % freshness, 15 % confidence)
    # as factors: added, they would lift a memory that hardly fits above one that does.
    fresh = 1.0 if standing.remaining_days is None else _share(standing.remaining_days / FRESH_DAYS)
    return 0.75 + 0.25 * fresh


def _confidence(standing: Standing) -> float:
    return 0.85 + 0.15 * _share(standing.confidence)


def _directive(standing: Standing) -> float:
    return _DIRECTIVE_FACTOR if standing.directive else 1.0


def _share(value: float) -> float:
    # An import may bring any number.
    return min(1.0, max(0.0, value))


_FACTORS: Mapping[str, Callable[[Standing], float]] = {
    "importance_recency": _importance_recency,
    "long_term": _long_term,
    "salience": _salience,
    "freshness": _freshness,
    "confidence": _confidence,
    "directive": _directive,
}
