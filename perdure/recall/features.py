"""What the gate looks at, for a prompt and the memories that may help it: one row of numbers for each.

The same code computes them for a turn and where the gate is fitted (`training/fit.py`). What is asked of the store:

- `Near`: the cosines of the prompt's parts with each candidate, and how far each part is from all that the caller may
  see (mean and spread). Candidates are the `NEAR` nearest by their best part, up to `SHARED` more that share words.
- `Lexicon`: in how many memories each word of the prompt stands, as far as the caller may see them.

The columns are those of `NAMES`, in this order; docs/model.md tells what each is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from perdure.recall.cues import FORMS, MARKS, MATCHED
from perdure.recall.query_segmentation import size
from perdure.regex import lazy
from perdure.store.vocabulary import stem, terms
from perdure.text.normalise import fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

NEAR: Final = 24
SHARED: Final = 8
PRIOR_MEAN, PRIOR_SPREAD, PRIOR_COUNT = 0.12, 0.12, 10
"""The background of a store that is almost empty."""
LEVEL: Final = 5
"""So many of the nearest tell how high a prompt's cosines lie."""
KEPT: Final = 2_048
"""Texts whose words are at hand: a recall comes back to many of the same memories."""

_CAPITAL = lazy(r"(?<![.!?\n] )(?<!^)\b[A-Z][\w'-]*|\b\w*\d\w*\b|\b[A-Z]{2,}\b")
NAMES: Final = (
    "cosine", "above", "background", "whole", "rank", "behind", "ahead", "best", "second", "crowd", "other_part",
    "share", "share_part", "share_back", "rarest", "shared", "typos", "strange", "named", "named_else", "figures",
    "words", "parts", "part_words", "texts", "text_words",
    *(f"asks_{name}" for name in FORMS), *(f"says_{name}" for name in MARKS),
    *(f"{form}_{mark}" for form, mark in MATCHED),
)  # fmt: skip
RISING: Final = frozenset({"cosine", "above", "whole", "share", "share_part", "rarest", "behind", "ahead", "named"})
"""A memory that has more of these is never held less likely for it."""


@dataclass(frozen=True, slots=True)
class Said:
    """What is read of a memory's text, whoever asks: stems of its words, which of them are names, and its marks."""

    words: frozenset[str]
    names: frozenset[str]
    marks: tuple[bool, ...]


@lru_cache(maxsize=KEPT)
def said(text: str) -> Said:
    """Read a memory's text."""
    words, lowered = terms(text), fold(text)
    names = frozenset(stem(fold(name.removesuffix("'s"))) for name in _CAPITAL.findall(text))
    return Said(words, names & words, tuple(bool(mark.search(lowered)) for mark in MARKS.values()))


@dataclass(frozen=True, slots=True)
class Lexicon:
    """How the words of a prompt stand in a store, as its caller sees it.

    Attributes:
        texts: memories in all, at least 1.
        documents: in how many of them a stem stands; those that are not here stand in none.
        meant: of stems that stand in none, the known one that each is a misspelling of.
    """

    texts: int
    documents: Mapping[str, int]
    meant: Mapping[str, str] = field(default_factory=dict)

    def weight(self, word: str) -> float:
        """Return how much a word tells, 0 to 1: how rare it is here (idf, over that of an unknown word)."""
        count = min(self.documents.get(word, 0), self.texts)
        return math.log((self.texts + 1) / (count + 0.5)) / math.log(2 * (self.texts + 1))


@dataclass(frozen=True, slots=True)
class Near:
    """How near a prompt's parts are to its candidates.

    Attributes:
        cosines: of shape (parts, candidates).
        mean, spread: of each part's cosines with all that the caller may see, of shape (parts,).
        agree: length of the mean of the parts' vectors: 1 where they say the same.
    """

    cosines: Floats
    mean: Floats
    spread: Floats
    agree: float

    @classmethod
    def of(cls, cosines: Floats, totals: Floats, squares: Floats, count: int, agree: float) -> Near:
        """Mix each part's background with that of an almost empty store.

        Args:
            cosines: of shape (parts, candidates).
            totals: sum of each part's cosines with all that the caller may see, or a sample of it.
            squares: sum of their squares.
            count: how many memories these are.
            agree: length of the mean of the parts' vectors.
        """
        import numpy as np

        mean = ((totals + PRIOR_MEAN * PRIOR_COUNT) / (count + PRIOR_COUNT)).astype(np.float32)
        around = np.maximum(squares - 2 * mean * totals + count * mean**2, 0)
        spread = np.sqrt((around + PRIOR_SPREAD**2 * PRIOR_COUNT) / (count + PRIOR_COUNT))
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

    @cached_property
    def forms(self) -> dict[str, bool]:
        """What it asks for."""
        lowered = fold(self.text)
        return {name: bool(form.search(lowered)) for name, form in FORMS.items()}


def rows(prompt: Prompt, lexicon: Lexicon, near: Near, texts: Sequence[str]) -> Floats:
    """Return the features, of shape (candidates, len(NAMES)).

    Args:
        prompt: what is asked.
        lexicon: how its words stand in the store.
        near: how near it is to the candidates.
        texts: what each candidate says.
    """
    import numpy as np

    cosines = np.asarray(near.cosines)
    part, best = cosines.argmax(0).tolist(), cosines.max(0)
    others = _second_highest(cosines).tolist()
    whole = (cosines.mean(0) / max(near.agree, 1e-6)).tolist()
    order = np.argsort(-best, kind="stable")
    ranked = best[order].tolist()
    rank = np.empty(len(best), dtype=int)
    rank[order] = np.arange(len(best))
    level = sum(ranked[:LEVEL]) / max(1, len(ranked[:LEVEL]))
    spoken = _Spoken.of(prompt, lexicon, texts)
    forms = list(prompt.forms.values())
    matched = [(prompt.forms[form], list(MARKS).index(mark)) for form, mark in MATCHED]
    found = np.zeros((len(texts), len(NAMES)), dtype=np.float32)
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

    @classmethod
    def of(cls, prompt: Prompt, lexicon: Lexicon, texts: Sequence[str]) -> _Spoken:
        by_part = [frozenset(lexicon.meant.get(word, word) for word in words) for words in prompt.words]
        known = frozenset().union(*by_part)
        strange = sum(not lexicon.documents.get(word) for word in known) / max(1, len(known))
        read = [said(text) for text in texts]
        names = frozenset().union(*(each.names for each in read))
        return cls(lexicon, known, by_part, strange, read, names, {word: lexicon.weight(word) for word in known})

    def overlap(self, row: int, part: int) -> tuple[float, ...]:
        """Return the columns from `share` to `figures`."""
        said, weights, mine = self.said[row], self.weights, self.by_part[part]
        both, both_part = self.known & said.words, mine & said.words
        return (
            sum(weights[word] for word in both) / (sum(weights.values()) or 1.0),
            sum(weights[word] for word in both_part) / (sum(weights[word] for word in mine) or 1.0),
            len(both) / max(1, len(said.words)),
            max((weights[word] for word in both_part), default=0.0),
            math.log1p(len(both)),
            len(both.intersection(self.lexicon.meant.values())),
            self.strange,
            sum(weights[word] for word in both_part & said.names),
            max((weights[word] for word in (mine - said.words) & self.names), default=0.0),
            sum(any(sign.isdigit() for sign in word) for word in both),
        )


def _second_highest(cosines: Floats) -> Floats:
    """Return of each candidate the highest cosine over the parts that are not its best; 0 where there is one part."""
    import numpy as np

    if len(cosines) == 1:
        return np.zeros(cosines.shape[1], dtype=np.float32)
    second: Floats = np.sort(cosines, axis=0)[-2]
    return second
