"""What a memory's standing adds to, or takes from, how well it fits a prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from perdure.ranking.decay import DAY, confidence_at
from perdure.store.fact import Fact

RECENT_DAYS = 90.0
"""An older memory is not recent at all."""
FRESH_DAYS = 7.0
"""A memory that lives at least so much longer is as fresh as any."""
_DIRECTIVE_FACTOR = 1.25
_LONG_TERM = {"permanent": 1.2, "durable": 1.1, "stable": 1.1}


ADJUSTED = ("salience", "confidence", "directive")
"""The adjustments that are made by default; all are in `_FACTORS`."""


def adjusted(score: float, fact: Fact, now: float, names: Collection[str]) -> tuple[float, Mapping[str, float]]:
    """Return the score (0 to 1) with the adjustments of these names, and the factor of each that changed it.

    Of two that reach 1, the product of score and factors still tells which is ahead. `now`: epoch seconds; "directive"
    is named where one brings the memory up for this prompt.
    """
    factors = {name: factor(fact, now) for name, factor in _FACTORS.items() if name in names}
    applied = {name: factor for name, factor in factors.items() if factor != 1.0}
    return _share(score * math.prod(applied.values())), MappingProxyType(applied)


def _importance_recency(fact: Fact, now: float) -> float:
    recency = _share(1.0 - max(0.0, now - fact.effective_date) / DAY / RECENT_DAYS)
    return (0.7 + 0.3 * _share(fact.importance)) * (0.8 + 0.2 * recency)


def _salience(fact: Fact, now: float) -> float:
    # Being put into a prompt does not count: what comes up often would come up ever more often.
    return 1.0 + 0.1 * math.log1p(max(0, fact.access_count + fact.reinforced_count))


def _freshness(fact: Fact, now: float) -> float:
    # Freshness and confidence have the shares of the documented sum (60 % BM25, 25 % freshness, 15 % confidence)
    # as factors: added, they would lift a memory that hardly fits above one that does.
    left = math.inf if fact.expires_at is None else max(0.0, fact.expires_at - now) / DAY
    return 0.75 + 0.25 * _share(left / FRESH_DAYS)


def _confidence(fact: Fact, now: float) -> float:
    confirmed = fact.last_confirmed_at or fact.created_at
    return 0.85 + 0.15 * _share(confidence_at(fact.confidence, confirmed, fact.expires_at, now))


def _share(value: float) -> float:
    # An import may bring any number.
    return min(1.0, max(0.0, value))


_FACTORS: Mapping[str, Callable[[Fact, float], float]] = {
    "importance_recency": _importance_recency,
    "long_term": lambda fact, now: _LONG_TERM.get(fact.decay_class, 1.0),
    "salience": _salience,
    "freshness": _freshness,
    "confidence": _confidence,
    "directive": lambda fact, now: _DIRECTIVE_FACTOR,
}
