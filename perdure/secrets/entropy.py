"""Letters that were drawn by chance, told from words and names that are written together."""

from __future__ import annotations

from collections import Counter
from functools import cache

from perdure.regex import lazy
from perdure.text.seed_words import SEED_WORDS

_RUN = lazy(r"[A-Za-z]{16,400}")
_SINGLE_CASE = 20
"""Letters that a run in one case has at least; a shorter one may be an abbreviation."""
_OF_EACH_CASE = 3
_ALONE = lazy(r"(?<![a-z])[a-z](?![a-z])")
_MANY_ALONE = 3
"""Small letters between capitals, more than names such as `kIsDirOrFile` have."""
_MIXED_SHARE = 0.72
_SINGLE_SHARE = 0.6


def has_chance_letters(text: str) -> bool:
    """Return whether a text has a run of sixteen letters or more that were drawn by chance."""
    return any(map(_drawn, _RUN.findall(text)))


def _drawn(letters: str) -> bool:
    if letters.islower() or letters.isupper():
        return len(letters) >= _SINGLE_CASE and _usual_share(letters) < _SINGLE_SHARE
    mixed = min(sum(map(str.isupper, letters)), sum(map(str.islower, letters))) >= _OF_EACH_CASE
    return mixed and (_usual_share(letters) < _MIXED_SHARE or len(_ALONE.findall(letters)) >= _MANY_ALONE)


def _usual_share(letters: str) -> float:
    """Return how many of the pairs of letters occur in words: nearly all of a name, less than half by chance."""
    pairs = _pairs(letters.lower())
    return sum(pair in _usual_pairs() for pair in pairs) / len(pairs)


@cache
def _usual_pairs() -> frozenset[str]:
    counted = Counter(pair for word in SEED_WORDS for pair in _pairs(word))
    return frozenset(pair for pair, count in counted.items() if count > 2)


def _pairs(letters: str) -> list[str]:
    return [letters[at : at + 2] for at in range(len(letters) - 1)]
