"""How passages of files and turns of conversations are scored: on one absolute scale.

What two texts say of a query is 0 to 1. What counts beside it may lift a passage above 1. Only the order counts up
there: whoever shows a score shows 1, but cut off before they are ordered, the best would all be equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perdure.ranking.fuse import jaccard

KEYWORD = "keyword"
VECTOR = "vector"
UNRELATED = 0.1
"""Cosine of two texts that have nothing to do with each other."""
HALF_LIFE_DAYS = 30.0
LAMBDA = 0.7
FULL_LENGTH = 200
"""Characters from which a turn counts as saying something."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of what makes up the score of a passage.

    The two legs are scaled to add up to 1 over those that ran. The others are added to them.
    """

    keyword: float  # share of the query's words
    vector: float  # cosine
    # The better leg, where that is more than the mean of both: a paraphrase shares no word with what is asked, an error
    # code has no meaning that is near.
    alone: float = 0.0
    neighbour: float = 0.0  # the passages before and after, each
    document: float = 0.0  # the whole file or conversation
    # The question that a turn follows, on top of `neighbour`: an answer leaves out the words of its question.
    answer: float = 0.0
    first: float = 0.0  # the turn that opens a conversation: it says what is new
    period: float = 0.0  # what was said at a time that the query names: "last week" stands in no turn of that week
    speaker: float = 0.0  # turns of the one speaker whom the query names
    question: float = 0.0  # subtracted for turns that only ask
    short: float = 0.0  # subtracted for turns below 200 characters, in proportion


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate passage."""

    document: int  # identifies its file or conversation
    place: int  # its position in the document, from 0; neighbours differ by 1
    scores: Mapping[str, float]  # per leg that ran, 0 to 1
    whole: float = 0.0  # the document's keyword score, 0 to 1
    timely: bool = False  # whether it is from a time that the query names
    named: bool = False  # whether the query names its speaker
    asks: bool = False  # whether it is a question
    length: int = FULL_LENGTH  # characters


def keyword_score(bm25: float, whole_weight: float) -> float:
    """Return how much of a query a text says, 0 to 1, from its BM25, where more is better.

    BM25 gives a text of average length that has a word once just the word's weight (Robertson and Zaragoza 2009, f = 1,
    |d| = avgdl), so the score is measured by a text that has every word of the query once: `whole_weight` is the sum of
    the inverse document frequencies of all words of the query, also those found nowhere.
    """
    return min(1.0, max(0.0, bm25) / whole_weight) if whole_weight > 0 else 0.0


def vector_score(cosine: float) -> float:
    """Return how near a text is to a query, 0 (unrelated) to 1 (the same)."""
    # A cosine of two vectors of length one may come out a little above 1.
    return min(1.0, max(0.0, cosine - UNRELATED) / (1.0 - UNRELATED))


def blend(scores: Mapping[str, float], weights: Weights) -> float:
    """Return the weighted mean over the legs that ran, or what the better leg is worth alone; 0 if none did."""
    whole = total = best = 0.0
    for leg, weight in ((KEYWORD, weights.keyword), (VECTOR, weights.vector)):
        value = scores.get(leg)
        if value is not None and weight > 0:
            whole += weight
            total += weight * value
            best = max(best, value)
    return max(total / whole, weights.alone * best) if whole else 0.0


def score(passages: Mapping[int, Scored], weights: Weights) -> dict[int, float]:
    """Score passages by themselves, their neighbours (0 if not among them) and their document; 0 or more, by id."""
    base = {key: blend(passage.scores, weights) for key, passage in passages.items()}
    around = {(passage.document, passage.place): base[key] for key, passage in passages.items()}
    asked = {(passage.document, passage.place): base[key] for key, passage in passages.items() if passage.asks}
    scored = {}
    for key, passage in passages.items():
        before, after = (passage.document, passage.place - 1), (passage.document, passage.place + 1)
        sides = around.get(before, 0.0) + around.get(after, 0.0)
        value = base[key] + weights.neighbour * sides + weights.document * passage.whole
        value += weights.answer * asked.get(before, 0.0) + weights.first * (passage.place == 0)
        value += weights.period * passage.timely + weights.speaker * passage.named - weights.question * passage.asks
        value -= weights.short * (1.0 - min(1.0, passage.length / FULL_LENGTH))
        scored[key] = max(0.0, value)
    return scored


def temporal_decay(age_days: float, half_life_days: float = HALF_LIFE_DAYS) -> float:
    """Return the factor for a dated text: a half after each half-life. What lies in the future is of today."""
    return math.pow(0.5, max(0.0, age_days) / half_life_days)


def mmr(ranked: Sequence[tuple[float, frozenset[str]]], limit: int, weight: float = LAMBDA) -> list[int]:
    """Choose by maximal marginal relevance (Carbonell and Goldstein 1998); return positions in the order chosen.

    Likeness is the overlap of words. `weight` (0 to 1) is the weight of the score against the likeness to what is
    already chosen; 1 keeps the order.
    """
    best = ranked[0][0] if ranked and ranked[0][0] > 0 else 1.0
    likeness = [0.0] * len(ranked)
    left = list(range(len(ranked)))
    chosen: list[int] = []
    while left and len(chosen) < limit:
        pick = max(left, key=lambda at: (weight * ranked[at][0] / best - (1 - weight) * likeness[at], -at))
        chosen.append(pick)
        left.remove(pick)
        for at in left:
            likeness[at] = max(likeness[at], jaccard(ranked[at][1], ranked[pick][1]))
    return chosen
