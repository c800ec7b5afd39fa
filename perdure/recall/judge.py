"""Is there evidence that a memory has to do with the prompt at all, and how well does it fit?

Two judges: a model that was fitted on the embedder tells how likely a memory helps; where there is none, cosines and
words tell it. Each leg is held to an absolute measure before anything is fused: its best hit is always 1.0 after
normalising, so a threshold on fused scores silences nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from perdure.embed.base import Floats
from perdure.index.vector_index import Survey
from perdure.ranking.calibration import background
from perdure.ranking.decay import DAY, confidence_at
from perdure.ranking.fuse import fuse
from perdure.recall.gate import (
    ALL_NAMES,
    NAMES,
    LearnedGate,
    Lexicon,
    Near,
    Prompt,
    of_kind,
    rescaled,
    rows,
    triggered_gate,
)
from perdure.recall.options import LEXICAL, LOOKUP, VECTOR, RecallOptions
from perdure.recall.topics import SHOWN
from perdure.recall.triggered import AIMED, Triggered
from perdure.recall.turn import Candidate, Judge, Passage, Turn
from perdure.store.fact import Fact
from perdure.store.vocabulary import stem, terms

NAMED: Final = 0.9
"""The least score of a memory whose slot the prompt names: that is exact, and needs no model."""
_SURE: Final = "strict"
"""The point of the gate for what the model sees in any case."""
SPOKEN_OF: Final = 0.05
"""The least probability of what is known of somebody or something that the prompt names."""
_BY_WORDS: Final = 0.5
"""From this share of the prompt's words on a memory is said to be found by words."""
COVERAGE: Final = 0.75
"""Share of the query's words that suffices by itself if one of them is rare."""
SUPPORTED_COVERAGE: Final = 0.45
SUPPORT: Final = 0.75
"""Share that suffices when the cosine is near the floor, and how near, as a share of it."""
BLIND_COVERAGE: Final = 0.34
"""Share that suffices when there is no vector."""
_IN_COMMON: Final = 2
"""Words that a prompt and a memory share, and `COVERAGE` with them, suffice where the model is not there that is to
judge."""
_MORE_IN_COMMON: Final = 3
_OF_MEMORY: Final = 0.25
"""So do so many with `BLIND_COVERAGE` that are also this share of the memory's own words."""


@dataclass(eq=False)
class Fitted(Judge):
    """Goes by the probability that a model makes of all that is known, however much likelier another memory is."""

    gate: LearnedGate
    threshold: float
    sure: float = 1.0  # the threshold of what the model sees in any case, for a prompt that asks for nothing
    only_tells: bool = False  # whether the prompt asks for nothing
    least_of_named = SPOKEN_OF

    @classmethod
    def of(cls, gate: LearnedGate, options: RecallOptions) -> Fitted:
        """Return the judge for a threshold of the options: a probability, or a point of the gate."""
        threshold = options.threshold
        least = gate.points[threshold] if isinstance(threshold, str) else threshold
        return cls(gate, least, max(least, gate.points[_SURE]))

    def passes(self, each: Candidate) -> bool:
        """Return whether a memory is likely, or its slot is named; without a vector it goes by its words."""
        if each.named or each.probability is None:
            return each.named or _by_words_alone(each)
        return each.probability >= (self.sure if self.only_tells and each.in_sight else self.threshold)

    def ranked(self, some: Iterable[Candidate]) -> list[Candidate]:
        """Order by the probability."""
        found = list(some)
        for each in found:
            if each.named:
                each.leg, each.score = LOOKUP, max(NAMED, each.probability or 0.0)
            elif each.probability is None:
                each.leg, each.score = LEXICAL, each.coverage
            else:
                each.leg, each.score = LEXICAL if each.coverage >= _BY_WORDS else VECTOR, each.probability
        return sorted(found, key=lambda each: (-each.score, each.id))

    def reasons(self, some: Iterable[Candidate]) -> dict[str, Mapping[str, float]]:
        """Return by its id what moved the log-odds of each most."""
        import numpy as np

        told: dict[str, Mapping[str, float]] = {}
        judged = {each.id: each.features for each in some if each.features is not None}
        for names in (NAMES, ALL_NAMES):
            mine = {fact_id: row for fact_id, row in judged.items() if len(row) == len(names)}
            if mine:
                gate = self.gate if names is NAMES else triggered_gate()
                told |= zip(mine, gate.reasons(np.array(list(mine.values()))), strict=True)
        return told

    def weigh(self, turn: Turn) -> None:
        """Give each candidate that has a vector its probability: 0 to those that are not even looked at."""
        _compare(turn)
        for each in turn.facts:
            each.probability = None if each.cosine is None else 0.0
        chosen, survey, query = turn.looked_at, turn.survey, turn.query
        if survey is None:
            return
        prompt = Prompt(query.text, query.parts or (query.text,))
        self.only_tells = prompt.only_tells
        if chosen:
            features = _features(turn, survey, prompt, chosen)
            told = self.gate.probabilities(features)
            if query.kind is not None and query.kind.own:
                of_it = of_kind(features, told, any(each.named for each in turn.facts))
                # Those that have its word come first.
                told = [
                    NAMED * max(one, other) if query.kind.may_have(each.memory.text) else 0.0
                    for each, one, other in zip(chosen, told, of_it, strict=True)
                ]
            for each, row, one in zip(chosen, features, told, strict=True):
                each.features, each.probability = row, one
        if turn.aimed:
            self._lift(turn, survey, prompt, chosen)

    def _lift(self, turn: Turn, survey: Survey, prompt: Prompt, chosen: Sequence[Candidate]) -> None:
        """Give memories that have triggers the probability of the gate for these, where that is the higher one.

        The others stay as they are: they are judged as in a store without triggers.
        """
        several = [*chosen, *(each for each in _aimed_at(turn) if each not in chosen)]
        if not several:
            return
        gate, kind = triggered_gate(), turn.query.kind
        features = _features(turn, survey, prompt, several, _triggered(turn, several))
        told = rescaled(gate.probabilities(features), gate.points, self.gate.points)
        for each, row, one in zip(several, features, told, strict=True):
            if kind is not None and kind.own:
                one = NAMED * one if kind.may_have(each.memory.text) else 0.0
            alone = each.probability or 0.0
            if each.id in turn.aimed and one > alone:
                each.features, each.probability = row, one
                if alone < self.threshold <= one:
                    each.trigger = max(turn.aimed[each.id], key=lambda pair: pair[1])[0]


@dataclass(eq=False)
class Blend(Judge):
    """Goes by cosines and words: the vectors are of an embedder that no model was fitted on, or there are none."""

    options: RecallOptions
    floor: float | None = None

    @classmethod
    def of(cls, turn: Turn) -> Blend:
        """Return the judge of a search, whose candidates have their cosines now."""
        if turn.leg is None or turn.survey is None:
            return cls(turn.options)
        calibration = turn.leg.calibration
        near = _compare(turn, calibration.common)
        floor = calibration.floor(near)
        for each in turn.facts:
            # A trigger that is nearer than its memory speaks for it as the memory itself would.
            if each.trigger is not None and each.cosine is not None:
                more = calibration.common(dict(turn.aimed[each.id])[each.trigger]) - each.cosine
                each.cosine += more
                each.scores[VECTOR] += more
        return cls(turn.options, floor)

    def passes(self, each: Candidate) -> bool:
        """Return whether its slot is named, its cosine reaches the floor, or its words suffice."""
        if each.sure or each.cosine is None:
            return each.sure or _by_words_alone(each)
        floor = 1.0 if self.floor is None else self.floor
        if each.cosine >= floor or (each.rare and each.coverage >= COVERAGE):
            return True
        return each.cosine >= SUPPORT * floor and each.coverage >= SUPPORTED_COVERAGE

    def ranked(self, some: Iterable[Candidate]) -> list[Candidate]:
        """Order by the blend of the legs' scores."""
        by_id = {each.id: each for each in some}
        legs = {
            leg: {name: each.scores[leg] for name, each in by_id.items() if leg in each.scores}
            for leg in self.options.weights
        }
        for name, parts in fuse(legs, self.options.weights).items():
            by_id[name].leg, by_id[name].score = max(parts, key=lambda leg: parts[leg]), sum(parts.values())
        return sorted(by_id.values(), key=lambda each: (-each.score, each.id))

    def near(self, ranked: list[Candidate]) -> list[Candidate]:
        """Keep those that reach a share of the best one's score, and what the prompt names: it has no rival."""
        least = self.options.relative_cut * max((each.score for each in ranked), default=0.0)
        return [each for each in ranked if each.sure or each.score >= least]


@dataclass(eq=False)
class Waiting(Blend):
    """Goes by words where the model is not there yet that is to judge: it lets through what that would most likely."""

    words: frozenset[str] = frozenset()  # stems of the prompt's
    least_of_named = None

    def passes(self, each: Candidate) -> bool:
        """Return whether its slot is named, or its words suffice: one rare word in common tells nothing."""
        if each.sure or each.coverage < BLIND_COVERAGE:
            return each.sure
        own = terms(each.memory.text)
        both = len(self.words & own)
        return both >= (_IN_COMMON if each.coverage >= COVERAGE else max(_MORE_IN_COMMON, _OF_MEMORY * len(own)))


def judge_of(turn: Turn) -> Judge:
    """Have the candidates of a search weighed, and return what judges them."""
    if turn.options.model and turn.survey is None and turn.view.tag is None:
        known = frozenset(stem(turn.lexical.meant.get(word, word)) for word in turn.query.terms)
        return Waiting(turn.options, words=known)
    gate = turn.leg.gate if turn.leg and turn.survey else None
    if gate is None:
        return Blend.of(turn)
    fitted = Fitted.of(gate, turn.options)
    fitted.weigh(turn)
    return fitted


def merge(turn: Turn, judge: Judge, others: Iterable[tuple[Turn, Judge]]) -> Judge:
    """Add what other wordings of the query found, and return what judges all.

    A fact keeps the evidence of the first of them by which it passes, the query before the others. Cosines are shifted
    so that one floor holds for all: each query has a background, and so a floor, of its own.
    """
    for other, own in others:
        if turn.survey is None:
            turn.survey, judge = other.survey, own
        for each in other.found.values():
            known = turn.found.setdefault(each.id, each)
            if isinstance(each.memory, Passage):
                better = each.score > known.score
            else:
                each.cosine = _shifted(each.cosine, own.floor, judge.floor)
                better = not judge.passes(known) and judge.passes(each)
            scores = {leg: max(score, known.scores.get(leg, score)) for leg, score in each.scores.items()}
            best = turn.found[each.id] = each if better else known
            best.scores = {**known.scores, **scores}
    passages = sorted(turn.passages, key=lambda each: (-each.score, each.id))
    turn.found = {each.id: each for each in (*turn.facts, *passages)}
    return judge


def _shifted(cosine: float | None, own: float | None, floor: float | None) -> float | None:
    if cosine is None or own is None or floor is None or own == floor:
        return cosine
    return cosine - own + floor


def _by_words_alone(each: Candidate) -> bool:
    return each.coverage >= (BLIND_COVERAGE if each.rare else COVERAGE)


def _compare(turn: Turn, common: Callable[[float], float] = float) -> list[float]:
    """Give the candidates their cosines, and the trigger that is nearer; return those of the nearest, best first."""
    best = {fact_id: common(max(row)) for fact_id, row in turn.cosines.items()}
    near = [best[fact_id] for fact_id in turn.survey.ids] if turn.survey else []
    # What counts in the blend is how far a hit stands out from the query's background.
    behind = background(near)
    for each in turn.facts:
        if each.id in best:
            each.cosine = best[each.id]
            each.scores[VECTOR] = each.cosine - behind
            trigger, cosine = max(turn.aimed.get(each.id, ()), key=lambda pair: pair[1], default=(None, 0.0))
            each.trigger = trigger if cosine > max(turn.cosines[each.id]) else None
    return near


def _triggered(turn: Turn, chosen: Sequence[Candidate]) -> Triggered:
    """Return how the prompt stands to the triggers of some candidates."""
    aimed = [turn.aimed.get(each.id, ()) for each in chosen]
    texts = [[trigger.text for trigger, _ in some] for some in aimed]
    cosines = [[cosine for _, cosine in some] for some in aimed]
    aims = turn.aims
    return Triggered.of(texts, cosines, aims.total, aims.squares, aims.count) if aims else Triggered(texts, cosines)


def _features(
    turn: Turn, survey: Survey, prompt: Prompt, chosen: Sequence[Candidate], triggered: Triggered | None = None
) -> Floats:
    """Return the features of some candidates, with those of triggers if they are given."""
    import numpy as np

    cosines = np.array([turn.cosines[each.id] for each in chosen], dtype=np.float32).T
    documents = {stem(term): count for term, count in turn.lexical.counts.items()}
    meant = {stem(term): known for term, known in turn.lexical.meant.items()}
    lexicon = Lexicon(max(1, survey.texts), documents, meant)
    near = Near.of(cosines, survey.totals, survey.squares, survey.count, turn.agree)
    return rows(prompt, lexicon, near, [each.memory.text for each in chosen], triggered)


def _aimed_at(turn: Turn) -> list[Candidate]:
    """Return the candidates with the nearest triggers."""
    near = turn.aims.ids if turn.aims else ()
    return [turn.found[fact_id] for fact_id in near if fact_id in turn.found and fact_id in turn.cosines][:AIMED]


IDLE: Final = "idle"
"""The adjustment of what `perdure.recall.topics.idle` returns."""
_RECENT_DAYS = 90.0
"""An older memory is not recent at all."""
_FRESH_DAYS = 7.0
"""A memory that lives at least so much longer is as fresh as any."""
_DIRECTIVE_FACTOR = 1.25
_LONG_TERM = {"permanent": 1.2, "durable": 1.1, "stable": 1.1}


def adjusted(score: float, fact: Fact, now: float, names: Collection[str]) -> tuple[float, Mapping[str, float]]:
    """Return the score (0 to 1) with the adjustments of these names, and the factor of each that changed it.

    Of two that reach 1, the product of score and factors still tells which is ahead. `now`: epoch seconds; "directive"
    and `IDLE` are named where they apply to the memory.
    """
    factors = {name: factor(fact, now) for name, factor in _FACTORS.items() if name in names}
    applied = {name: factor for name, factor in factors.items() if factor != 1.0}
    return _share(score * math.prod(applied.values())), MappingProxyType(applied)


def _importance_recency(fact: Fact, now: float) -> float:
    recency = _share(1.0 - max(0.0, now - fact.effective_date) / DAY / _RECENT_DAYS)
    return (0.7 + 0.3 * _share(fact.importance)) * (0.8 + 0.2 * recency)


def _salience(fact: Fact, now: float) -> float:
    # Being put into a prompt does not count: what comes up often would come up ever more often.
    return 1.0 + 0.1 * math.log1p(max(0, fact.access_count + fact.reinforced_count))


def _idleness(fact: Fact, now: float) -> float:
    # As far down as so many uses would lift it.
    return 1.0 / (1.0 + 0.1 * math.log1p(max(0, fact.injected_count - SHOWN + 1)))


def _freshness(fact: Fact, now: float) -> float:
    # Freshness and confidence have the shares of the documented sum (60 % BM25, 25 % freshness, 15 % confidence)
    # as factors: added, they would lift a memory that hardly fits above one that does.
    left = math.inf if fact.expires_at is None else max(0.0, fact.expires_at - now) / DAY
    return 0.75 + 0.25 * _share(left / _FRESH_DAYS)


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
    IDLE: _idleness,
    "freshness": _freshness,
    "confidence": _confidence,
    "directive": lambda fact, now: _DIRECTIVE_FACTOR,
}
