"""How passages of files and turns of conversations are scored: on one absolute scale.

What two texts say of a query is 0 to 1. What counts beside it may lift a passage above 1. Only the order counts up
there: whoever shows a score shows 1, but cut off before they are ordered, the best would all be equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perdure.ranking.diversity import jaccard

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
    """What counts how much.

    The two legs are scaled to add up to 1 over those that ran. The others are added to them.

    Attributes:
        keyword: of the share of the query's words.
        vector: of the cosine.
        alone: of the better leg, where that is more than the mean of both: a paraphrase shares no word with what is
            asked, an error code has no meaning that is near.
        neighbour: of what stands before and after, each.
        document: of the whole file or conversation.
        answer: of the question that a turn follows, on top of what it counts as a neighbour: an answer leaves out the
            words that it was asked with.
        first: for the turn that opens a conversation: it says what is new.
        period: for what was said at a time that the query names: "last week" stands in no turn of that week.
        speaker: for turns of the one speaker whom the query names.
        question: against turns that only ask.
        short: against turns below 200 characters, in proportion.
    """

    keyword: float
    vector: float
    alone: float = 0.0
    neighbour: float = 0.0
    document: float = 0.0
    answer: float = 0.0
    first: float = 0.0
    period: float = 0.0
    speaker: float = 0.0
    question: float = 0.0
    short: float = 0.0


@dataclass(frozen=True, slots=True)
class Passage:
    """A candidate.

    Attributes:
        document: the file or conversation it is of.
        place: its number in there, from 0; the next one is its neighbour.
        scores: per leg that ran, 0 to 1.
        whole: the document's keyword score, 0 to 1.
        timely: whether it is of a time that the query names.
        named: whether its speaker is the one whom the query names.
        asks: whether it is a question.
        length: characters.
    """

    document: int
    place: int
    scores: Mapping[str, float]
    whole: float = 0.0
    timely: bool = False
    named: bool = False
    asks: bool = False
    length: int = FULL_LENGTH


def keyword_score(bm25: float, whole_weight: float) -> float:
    """Return how much of a query a text says, 0 to 1.

    BM25 gives a text of average length that has a word once just the word's weight (Robertson and Zaragoza 2009,
    with f = 1 and |d| = avgdl), so the score is measured by a text that has every word of the query once.

    Args:
        bm25: more is better.
        whole_weight: sum of the inverse document frequencies of all words of the query, also those found nowhere.
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


def score(passages: Mapping[int, Passage], weights: Weights) -> dict[int, float]:
    """Score candidates by themselves, by what stands around them and by what they are part of.

    Args:
        passages: by id. A neighbour that is not among them counts as 0.
        weights: of their kind.

    Returns:
        By id, 0 or more.
    """
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
    """Choose by maximal marginal relevance (Carbonell and Goldstein 1998), with the overlap of words as likeness.

    Args:
        ranked: scores, best first, with the words of each.
        limit: how many to choose.
        weight: of the score, 0 to 1, against the likeness to what is chosen; 1 keeps the order.

    Returns:
        Positions in `ranked`, in the order chosen.
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
