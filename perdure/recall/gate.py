"""The gate: what it looks at for a prompt and each memory, and the probability it makes of it that the memory helps."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

from perdure.embed.base import Floats
from perdure.errors import ModelError
from perdure.ranking.trees import Trees
from perdure.recall.query import size
from perdure.recall.triggered import COLUMNS as OF_TRIGGERS
from perdure.recall.triggered import RISING as RISING_TRIGGERS
from perdure.recall.triggered import Triggered
from perdure.regex import lazy
from perdure.store.vocabulary import stem, terms
from perdure.text.lexicon import table
from perdure.text.normalise import fold

_Made = TypeVar("_Made")
FORMS: Final = ("asks", "when", "where", "who", "much", "may", "general", "own", "task", "again", "chat")
"""What a prompt asks for, by the words that data/words.toml has under "asks"."""
_ASKING: Final = ("asks", "task", "again")
MARKS: Final = ("rule", "body", "time", "number", "liking")
"""What a memory is about, by the words under "says"."""
MATCHED: Final = (
    ("when", "time"), ("much", "number"), ("may", "rule"), ("may", "body"),
    ("task", "rule"), ("task", "body"), ("task", "time"),
)  # fmt: skip
"""A form and a mark that answer each other."""


NEAR: Final = 24
SHARED: Final = 8
_PRIOR_MEAN, _PRIOR_SPREAD, _PRIOR_COUNT = 0.12, 0.12, 10
"""The background of a store that is almost empty."""
_LEVEL: Final = 5
"""So many of the nearest tell how high a prompt's cosines lie."""
_KEPT: Final = 2_048
"""Texts whose words are at hand: a recall comes back to many of the same memories."""

_CAPITAL = lazy(r"(?<![.!?\n] )(?<!^)\b[A-Z][\w'-]*|\b\w*\d\w*\b|\b[A-Z]{2,}\b")
NAMES: Final = (
    "cosine", "above", "background", "whole", "rank", "behind", "ahead", "best", "second", "crowd", "other_part",
    "share", "share_part", "share_back", "rarest", "shared", "typos", "strange", "named", "named_else", "figures",
    "words", "parts", "part_words", "texts", "text_words",
    *(f"asks_{name}" for name in FORMS), *(f"says_{name}" for name in MARKS),
    *(f"{form}_{mark}" for form, mark in MATCHED),
)  # fmt: skip
"""What the gate looks at."""
ALL_NAMES: Final = (*NAMES, *OF_TRIGGERS)
"""What the gate of memories with triggers looks at."""
RISING: Final = RISING_TRIGGERS | {
    "cosine", "above", "whole", "share", "share_part", "rarest", "behind", "ahead", "named"
}  # fmt: skip
"""A memory that has more of these is never held less likely for it."""


@cache
def _cue(kind: str, name: str) -> re.Pattern[str]:
    """Return a pattern for any of the words of a cue, or any of its signs."""
    cue = table("recall", "words")[kind][name]
    words = (re.escape(word).replace("_", " ").replace(r"\*", r"\w*") for word in cue["words"].split())
    start = r"^\W*" if cue.get("first") else r"\b"
    return re.compile("|".join(filter(None, [rf"{start}(?:{'|'.join(words)})\b", cue.get("signs")])))


def _met(table: str, names: Sequence[str], folded: str) -> tuple[bool, ...]:
    """Return which of these cues a text has."""
    return tuple(bool(_cue(table, name).search(folded)) for name in names)


@dataclass(frozen=True, slots=True)
class Said:
    """What is read of a memory's text, whoever asks: stems of its words, which of them are names, and its marks."""

    words: frozenset[str]
    names: frozenset[str]
    marks: tuple[bool, ...]


@lru_cache(maxsize=_KEPT)
def said(text: str) -> Said:
    """Read a memory's text."""
    words, lowered = terms(text), fold(text)
    names = frozenset(stem(fold(name.removesuffix("'s"))) for name in _CAPITAL.findall(text))
    return Said(words, names & words, _met("says", MARKS, lowered))


@dataclass(frozen=True, slots=True)
class Lexicon:
    """How the words of a prompt stand in a store, as its caller sees it."""

    texts: int  # memories in all, at least 1
    documents: Mapping[str, int]  # in how many of them a stem stands; those that are not here stand in none
    # Of stems that stand in none, the known one that each is a misspelling of.
    meant: Mapping[str, str] = field(default_factory=dict)

    def weight(self, word: str) -> float:
        """Return how much a word tells, 0 to 1: how rare it is here (idf, over that of an unknown word)."""
        count = min(self.documents.get(word, 0), self.texts)
        return math.log((self.texts + 1) / (count + 0.5)) / math.log(2 * (self.texts + 1))


@dataclass(frozen=True, slots=True)
class Near:
    """How near a prompt's parts are to its candidates."""

    cosines: Floats  # of shape (parts, candidates)
    # `mean`, `spread`: of each part's cosines with all that the caller may see, of shape (parts,).
    mean: Floats
    spread: Floats
    agree: float  # length of the mean of the parts' vectors: 1 where they say the same

    @classmethod
    def of(cls, cosines: Floats, totals: Floats, squares: Floats, count: int, agree: float) -> Near:
        """Mix each part's background with that of an almost empty store.

        `cosines`: of shape (parts, candidates).
        """
        import numpy as np

        mean = ((totals + _PRIOR_MEAN * _PRIOR_COUNT) / (count + _PRIOR_COUNT)).astype(np.float32)
        around = np.maximum(squares - 2 * mean * totals + count * mean**2, 0)
        spread = np.sqrt((around + _PRIOR_SPREAD**2 * _PRIOR_COUNT) / (count + _PRIOR_COUNT))
        return cls(cosines, mean, spread.astype(np.float32), agree)


@dataclass(frozen=True)
class Prompt:
    """A prompt and its parts."""

    text: str
    parts: Sequence[str]

    @cached_property
    def words(self) -> list[frozenset[str]]:
        """Stems of each part."""
        return [terms(part) for part in self.parts]

    @cached_property
    def sizes(self) -> list[int]:
        """Words of each part."""
        return [size(part) for part in self.parts]

    @property
    def only_tells(self) -> bool:
        """Whether it asks for nothing: neither an answer, nor work, nor to be reminded."""
        return not any(self.forms[form] for form in _ASKING)

    @cached_property
    def forms(self) -> dict[str, bool]:
        """What it asks for."""
        return dict(zip(FORMS, _met("asks", FORMS, fold(self.text)), strict=True))


def rows(
    prompt: Prompt, lexicon: Lexicon, near: Near, texts: Sequence[str], triggered: Triggered | None = None
) -> Floats:
    """Return the features, of shape (candidates, len(NAMES)); with those of triggers (candidates, len(ALL_NAMES))."""
    import numpy as np

    cosines = np.asarray(near.cosines)
    part, best = cosines.argmax(0).tolist(), cosines.max(0)
    others = _second_highest(cosines).tolist()
    whole = (cosines.mean(0) / max(near.agree, 1e-6)).tolist()
    order = np.argsort(-best, kind="stable")
    ranked = best[order].tolist()
    rank = np.empty(len(best), dtype=int)
    rank[order] = np.arange(len(best))
    level = sum(ranked[:_LEVEL]) / max(1, len(ranked[:_LEVEL]))
    spoken = _Spoken.of(prompt, lexicon, texts)
    forms = list(prompt.forms.values())
    matched = [(prompt.forms[form], MARKS.index(mark)) for form, mark in MATCHED]
    aimed = triggered.columns(best.tolist(), spoken.weights, spoken.whole) if triggered else [()] * len(texts)
    found = np.zeros((len(texts), len(ALL_NAMES if triggered else NAMES)), dtype=np.float32)
    for row, (at, mine, place) in enumerate(zip(part, best.tolist(), rank.tolist(), strict=True)):
        marks = spoken.said[row].marks
        found[row] = (
            mine,
            (mine - near.mean[at]) / near.spread[at],
            near.mean[at],
            whole[row],
            math.log1p(min(place, NEAR)),
            mine - ranked[0],
            mine - ranked[place + 1] if place + 1 < min(len(ranked), NEAR) else 0.0,
            ranked[0],
            ranked[1] if len(ranked) > 1 else 0.0,
            level - mine,
            others[row],
            *spoken.overlap(row, at),
            math.log1p(sum(prompt.sizes)),
            len(prompt.parts),
            math.log1p(prompt.sizes[at]),
            math.log(lexicon.texts),
            math.log1p(len(spoken.said[row].words)),
            *forms,
            *marks,
            *(asked and marks[mark] for asked, mark in matched),
            *aimed[row],
        )
    return found


@dataclass(frozen=True, slots=True)
class _Spoken:
    """A prompt's words as the store knows them, beside those of the candidates."""

    lexicon: Lexicon
    known: frozenset[str]
    by_part: list[frozenset[str]]
    strange: float
    said: list[Said]
    names: frozenset[str]
    weights: Mapping[str, float]
    whole: float  # of all words
    of_parts: list[float]  # of those of each part
    figures: frozenset[str]  # words with a digit
    guessed: frozenset[str]  # words that a misspelt one was taken for

    @classmethod
    def of(cls, prompt: Prompt, lexicon: Lexicon, texts: Sequence[str]) -> _Spoken:
        by_part = [frozenset(lexicon.meant.get(word, word) for word in words) for words in prompt.words]
        known = frozenset().union(*by_part)
        strange = sum(not lexicon.documents.get(word) for word in known) / max(1, len(known))
        read = [said(text) for text in texts]
        names = frozenset().union(*(each.names for each in read))
        weights = {word: lexicon.weight(word) for word in known}
        of_parts = [sum(weights[word] for word in words) or 1.0 for words in by_part]
        figures = frozenset(word for word in known if any(sign.isdigit() for sign in word))
        guessed = frozenset(lexicon.meant.values())
        whole = sum(weights.values()) or 1.0
        return cls(lexicon, known, by_part, strange, read, names, weights, whole, of_parts, figures, guessed)

    def overlap(self, row: int, part: int) -> tuple[float, ...]:
        """Return the columns from `share` to `figures`."""
        said, weights, mine = self.said[row], self.weights, self.by_part[part]
        both, both_part = self.known & said.words, mine & said.words
        return (
            sum(weights[word] for word in both) / self.whole,
            sum(weights[word] for word in both_part) / self.of_parts[part],
            len(both) / max(1, len(said.words)),
            max((weights[word] for word in both_part), default=0.0),
            math.log1p(len(both)),
            len(both & self.guessed),
            self.strange,
            sum(weights[word] for word in both_part & said.names),
            max((weights[word] for word in (mine - said.words) & self.names), default=0.0),
            len(both & self.figures),
        )


def _second_highest(cosines: Floats) -> Floats:
    """Return of each candidate the highest cosine over the parts that are not its best; 0 where there is one part."""
    import numpy as np

    if len(cosines) == 1:
        return np.zeros(cosines.shape[1], dtype=np.float32)
    second: Floats = np.sort(cosines, axis=0)[-2]
    return second


FILE: Final = Path(__file__).with_name("data") / "gate.json"
TRIGGERED_FILE: Final = FILE.with_name("triggered.json")
"""Of the gate that judges the memories that have triggers: it would judge the others less well."""
STRICT, BALANCED, GENEROUS = POINTS = ("strict", "balanced", "generous")
"""The named points between precision and recall."""
_REASONS: Final = 3
"""Features that a receipt names for a memory."""


@dataclass(frozen=True, slots=True)
class LearnedGate:
    """Trees over the features of `perdure.recall.gate`, with or without those of triggers."""

    encoder: str  # sha256 of the encoder whose vectors it was fitted on; those of another mean nothing to it
    points: Mapping[str, float]  # the probability from which a memory comes up, by the names of `POINTS`
    trees: Trees

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> LearnedGate:
        """Make a gate of its JSON."""
        names = ALL_NAMES if OF_TRIGGERS[0] in plain["features"] else NAMES
        return cls(plain["encoder"], plain["points"], Trees.of(plain, names))

    def probabilities(self, rows: Floats) -> list[float]:
        """Return the probability that each row's memory helps, 0 to 1; columns of triggers may be in excess."""
        return self.trees.probabilities(rows[:, : len(self.trees.names)])

    def reasons(self, rows: Floats) -> list[dict[str, float]]:
        """Return of each memory the features that moved its log-odds most, with how far, the strongest first."""
        return self.trees.reasons(rows[:, : len(self.trees.names)], _REASONS)


@cache
def shipped() -> LearnedGate:
    """Return the gate that comes with perdure."""
    return _of_file(FILE, LearnedGate.of)


@cache
def triggered_gate() -> LearnedGate:
    """Return the gate of memories that have triggers; a store without any does not read it."""
    return _of_file(TRIGGERED_FILE, LearnedGate.of)


def rescaled(probabilities: Sequence[float], points: Mapping[str, float], onto: Mapping[str, float]) -> list[float]:
    """Bring a gate's probabilities to the scale of another, so that one threshold holds for both.

    Piecewise linear in log-odds: each of its named points falls on the other's, and beyond the outer ones the distance
    to them stays.
    """
    import numpy as np

    def odds(told: Sequence[float]) -> Floats:
        clipped = np.clip(told, _LEAST, 1 - _LEAST)
        found: Floats = np.log(clipped / (1 - clipped))
        return found

    own, other = (odds(sorted(each[name] for name in POINTS)) for each in (points, onto))
    given = odds(probabilities)
    inside = np.clip(given, own[0], own[-1])
    brought: list[float] = (1 / (1 + np.exp(-(np.interp(inside, own, other) + given - inside)))).tolist()
    return brought


KINDS_FILE: Final = Path(__file__).with_name("data") / "kinds.json"
"""Of the gate where all of a kind is asked for: here no memory is the rival of another.

A logistic regression over a few of the gate's features, fitted by training/kinds.py.
"""
_ANY: Final = 0.2
"""The probability that the gate gives the best candidate of a kind of which there is any."""
_ONE: Final = 0.6
"""The probability from which a memory is held to be one of the kind."""
_BESIDE: Final = 0.75
"""The same where others are of it by their words: then it is rarer that one is not."""
_LEAST: Final = 1e-4
"""Probabilities are held to be no nearer to 0 and 1."""
_OF_GATE: Final = ("cosine", "above", "behind", "best", "share", "share_part", "rarest", "texts", "says_liking")
COLUMNS: Final = (*_OF_GATE, "odds", "best_odds")
"""What is looked at of a memory: features of the gate, and the log-odds that it gives the memory, and the best one."""


def looked_at(rows: Floats, judged: Sequence[float]) -> Floats:
    """Return the columns of the candidates of one prompt, of shape (memories, len(COLUMNS)).

    Args:
        rows: the gate's features.
        judged: the probabilities that the gate makes of them.
    """
    import numpy as np

    told = np.clip(np.asarray(judged, dtype=np.float32), _LEAST, 1 - _LEAST)
    odds = np.log(told / (1 - told))[:, None]
    return np.hstack([rows[:, [NAMES.index(name) for name in _OF_GATE]], odds, np.full_like(odds, odds.max())])


def of_kind(rows: Floats, judged: Sequence[float], named: bool) -> list[float]:
    """Return of each candidate the probability that it is one of the kind, 0 to 1; 0 if it is not likely to be.

    `named`: whether some are of it by their words. See `looked_at` for the others.
    """
    import numpy as np

    if not named and max(judged, default=0.0) < _ANY:
        return [0.0] * len(judged)
    weights = _weights()
    told = 1 / (1 + np.exp(-(looked_at(rows, judged) @ weights[:-1] + weights[-1])))
    found: list[float] = np.where(told >= (_BESIDE if named else _ONE), told, 0.0).tolist()
    return found


@cache
def _weights() -> Floats:
    import numpy as np

    return _of_file(KINDS_FILE, lambda plain: np.array(plain["weights"], dtype=np.float32))


def _of_file(file: Path, make: Callable[[Any], _Made]) -> _Made:
    try:
        return make(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{file} cannot be used ({type(error).__name__}: {error}); reinstall perdure") from error
