"""Whether somebody has said something in these very words, and what a memory quotes of what was said before it."""

from __future__ import annotations

import unicodedata

from perdure.regex import lazy
from perdure.text.normalise import fold

_CHARACTERS, _WORDS = 12, 3
"""A quote has so many characters or so many words; less is in anything that anybody says."""

_WORD = lazy(r"\w+")
_BRACKET = lazy(r" \(after: (?P<before>.+?)(?:; asked by the assistant: .+)?\)$")


def is_quote(text: str) -> bool:
    """Return whether a text is long enough to be somebody's words and nobody else's."""
    folded = _folded(text)
    return len(folded) >= _CHARACTERS or len(folded.split()) >= _WORDS


def quoted(quote: str, said: str) -> bool:
    """Return whether a quote is found in what was said: word for word, in any case and with any white space."""
    return is_quote(quote) and _folded(quote) in _folded(said)


def words(text: str) -> frozenset[str]:
    """Return the words of a text, folded."""
    return frozenset(_WORD.findall(fold(text)))


def bracket(before: str, asked: str) -> str:
    """Return the bracket for what the user said before a memory, and what the assistant had asked; "" for neither."""
    told = [f"{who}: {text}" for who, text in (("after", before), ("asked by the assistant", asked)) if text]
    return f" ({'; '.join(told)})" if told else ""


def bare(text: str) -> str:
    """Return a memory's text without its bracket."""
    return _BRACKET.sub("", text)


def said_before(text: str) -> str:
    """Return what a memory's bracket says that the user had said before; "" if it says nothing of it."""
    found = _BRACKET.search(text)
    return found["before"] if found else ""


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
