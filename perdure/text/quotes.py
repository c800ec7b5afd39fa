"""Whether somebody has said something in these very words, and whether the words say what is made of them."""

from __future__ import annotations

import unicodedata

from perdure.regex import lazy
from perdure.text.normalise import fold, match_terms

CHARACTERS, WORDS = 12, 3
"""A quote has so many characters or so many words; less is in anything that anybody says."""

_WORD = lazy(r"\w+")


def is_quote(text: str) -> bool:
    """Return whether a text is long enough to be somebody's words and nobody else's."""
    folded = _folded(text)
    return len(folded) >= CHARACTERS or len(folded.split()) >= WORDS


def quoted(quote: str, said: str) -> bool:
    """Return whether a quote is found in what was said: word for word, in any case and with any white space."""
    return is_quote(quote) and _folded(quote) in _folded(said)


def speaks_of(quote: str, text: str) -> bool:
    """Return whether a quote shares a word with a text that says something."""
    return not set(match_terms(quote)).isdisjoint(match_terms(text))


def words(text: str) -> frozenset[str]:
    """Return the words of a text, folded."""
    return frozenset(_WORD.findall(fold(text)))


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
