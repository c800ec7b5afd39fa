"""One order over several legs; of it what says something of its own, and fits."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

Scores = Mapping[str, float]


def fuse(legs: Mapping[str, Scores], weights: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return what each leg gives each candidate: its score divided by its leg's maximum, and weighted.

    It adds up to the candidate's score, 0 to 1; 1 is the best of every leg. Scores below 0 count as 0; the weights of
    the legs that found something are scaled to add up to 1. Reciprocal rank fusion was measured to be worse than the
    better leg alone when one leg is weak; the linear blend of max-normalised scores is better than both.
    """
    tops = {leg: max(scores.values(), default=0.0) for leg, scores in legs.items()}
    ran = {leg: weights[leg] for leg, top in tops.items() if top > 0 and weights[leg] > 0}
    whole = sum(ran.values())
    fused = {candidate: dict.fromkeys(legs, 0.0) for scores in legs.values() for candidate in scores}
    for candidate, parts in fused.items():
        for leg, weight in ran.items():
            parts[leg] = weight / whole * max(0.0, legs[leg].get(candidate, 0.0)) / tops[leg]
    return fused


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


def diverse(ranked: Iterable[tuple[str, Hashable]]) -> dict[str, str]:
    """Return the ids of what must give way to a better-ranked memory that says the same, with the reason.

    `ranked`: ids, each with what is equal for memories of which one may stand for both.
    """
    gone: dict[str, str] = {}
    kept: dict[Hashable, str] = {}
    for name, said in ranked:
        if (twin := kept.setdefault(said, name)) != name:
            gone[name] = f"near-duplicate of {twin}"
    return gone


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of common words among all words, 0 to 1."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0
