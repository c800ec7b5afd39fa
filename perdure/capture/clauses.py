"""The clauses of a statement, and what of a clause is the value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perdure.regex import lazy
from perdure.text.lexicon import listed


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
_LIST = listed("capture", "grammar", "list")
_DATE = listed("capture", "grammar", "date_with_comma")
_PLACE = lazy(r"\b(?:in|to|from) [A-ZÀ-Þ][\w-]+(?: [A-ZÀ-Þ][\w-]+)?, (?=[A-ZÀ-Þ][\w-]+(?: [A-Z][\w-]+)?$)")
_CLAUSE = listed("capture", "grammar", "next_clause")
_REASON = listed("capture", "grammar", "reason_behind")
_BESIDE = listed("capture", "grammar", "beside_value")
_NOW = listed("capture", "grammar", "now_behind")
