"""What is worth keeping, and what it is, by heads that learnt it from labelled messages.

A head is a sum: what the sentence looks like, which words stand beside which, and what the rules make of it, each with
a weight. How they were made and what they reach: docs/keeping.md.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from perdure.capture.describe import describe
from perdure.capture.language import Language, language
from perdure.capture.statements import LEARNT, Heard, Statement, capital
from perdure.regex import lazy
from perdure.text.normalise import fold
from perdure.text.scripts import dense_script

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BUCKETS = 2**15
"""Places for the words of a sentence and their neighbours, and as many for their shapes."""
NAMES = (
    *("remember", "convention", "entity", "decision", "preference", "factual", "weak", "stated", "asked"),
    *("question", "request", "passing", "doubt", "talk", "own", "reported", "asks to remember", "rule"),
    *("fenced", "words", "sentences", "first", "last", "place", "alone", "figure", "name", "lines", "speaker"),
    *("small", "message", "announces", "colon"),
    *("is decision", "is preference", "is entity", "is fact", "slot", "other slot"),
)
"""What is told exactly of a sentence, in the order of the weights."""
CUES = NAMES[:6]
_TOKEN = lazy(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[^\w\s]")
_NAME = lazy(r"(?<=\s)[A-Z][a-z]")
_SPEAKER = lazy(r"\w+: ")
_FOLLOWS = ("ing", "ed", "ly", "s")


@dataclass(frozen=True, slots=True)
class Read:
    """A sentence as a head reads it: the places of its words and shapes, each with one value, and what is exact."""

    words: tuple[int, ...]
    shapes: tuple[int, ...]
    exact: tuple[float, ...]


def read(heard: Heard, common: frozenset[str]) -> Read:
    """Read a sentence; of words outside `common` (lower-case words of sentence structure) only the shape counts."""
    said = tokens(heard.text)
    low = [token.lower() for token in said]
    shapes = [word if word in common else _shape(token) for token, word in zip(said, low, strict=True)]
    return Read(_places(low, 2), _places([*shapes, "$"], 3), tuple(map(float, _exact(heard, language(heard.code)))))


_MOST, _LONGEST = 12, 1_000
"""Sentences and characters of a message that count: longer ones were too rare in training to tell anything."""


def tokens(text: str) -> list[str]:
    """Return the words, numbers and marks of a text; signs of scripts without spaces one by one."""
    return _TOKEN.findall("".join(f" {sign} " if dense_script(sign) else sign for sign in text))


def _places(tokens: Sequence[str], most: int) -> tuple[int, ...]:
    row = ["^", *tokens]
    runs = {" ".join(row[at : at + size]) for size in range(1, most + 1) for at in range(len(row) - size + 1)}
    return tuple(sorted({zlib.crc32(run.encode("utf-8", "replace")) % BUCKETS for run in runs}))


def _shape(token: str) -> str:
    if token.isdigit():
        return "0"
    if not token[0].isalpha():
        return token
    case = "A" if token[0].isupper() else "a"
    return case + next((end for end in _FOLLOWS if token.endswith(end) and len(token) > len(end) + 2), "")


def _exact(heard: Heard, words: Language) -> tuple[float, ...]:
    text, folded = heard.text, fold(heard.text)
    cues = {statement.cue for statement in heard.stated}
    last = heard.of - 1
    described = describe(heard.stated[0] if heard.stated else Statement(text, LEARNT))
    slot = described.slot
    return (
        *(cue in cues for cue in CUES),
        any(statement.confidence < 1 for statement in heard.stated),
        bool(heard.stated),
        text.rstrip("\"')").endswith(("?", "？")),
        bool(words.question.match(folded)),
        bool(words.request.match(folded)),
        bool(words.passing.search(folded)),
        bool(words.doubt.search(folded)),
        bool(words.talk.match(folded)),
        bool(words.own.search(folded)),
        bool(words.reported.search(folded)),
        bool(words.remember.search(folded)),
        bool(words.convention.search(folded)),
        "```" in heard.message,
        math.log1p(len(text.split())) / 3,
        math.log1p(min(heard.of, _MOST)) / 3,
        heard.number == 0,
        heard.number == last,
        heard.number / max(1, last),
        heard.of == 1,
        any(map(str.isdecimal, text)),
        bool(_NAME.search(text)),
        "\n" in heard.message,
        bool(_SPEAKER.match(text)),
        text[:1].islower(),
        min(len(heard.message), _LONGEST) / 3000,
        text.endswith(":"),
        ":" in text,
        *(described.category == category for category in ("decision", "preference", "entity", "fact")),
        slot is not None,
        slot is not None and slot.entity != "user",
    )


class Heads:
    """The heads: a choice for `perdure.capture.statements.statements`. Usable from any thread."""

    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Take weights.

        "words" and "shapes" have the shape (heads, BUCKETS), "exact" (heads, len(NAMES)), "base" (heads,). "common"
        holds the words that count in shapes, "categories" the names of all heads but the first, which says whether to
        keep, "codes" the languages they decide for, "least" the thresholds of its probability: in general, and where
        the rules see a shape of its own.
        """
        self._weights = weights
        self._common = frozenset(weights["common"].tolist())
        self._categories: list[str] = weights["categories"].tolist()
        self._codes = frozenset(weights["codes"].tolist())
        self._least: list[float] = weights["least"].tolist()

    def __call__(self, heard: Heard) -> Sequence[Statement] | None:
        """Return what is kept of a sentence; None where the rules decide.

        They do for what was asked to be remembered, by a rule of one's own, and in a language unknown to the heads.
        """
        if heard.code not in self._codes or any(each.cue not in CUES[1:] for each in heard.stated):
            return None
        odds = self.log_odds(heard)
        probability = 1 / (1 + math.exp(-float(odds[0])))
        if probability < self._least[bool(heard.stated)]:
            return []
        if heard.stated:
            return heard.stated
        category = self._categories[int(odds[1:].argmax())]
        return [Statement(capital(heard.text), LEARNT, round(probability, 2), category)]

    def log_odds(self, heard: Heard) -> NDArray[np.float32]:
        """Return the log-odds that a sentence is worth keeping, then a score for each category; shape (heads,)."""
        import numpy as np

        seen = read(heard, self._common)
        total = self._weights["base"].astype(np.float32)
        for name, places in (("words", seen.words), ("shapes", seen.shapes)):
            total += self._weights[name][:, list(places)].sum(axis=1, dtype=np.float32) / math.sqrt(len(places))
        return np.asarray(total + self._weights["exact"] @ np.array(seen.exact, dtype=np.float32), dtype=np.float32)


def learnt(heard: Heard) -> Sequence[Statement] | None:
    """Return what the heads that come with perdure keep of a sentence; None where the rules decide.

    They are read from their file with the first sentence.
    """
    return _shipped()(heard)


@cache
def _shipped() -> Heads:
    import numpy as np

    with files("perdure.capture").joinpath("data/heads.npz").open("rb") as file, np.load(file) as stored:
        return Heads({name: stored[name] for name in stored.files})
