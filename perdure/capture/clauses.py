"""The clauses of a statement, and what of a clause is the value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perdure.regex import lazy
from perdure.text.lexicon import MONTH, WEEKDAY


def parts(text: str) -> Iterator[str]:
    """Yield the clauses of a text in order, without the punctuation between them.

    A comma within a list, a date or a place ("Bergen, Norway") parts nothing.
    """
    for sentence in _SENTENCE.split(_OPENING.sub(r"\1 ", text)):
        protected = _LIST.sub(_joined, _DATE.sub(_joined, _PLACE.sub(_joined, sentence)))
        for part in _CLAUSE.split(protected):
            clause = part.replace(_COMMA, ", ").strip(" \t\n,;:-–—\"'")
            if clause:
                yield clause


def trimmed(value: str, *, bare: bool = False) -> str:
    """Return a value without its reason and its "now"; if `bare`, also without since when, with whom or as what."""
    value = _REASON.sub("", value.strip())
    if bare:
        value = _BESIDE.sub("", value)
    return _NOW.sub("", _REASON.sub("", value)).strip(" ,.;:!?\"'")


def _joined(match: re.Match[str]) -> str:
    return re.sub(r",\s+", _COMMA, match[0])


_OPENING = lazy(r"\b(from now on|by default), ", re.IGNORECASE)
_COMMA = "\uf8ff"
_TITLES = r"(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bProf)(?<!\bSt)(?<!\be\.g)(?<!\bNo)"
_SENTENCE = lazy(rf"[!?;]+\s+|{_TITLES}\.\s+|[!?.;]+$|[!?]{{2,}}|\s+[–—-]+\s+|:\s+(?!\d)")
_ITEM = (
    r"(?!(?:i|we|he|she|they|my|our|the|his|her|it|but|so|not|and|or|which|who|because|since)\b)"
    r"[\w'-]+(?: [\w'-]+){0,2}?"
)
_LIST = lazy(
    rf"\b[\w'-]+(?:, {_ITEM}){{1,4}},? (?:and|or) (?!(?:[\w'-]+ ){{0,4}}(?:i|we|my|our|he|she|it|they)\b)",
    re.IGNORECASE,
)
_DATE = lazy(
    rf"\b(?:{WEEKDAY}, (?=the \d|\d|{MONTH})|{MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?, (?=\d{{4}}))", re.IGNORECASE
)
_PLACE = lazy(r"\b(?:in|to|from) [A-ZÀ-Þ][\w-]+(?: [A-ZÀ-Þ][\w-]+)?, (?=[A-ZÀ-Þ][\w-]+(?: [A-Z][\w-]+)?$)")
_CLAUSE = lazy(
    r",\s+|\s+(?:and|but|so|though|while|whereas)\s+(?="
    r"(?:i|we|my|our|he|she|they|it|his|her|their|the|there|you|this|that)(?:'\w+)? |(?-i:[A-Z][\w-]+)(?:'s \w+)? "
    r"(?:is|has|\w+s) )",
    re.IGNORECASE,
)
_REASON = lazy(
    r",? (?:because|since|due to|so that|thanks to|as (?=(?:i|we|it|he|she|they|the|my|our)\b)).*$", re.IGNORECASE
)
_BESIDE = lazy(
    r" (?:today|again|until|for now|for the (?!\w+ ?$)|last (?:week|month|year|\w+day|spring|summer|autumn|winter)|"
    rf"this (?:week|month|year)|next (?:week|month|year)|recently|(?:as|with) (?:an? |the )?\w|"
    rf"in (?=\d{{4}}\b|{MONTH}\b)|by the way|btw|"
    r"and (?=\w+(?:s|ed)\b)|with a \w$|for (?=\d)|if you|who|which|where|at the moment).*$",
    re.IGNORECASE,
)
_NOW = lazy(
    r",? (?:now|currently|these days|nowadays|at the moment|right now|at present|in the end|for good|after all"
    r"|though|tbh|lol|haha|btw|by the way|any day|"
    r"any more|anymore|too|as well|originally|please|ok|okay)$",
    re.IGNORECASE,
)
