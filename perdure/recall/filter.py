"""Step three: which candidates have evidence enough, in which order, and what is known of each beside."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from perdure.ranking.adjust import Standing
from perdure.ranking.decay import DAY, confidence_at
from perdure.ranking.diversity import Shown
from perdure.ranking.fuse import Fused, fuse
from perdure.ranking.gates import Evidence, Gate
from perdure.recall.options import LEXICAL, LOOKUP, VECTOR
from perdure.recall.retrievers import Found
from perdure.store.fact import Fact, folded_slot
from perdure.text.sameness import said

NO_EVIDENCE: Final = "no evidence"
"""The verdict on those that did not pass."""
NAMED: Final = 0.9
"""The least score of a memory whose slot the prompt names: that is exact, and needs no model."""
BY_WORDS: Final = 0.5
"""From this share of the prompt's words on a memory is said to be found by words."""


def gate_of(found: Found, threshold: float | str) -> Gate:
    """Return the gate that these candidates must pass; `threshold` is a probability, or a point of the learned gate."""
    if isinstance(threshold, str):
        threshold = found.gate.points[threshold] if found.gate else 0.0
    return Gate(found.floor if found.floor is not None else 1.0, threshold)


def passed(found: Found, gate: Gate) -> set[str]:
    """Return the ids of the candidates that have evidence enough."""
    return {fact_id for fact_id in found.facts if gate.verdict(found.evidence[fact_id]) is not None}


def in_order(found: Found, some: Set[str], weights: Mapping[str, float]) -> list[Fused]:
    """Return some of the candidates, best first.

    By their probability if a model judged them, else by a blend of what the legs say.
    """
    if found.judged:
        judged = [_judged(fact_id, found.evidence[fact_id]) for fact_id in some]
        return sorted(judged, key=lambda item: (-item.score, item.id))
    legs = {
        leg: {fact_id: score for fact_id, score in scores.items() if fact_id in some}
        for leg, scores in found.scores.items()
    }
    return [item for item in fuse(legs, weights) if item.id in some]


def _judged(fact_id: str, evidence: Evidence) -> Fused:
    if evidence.named:
        leg, score = LOOKUP, max(NAMED, evidence.probability or 0.0)
    elif evidence.probability is None:
        leg, score = LEXICAL, evidence.coverage
    else:
        leg, score = LEXICAL if evidence.coverage >= BY_WORDS else VECTOR, evidence.probability
    return Fused(fact_id, score, {leg: score})


def standing_of(fact: Fact, now: float, directive: bool) -> Standing:
    """Return what counts of a memory beside how well it fits."""
    confirmed = fact.last_confirmed_at or fact.created_at
    return Standing(
        fact.importance,
        confidence_at(fact.confidence, confirmed, fact.expires_at, now),
        fact.access_count + fact.reinforced_count,
        max(0.0, now - fact.effective_date) / DAY,
        None if fact.expires_at is None else max(0.0, fact.expires_at - now) / DAY,
        fact.decay_class,
        directive,
    )


def shown_of(fact: Fact) -> Shown:
    """Return what tells two memories apart that say the same."""
    return Shown(fact.id, (said(fact.text), *map(folded_slot, (fact.entity, fact.key, fact.value))))
