"""What the gate looks at, for a prompt and the memories that may help it: numpy and plain Python.

It is written so that it can move into the package. What stands for what at run time:

- `View` is the store as one caller sees it. `documents` (in how many memories a word stands) is what the full-text
  index knows; `sample` is at most `SAMPLE` vectors drawn from it once, and again when it has grown by a half.
- candidates: the `NEAR` nearest by the best part's cosine, and up to `SHARED` more that share the rarest words (the
  lexical leg). Whatever is no candidate has probability nought.
- the columns are those of `NAMES`, in this order; `training/README.md` says how each is computed.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perdure.text.normalise import fold, match_terms
from training.cues import FORMS, MARKS, MATCHED
from training.parts import size

Floats = NDArray[np.float32]
NEAR, SHARED, SAMPLE = 24, 8, 256
PRIOR_MEAN, PRIOR_SPREAD, PRIOR_COUNT = 0.12, 0.12, 10
"""The background of a store that is almost empty."""
TYPO_LETTERS, TYPO_ALIKE = 4, 0.5

_CAPITAL = re.compile(r"(?<![.!?\n] )(?<!^)\b[A-Z][\w'-]*|\b\w*\d\w*\b|\b[A-Z]{2,}\b")
NAMES = (
    "cosine", "above", "background", "whole", "rank", "behind", "ahead", "best", "second", "crowd", "hub", "other_part",
    "share", "share_part", "share_back", "rarest", "shared", "typos", "strange", "named", "named_else", "figures",
    "words", "parts", "part_words", "texts", "text_words", "passage",
    *(f"asks_{name}" for name in FORMS), *(f"says_{name}" for name in MARKS),
    *(f"{form}_{mark}" for form, mark in MATCHED),
)  # fmt: skip
RISING = frozenset({"cosine", "above", "whole", "share", "share_part", "rarest", "behind", "ahead", "named"})
"""A memory that has more of these is never held less likely for it."""


def stem(word: str) -> str:
    """Return a word without its commonest endings; the full-text index's own stem serves as well."""
    for ending, least in (("ies", 5), ("ing", 6), ("ed", 5), ("es", 5), ("ly", 6), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > 3 and (word[-1] == word[-2] or word[-1] in "ey") else word


def terms(text: str) -> frozenset[str]:
    """Return the stems of a text's words, without function words."""
    return frozenset(stem(term) for term in match_terms(text, limit=400))


def named(text: str) -> frozenset[str]:
    """Return the stems of what looks like a name or a code: capitals inside a sentence, digits."""
    return frozenset(stem(fold(name.removesuffix("'s"))) for name in _CAPITAL.findall(text))


@dataclass(slots=True)
class View:
    """The memories of a store as one caller sees them."""

    texts: Sequence[str]
    vectors: Floats
    passages: bool = False
    words: list[frozenset[str]] = field(init=False)
    names: list[frozenset[str]] = field(init=False)
    all_names: frozenset[str] = field(init=False)
    documents: Counter[str] = field(init=False)
    sample: Floats = field(init=False)
    marks: NDArray[np.bool_] = field(init=False)
    _grams: dict[str, set[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.words = [terms(text) for text in self.texts]
        self.names = [named(text) & words for text, words in zip(self.texts, self.words, strict=True)]
        self.all_names = frozenset(name for names in self.names for name in names)
        self.documents = Counter(word for words in self.words for word in words)
        chosen = sorted(random.Random(0).sample(range(len(self.texts)), min(SAMPLE, len(self.texts))))
        self.sample = self.vectors[chosen]
        lowered = [fold(text) for text in self.texts]
        self.marks = np.array([[bool(mark.search(text)) for mark in MARKS.values()] for text in lowered], dtype=bool)
        self._grams = {}
        for word in self.documents:
            if len(word) >= TYPO_LETTERS:
                for gram in _grams_of(word):
                    self._grams.setdefault(gram, set()).add(word)

    def weight(self, word: str) -> float:
        """Return how much a word tells, 0 to 1: how rare it is here (idf, over that of an unknown word)."""
        return math.log((len(self.texts) + 1) / (self.documents[word] + 0.5)) / math.log(2 * (len(self.texts) + 1))

    def meant(self, word: str) -> str | None:
        """Return the known word that an unknown one is a misspelling of, if one is near."""
        if len(word) < TYPO_LETTERS or not word.isalpha():
            return None
        own = _grams_of(word)
        common = Counter(known for gram in own for known in self._grams.get(gram, ()))
        near = [
            (2 * shared / (len(own) + len(_grams_of(known))), known)
            for known, shared in common.items()
            if abs(len(known) - len(word)) < 3 and known[0] == word[0]
        ]
        score, known = max(near, default=(0.0, ""))
        return known if score >= TYPO_ALIKE else None


def _grams_of(word: str) -> set[str]:
    padded = f"^{word}$"
    return {padded[at : at + 2] for at in range(len(padded) - 1)}


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt, its parts and their vectors."""

    text: str
    parts: Sequence[str]
    vectors: Floats


def features(view: View, asked: Asked) -> tuple[NDArray[np.int_], Floats]:
    """Return the places of the candidates, and a row of `NAMES` for each."""
    cosines = asked.vectors @ view.vectors.T
    background = asked.vectors @ view.sample.T
    count = background.shape[1]
    mean = (background.sum(1) + PRIOR_MEAN * PRIOR_COUNT) / (count + PRIOR_COUNT)
    spread = np.sqrt(
        (((background - mean[:, None]) ** 2).sum(1) + PRIOR_SPREAD**2 * PRIOR_COUNT) / (count + PRIOR_COUNT)
    )
    part = cosines.argmax(0)
    best = cosines.max(0)
    order = np.argsort(-best, kind="stable")
    rank = np.empty(len(best), dtype=int)
    rank[order] = np.arange(len(best))
    spoken = _Words.of(view, asked)
    chosen = _candidates(view, spoken, order)
    ranked = best[order]
    level = float(np.mean(ranked[:5]))
    whole = asked.vectors.mean(0)
    whole = whole / max(float(np.linalg.norm(whole)), 1e-6)
    forms = [bool(form.search(spoken.lowered)) for form in FORMS.values()]
    form_of = dict(zip(FORMS, forms, strict=True))
    rows = np.zeros((len(chosen), len(NAMES)), dtype=np.float32)
    for row, place in enumerate(chosen):
        at, mine = int(part[place]), float(best[place])
        place_rank = int(rank[place])
        below = float(ranked[place_rank + 1]) if place_rank + 1 < len(ranked) else mine
        others = np.delete(cosines[:, place], at)
        marks = dict(zip(MARKS, view.marks[place].tolist(), strict=True))
        rows[row] = (
            mine,
            (mine - mean[at]) / spread[at],
            mean[at],
            float(whole @ view.vectors[place]),
            math.log1p(place_rank),
            mine - float(ranked[0]),
            mine - below,
            float(ranked[0]),
            float(ranked[1]) if len(ranked) > 1 else 0.0,
            level - mine,
            float((view.sample @ view.vectors[place]).mean()),
            float(others.max()) if len(others) else 0.0,
            *spoken.overlap(view, int(place), at),
            math.log1p(spoken.size),
            len(asked.parts),
            math.log1p(spoken.sizes[at]),
            math.log(len(view.texts)),
            math.log1p(len(view.words[place])),
            view.passages,
            *forms,
            *marks.values(),
            *(form_of[form] and marks[mark] for form, mark in MATCHED),
        )
    return chosen, rows


@dataclass(frozen=True, slots=True)
class _Words:
    """A prompt's words as the store knows them."""

    lowered: str
    known: frozenset[str]
    by_part: list[frozenset[str]]
    typos: frozenset[str]
    strange: float
    size: int
    sizes: list[int]

    @classmethod
    def of(cls, view: View, asked: Asked) -> _Words:
        meant: dict[str, str] = {}
        by_part = []
        for each in asked.parts:
            words = terms(each)
            for word in words:
                if word not in view.documents and (near := view.meant(word)):
                    meant[word] = near
            by_part.append(frozenset(meant.get(word, word) for word in words))
        known = frozenset(word for words in by_part for word in words)
        strange = sum(word not in view.documents for word in known) / max(1, len(known))
        sizes = [size(each) for each in asked.parts]
        return cls(fold(asked.text), known, by_part, frozenset(meant.values()), strange, sum(sizes), sizes)

    def overlap(self, view: View, place: int, part: int) -> tuple[float, ...]:
        """Return the columns from `share` to `figures`."""
        words = view.words[place]
        both, both_part = self.known & words, self.by_part[part] & words
        weigh = view.weight
        shared, shared_part = sum(map(weigh, both)), sum(map(weigh, both_part))
        else_named = [weigh(word) for word in self.by_part[part] - words if word in view.all_names]
        return (
            shared / (sum(map(weigh, self.known)) or 1.0),
            shared_part / (sum(map(weigh, self.by_part[part])) or 1.0),
            shared / (sum(map(weigh, words)) or 1.0),
            max(map(weigh, both_part), default=0.0),
            math.log1p(len(both)),
            len(both & self.typos),
            self.strange,
            sum(map(weigh, both_part & view.names[place])),
            max(else_named, default=0.0),
            sum(any(sign.isdigit() for sign in word) for word in both),
        )


def _candidates(view: View, spoken: _Words, order: NDArray[Any]) -> NDArray[np.int_]:
    near = [int(place) for place in order[:NEAR]]
    taken = set(near)
    scored = [
        (sum(map(view.weight, spoken.known & words)), -place)
        for place, words in enumerate(view.words)
        if place not in taken and not spoken.known.isdisjoint(words)
    ]
    return np.array(near + [-place for _, place in sorted(scored, reverse=True)[:SHARED]], dtype=int)
