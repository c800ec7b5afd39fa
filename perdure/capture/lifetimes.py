"""Days that a text speaks of, and how long a memory lives where nobody names a class: for good, unless its words tell.

Days are read in the languages of `perdure.text.when`, the other words are English. What no rule here understands lives
for good, since a memory that stays too long can be forgotten, and one that went cannot be asked for. So "today" and
"this week" count only where they say how long something lasts ("I'm ill today"), not when it happened ("I was diagnosed
today", "we're moving to Ghent this week").
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from perdure.ranking.decay import DEFAULT_CLASS, OF_SESSION
from perdure.regex import lazy
from perdure.store.fact import Fact
from perdure.text.lexicon import listed
from perdure.text.timestamps import ZONE, day_of, midnight
from perdure.text.when import Period, month_number, said_times

UNTIL_ITS_DAY = "short"
"""What ends on a day that it names lives until then, or as long as this class if the day is nearer."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a memory should live."""

    decay_class: str  # one of `perdure.ranking.decay.LIFETIMES`
    freeze_until: float | None  # it does not expire before, epoch seconds; None: it speaks of no day to come
    words: str | None = None  # those of the text that tell its end


def lifetime(text: str, said_at: float, key: str | None = None, zone: dt.tzinfo | None = None) -> Lifetime:
    """Return how long a memory, as it was said (epoch seconds, in a zone) or is stored, should live if nobody says."""
    freeze = freeze_until(text, said_at, zone)
    plain = _WRITTEN_DAY.sub("", text).replace("’", "'").strip(" .!")
    if _PAST.search(plain) or any(word in (key or "").casefold() for word in _LASTING):
        return Lifetime(DEFAULT_CLASS, freeze)
    lasts = bool(_PRESENT.search(plain)) and not _TURNS.search(plain)
    end = _until(plain, said_at, zone) if lasts else None
    if end is not None:
        at, words = end
        return Lifetime(UNTIL_ITS_DAY, at, words)
    rules = (*_BY_WORDS, *_IF_IT_LASTS) if lasts else _BY_WORDS
    for decay_class, pattern in rules:
        found = pattern.search(plain)
        if found is not None:
            rest = f"{plain[: found.start()]} {plain[found.end() :]}".strip(" ,")
            if _says_more(rest):
                break
            return Lifetime(decay_class, freeze, found[0].strip(" ,"))
    return Lifetime(DEFAULT_CLASS, freeze)


def timed(fact: Fact, said_at: float, zone: dt.tzinfo | None, *, moment: bool = False) -> Fact:
    """Return a fact with what its words say of days, counted in a zone: which these are, and how long it lives.

    `said_at`: epoch seconds; a `moment` ends with its session. Which zone that was stands with a fact whose words
    depend on it.
    """
    text = dated(fact.text, said_at, zone)
    lives = Lifetime(OF_SESSION, None) if moment else lifetime(fact.text, said_at, fact.key, zone)
    offset = dt.datetime.fromtimestamp(said_at, dt.UTC).astimezone(zone).isoformat()[-6:]
    counted = {ZONE: offset} if text != fact.text or lives.freeze_until is not None else {}
    return replace(
        fact, text=text, decay_class=lives.decay_class, decay_freeze_until=lives.freeze_until,
        metadata={**counted, **fact.metadata},
    )  # fmt: skip


def renewed(old: Fact, new: Fact, now: float, zone: dt.tzinfo | None) -> dict[str, Any]:
    """Return what the new words of a memory say of its lifetime; a class that somebody named stays."""
    found = lifetime(new.text, now, new.key, zone)
    day = {"decay_freeze_until": found.freeze_until}
    named = old.decay_class != lifetime(old.text, old.effective_date, old.key, old.zone).decay_class
    return day if named else {**day, "decay_class": found.decay_class}


_WRITTEN_DAY = lazy(r" \(\d{4}-\d\d-\d\d(?: to \d{4}-\d\d-\d\d)?\)")
"""What `dated` writes behind a time."""
_LASTING = ("name", "email", "birthday", "born", "phone", "language", "allergy")
"""Slots whose value is nothing for now."""
_PRESENT = listed("capture", "grammar", "present")
_PAST = listed("capture", "grammar", "past")
_TURNS = listed("capture", "grammar", "turns")
"""What begins on a day, or an age that is reached on it, goes on behind it."""
_BY_WORDS, _IF_IT_LASTS = (
    [(kind, listed("capture", "grammar", key)) for kind, key in kinds]
    for kinds in (
        [("durable", "for_now"), (OF_SESSION, "this_session"), ("short", "for_today"), ("active", "for_this_week")],
        [("short", "today"), ("active", "this_week")],
    )
)


MAX_FREEZE_DAYS = 365
_UNTIL = lazy(r"\b(?:until|till|til) (?:the (?=\d))?(?P<when>[\w ,-]{3,40})$", re.IGNORECASE)
_WHOLE_MONTH = listed("capture", "grammar", "whole_month")
_CLAUSES = lazy(r"[,;:()]|\b(?:and|but|or|so|because|since|that|which|who|whose|where|when)\b", re.IGNORECASE)
_AGAIN = lazy(r"\b(?:from|between|every|each|always|usually|until|till|til)\b", re.IGNORECASE)


def dated(
    text: str, said_at: float, zone: dt.tzinfo | None = None, written: Callable[[Period], str] | None = None
) -> str:
    """Return a text with the day behind each time that only makes sense when it is said: "tomorrow (2026-05-04)".

    The words stay as they were; a span is given by its first and last day. `said_at`: epoch seconds; `written`: how a
    time is written, if not by its days in full.
    """
    pieces, end = [], 0
    for time in said_times(text, day_of(said_at, zone)):
        if time.relative and not text[time.end :].startswith(("(", " (")):
            pieces += [text[end : time.end], f" ({(written or _written)(time.period)})"]
            end = time.end
    return "".join([*pieces, text[end:]])


def _written(period: Period) -> str:
    return str(period.first) if period.first == period.last else f"{period.first} to {period.last}"


def in_short(period: Period) -> str:
    """Return a time as it is written beside the day on which it was named: "8 May", "28 April to 4 May", "2022"."""
    first, last = period.first, period.last
    if first.year == last.year and (first.month, first.day, last.month, last.day) == (1, 1, 12, 31):
        return str(first.year)
    if first.day == 1 and last + dt.timedelta(days=1) == (first + dt.timedelta(days=31)).replace(day=1):
        return f"{first:%B} {first.year}"
    end = f"{last.day} {last:%B}"
    if first == last:
        return end
    return f"{first.day} to {end}" if first.month == last.month else f"{first.day} {first:%B} to {end}"


def freeze_until(text: str, now: float, zone: dt.tzinfo | None = None, max_days: int = MAX_FREEZE_DAYS) -> float | None:
    """Return until when a fact must not expire because it speaks of a day to come; epoch seconds.

    It is the end of the last such day, not more than `max_days` away (0: no limit). A day without a year is the next
    one of that name. A fact about an appointment is of use until it is over.
    """
    today = day_of(now, zone)
    days = (time.period.last for time in said_times(text, today))
    coming = [day for day in days if day > today and (not max_days or (day - today).days <= max_days)]
    return midnight(max(coming) + dt.timedelta(days=1), zone) if coming else None


def _until(text: str, said_at: float, zone: dt.tzinfo | None) -> tuple[float, str] | None:
    """Return when something ends that says so of all of itself: "I'm in Lisbon until December".

    A day belongs to what lasts until then; a month alone, a week or a year does not. Nothing is found where more than
    one thing is said, as the rest may go on, and where it comes again ("closed from October until May").
    The end is in epoch seconds, with the words that tell it; None if there is none, or it is past.
    """
    found = _UNTIL.search(text)
    if found is None or _says_more(text[: found.start()]) or _AGAIN.search(text[: found.start()]):
        return None
    today = day_of(said_at, zone)
    end = _end(found["when"], today)
    if end is None or end <= today:
        return None
    return midnight(end, zone), found[0]


def _says_more(text: str) -> bool:
    """Return whether a sentence says more than one thing, so that what ends one of them does not end all of it."""
    return bool(_CLAUSES.search(text))


def _end(when: str, today: dt.date) -> dt.date | None:
    """Return the first day on which something that lasts until then is over."""
    time = next((time for time in said_times(when, today) if (time.start, time.end) == (0, len(when))), None)
    if time is not None:
        first, last = time.period.first, time.period.last
        return last + dt.timedelta(days=1) if first == last < dt.date.max else first
    month = _WHOLE_MONTH.fullmatch(when)
    if month is None:
        return None
    number = month_number(month["month"])
    year = int(month["year"] or (today.year if number >= today.month else today.year + 1))
    if not 1 <= year < dt.MAXYEAR:
        return None
    if (month["part"] or "").casefold() == "end":
        return dt.date(year + number // 12, number % 12 + 1, 1)
    return dt.date(year, number, 16 if month["part"] else 1)
