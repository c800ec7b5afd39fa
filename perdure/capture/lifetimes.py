"""How long a memory lives where nobody names a class: for good, unless its own words tell when it ends.

These words are English. What no rule here understands lives for good, since a memory that stays too long can be
forgotten, and one that went cannot be asked for. So "today" and "this week" count only where they say how long
something lasts ("I'm ill today"), not when it happened ("I was diagnosed today", "we're moving to Ghent this week").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from perdure.capture.dates import freeze_until, says_more, until
from perdure.ranking.decay import DEFAULT_CLASS
from perdure.regex import lazy
from perdure.store.fact import Fact

UNTIL_ITS_DAY = "short"
"""What ends on a day that it names lives until then, or as long as this class if the day is nearer."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a memory should live.

    Attributes:
        decay_class: one of `perdure.ranking.decay.LIFETIMES`.
        freeze_until: it does not expire before, epoch seconds; None: it speaks of no day to come.
        words: those of the text that tell its end; None: it has none.
    """

    decay_class: str
    freeze_until: float | None
    words: str | None = None


def lifetime(text: str, said_at: float, key: str | None = None) -> Lifetime:
    """Return how long a memory should live if nobody says so.

    Args:
        text: the memory, as it was said or as it is stored.
        said_at: when it was said, epoch seconds.
        key: of the slot that it fills.
    """
    freeze = freeze_until(text, said_at)
    plain = _WRITTEN_DAY.sub("", text).replace("’", "'").strip(" .!")
    if _PAST.search(plain) or any(word in (key or "").casefold() for word in _LASTING):
        return Lifetime(DEFAULT_CLASS, freeze)
    lasts = bool(_PRESENT.search(plain)) and not _TURNS.search(plain)
    end = until(plain, said_at) if lasts else None
    if end is not None:
        at, words = end
        return Lifetime(UNTIL_ITS_DAY, at, words)
    rules = (*_BY_WORDS, *_IF_IT_LASTS) if lasts else _BY_WORDS
    for decay_class, pattern in rules:
        found = pattern.search(plain)
        if found is not None:
            rest = f"{plain[: found.start()]} {plain[found.end() :]}".strip(" ,")
            if says_more(rest):
                break
            return Lifetime(decay_class, freeze, found[0].strip(" ,"))
    return Lifetime(DEFAULT_CLASS, freeze)


def renewed(old: Fact, new: Fact, now: float) -> dict[str, Any]:
    """Return what the new words of a memory say of its lifetime; a class that somebody named stays.

    Args:
        old: as it is.
        new: with its new text.
        now: epoch seconds.
    """
    found = lifetime(new.text, now, new.key)
    day = {"decay_freeze_until": found.freeze_until}
    named = old.decay_class != lifetime(old.text, old.effective_date, old.key).decay_class
    return day if named else {**day, "decay_class": found.decay_class}


_WRITTEN_DAY = lazy(r" \(\d{4}-\d\d-\d\d(?: to \d{4}-\d\d-\d\d)?\)")
"""What `perdure.capture.dates.dated` writes behind a time."""
_LASTING = ("name", "email", "birthday", "born", "phone", "language", "allergy")
"""Slots whose value is nothing for now."""
_PRESENT = lazy(
    r"\b(?:am|is|are|isn't|aren't|will|won't|have to|has to|need to|needs to|must|cannot|can't|not allowed)\b"
    r"|\b(?:I'm|(?:we|you|they)'re|(?:he|she|it|that|there)'s|(?:I|we|you|they|he|she|it)'ll)\b",
    re.IGNORECASE,
)
_PAST = lazy(
    r"\b(?:was|were|had|did|got|been|became|began|came|went|made|took|bought|left|met|told|said|found|lost|won)\b"
    r"|(?<!\bis )(?<!\bam )(?<!\bare )(?<!'s )(?<!'m )(?<!'re )(?<!\bnot )(?<!\bbe )"
    r"\b(?!(?:need|feed|seed|speed|shed|weed|breed)\b)[a-z]{2,}ed\b",
    re.IGNORECASE,
)
_TURNS = lazy(
    r"\b(?:start|begin|beginn|mov|join|becom|adopt|switch|chang|sign|marry|retir|quit|quitt|turn|launch|buy|bring|get"
    r"|gett|giv|sell|open)(?:e|ing|s|es)?\b|\b(?:leaving|having an?|born|as of|engaged|diagnosed)\b"
    r"|(?:\b(?:am|is|are)|'m|'s|'re) \d{1,3}\b(?!:)",
    re.IGNORECASE,
)
"""What begins on a day, or an age that is reached on it, goes on behind it."""
_BY_WORDS = (
    ("durable", lazy(
        r"\b(?:for now|for the time being|(?:for|at) the moment|right now)\b(?! of\b)", re.IGNORECASE
    )),
    ("session", lazy(r"\bthis session\b", re.IGNORECASE)),
    ("short", lazy(r"\bfor (?:today|tonight)\b|\b(?:today|tonight) only\b", re.IGNORECASE)),
    ("active", lazy(r"\bfor this week\b|\bthis week only\b", re.IGNORECASE)),
)  # fmt: skip
_IF_IT_LASTS = (
    ("short", lazy(
        r"^(?:(?:just|only) )?(?:today|tonight)\b,? (?!is\b|on\b)|(?: just| only)? (?:today|tonight)$", re.IGNORECASE
    )),
    ("active", lazy(r"^(?:(?:just|only) )?this week\b,? (?!is\b)|(?: just| only)? this week$", re.IGNORECASE)),
)  # fmt: skip
