"""One order over several legs; of it what says something of its own, and fits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

Scores = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Fused:
    """A candidate's place in the common order."""

    id: str
    score: float  # 0 to 1; 1 is the best of every leg
    parts: Mapping[str, float]  # what each leg gave; they add up to the score

    @property
    def leg(self) -> str:
        """The leg with the largest part; of equals the first."""
        return max(self.parts, key=lambda leg: self.parts[leg])


def fuse(legs: Mapping[str, Scores], weights: Mapping[str, float]) -> list[Fused]:
    """Add up the legs' scores, each divided by its leg's maximum and weighted; return all, best first, ties by id.

    Scores below 0 count as 0; the weights of the legs that found something are scaled to add up to 1. Reciprocal rank
    fusion was measured to be worse than the better leg alone when one leg is weak; the linear blend of max-normalised
    scores is better than both.
    """
    tops = {leg: max(scores.values(), default=0.0) for leg, scores in legs.items()}
    ran = {leg: weights[leg] for leg, top in tops.items() if top > 0 and weights[leg] > 0}
    whole = sum(ran.values())
    ids = {candidate for scores in legs.values() for candidate in scores}
    fused = []
    for candidate in ids:
        parts = dict.fromkeys(legs, 0.0)
        for leg, weight in ran.items():
            parts[leg] = weight / whole * max(0.0, legs[leg].get(candidate, 0.0)) / tops[leg]
        fused.append(Fused(candidate, sum(parts.values()), parts))
    return sorted(fused, key=lambda item: (-item.score, item.id))


def relative_cut(fused: list[Fused], share: float) -> list[Fused]:
    """Keep the candidates that reach `share` (0 to 1) of the best one's score."""
    if not fused:
        return []
    least = share * max(item.score for item in fused)
    return [item for item in fused if item.score >= least]


def fit(costs: Sequence[int], budget: int, limit: int) -> list[int]:
    """Return the indexes of at most `limit` ranked items whose costs fit into a budget of tokens.

    An item that does not fit is passed over, so that a long one does not shut out the short ones after it.
    """
    chosen: list[int] = []
    left = budget
    for index, cost in enumerate(costs):
        if len(chosen) == limit:
            break
        if cost <= left:
            chosen.append(index)
            left -= cost
    return chosen


@dataclass(frozen=True, slots=True)
class Shown:
    """What decides whether two memories may stand in one block."""

    id: str
    said: Hashable  # equal for memories of which one may stand for both


def diverse(ranked: Sequence[Shown]) -> dict[str, str]:
    """Return what must give way to a better-ranked memory that says the same, with the reason."""
    gone: dict[str, str] = {}
    kept: dict[Hashable, str] = {}
    for item in ranked:
        if (twin := kept.setdefault(item.said, item.id)) != item.id:
            gone[item.id] = f"near-duplicate of {twin}"
    return gone


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of common words among all words, 0 to 1."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0
