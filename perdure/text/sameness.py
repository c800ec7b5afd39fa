"""Do two texts say the same? Told by their words, for what vectors hardly show: figures, names, a "not", who did it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perdure.text.normalise import fold

MAX_WORDS = 400
"""Longer texts are told apart by these words alone: nobody words a page twice in the same way."""

_WORD = re.compile(r"[^\W_]+(?:[.:/'-][^\W_]+)*%?")
_NAME = re.compile(r"(?<=[^\W_][,;:)] )[A-Z]\w+|(?<=[^\W_] )[A-Z]\w+")
_MONTHS = "january february march april june july august september october november december"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_NUMBERS = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million first second third fourth
fifth half twice once double dozen
"""
_POLARITY = """
not no never nor none nobody nothing without neither cannot stopped quit longer anymore hardly barely rarely seldom
unless except only if until but although though instead maybe perhaps might could would should was were had did used
will going
"""
_RELATIVE = """
today tonight tomorrow yesterday ago recently just lately soon next last this now currently later earlier
"""
_ORDERED_WORDS = """
than over to from before after instead rather into by for with against onto versus vs
"""
_FILLER_WORDS = """
a an the that really very so much also quite pretty totally definitely absolutely truly actually honestly basically
simply still especially particularly lot lots of in at on is are am be been being do does has have it its and as well
too all
"""
_ORDERED, _FILLERS = frozenset(_ORDERED_WORDS.split()), frozenset(_FILLER_WORDS.split())
_GROUPS = (
    "love loves like likes enjoy enjoys adore adores fond",
    "dislike hate hates loathe detest",
    "big large huge",
    "small little tiny",
    "begin begins start starts",
    "purchase purchased buy bought",
    "mum mom mother",
    "dad father",
    "kid kids child children",
    "photo photos picture pictures",
    "film films movie movies",
    "bike bikes bicycle bicycles",
    "great amazing awesome wonderful fantastic incredible",
    "glad happy",
    "colour color favourite favorite",
    "job work",
    "live lives reside resides",
)
_SYNONYM = {word: group.split()[0] for group in _GROUPS for word in group.split()}
_MARKED = frozenset(f"{_MONTHS} {_DAYS} {_NUMBERS}".split())
_TURNING = frozenset(_POLARITY.split())
_TIMES = frozenset(_RELATIVE.split())


@dataclass(frozen=True, slots=True)
class Details:
    """What must be equal in two texts before they can mean the same.

    Attributes:
        figures: numbers, number words, weekdays and months, sorted.
        names: capitalised words inside a sentence, folded, sorted.
        polarity: words that turn or limit a statement, or move it into another tense, sorted.
        relative: whether it speaks of a time that depends on when it is said, as "tomorrow".
    """

    figures: tuple[str, ...]
    names: tuple[str, ...]
    polarity: tuple[str, ...]
    relative: bool


def details(text: str) -> Details:
    """Return what a text must share with any other that means the same."""
    words = _words(text)
    figures = (word for word in words if any(char.isdigit() for char in word) or word in _MARKED)
    names = {fold(name) for name in _NAME.findall(text)} - {"i"} - _MARKED
    turning = {"not" if word.endswith("n't") else word for word in words if word in _TURNING or word.endswith("n't")}
    return Details(tuple(sorted(figures)), tuple(sorted(names)), tuple(sorted(turning)), not _TIMES.isdisjoint(words))


def says_the_same(one: str, other: str) -> bool:
    """Return whether two texts with equal `details` mean the same, or one only goes on where the other ends.

    Fillers and synonyms aside, they must have the same words, in the same order if a word between them says who
    or what stands in which place ("tea over coffee"). What is not clear is not the same.
    """
    first, second = _content(one), _content(other)
    if first == second:
        return True
    if len(first) > len(second):
        first, second = second, first
    if len(first) >= 3 and second[: len(first)] == first:
        return True
    return sorted(first) == sorted(second) and _ORDERED.isdisjoint(first)


def plain_words(text: str) -> tuple[str, ...]:
    """Return the words of a text without fillers, each synonym by one word for all, in the singular."""
    return tuple(_content(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text))[:MAX_WORDS]


def _content(text: str) -> list[str]:
    words = (_SYNONYM.get(word, word) for word in _words(text) if word not in _FILLERS)
    return [_singular(word.removesuffix("'s").removesuffix("'m").removesuffix("'re")) for word in words]


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
