"""Days that a text speaks of: relative ones are made absolute, and what is still to come keeps a fact alive."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from itertools import chain

from perdure.regex import lazy
from perdure.text.when import Period, periods

MAX_FREEZE_DAYS = 365
_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = _MONTH_NAMES.split()
_MONTH = "(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + ")"
_PATTERNS = (
    lazy(r"\b(?P<year>\d{4})-(?P<number>\d\d)-(?P<day>\d\d)\b"),
    lazy(rf"\b{_MONTH}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?\b", re.IGNORECASE),
    lazy(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? (?P<year>\d{{4}}))?\b", re.IGNORECASE),
)
_UNIT_DAYS = {"day": 1, "week": 7}
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10,
}  # fmt: skip
_NAMED = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|week(?:end)?|month|quarter|year|spring|summer|autumn|winter|"
    + "|".join(_MONTHS)
)
_RELATIVE = lazy(
    rf"\b(?:(?:next|last|this) (?:{_NAMED})|day (?P<day>after tomorrow|before yesterday)|tomorrow|yesterday"
    rf"|(?:\d{{1,3}}|{'|'.join(_COUNTS)}) (?:day|week|month|year)s? ago"
    rf"|in (?P<count>\d{{1,3}}|{'|'.join(_COUNTS)}) (?P<unit>day|week)s?(?: from now|'? time)?)\b(?! ?\()",
    re.IGNORECASE,
)
_UNTIL = lazy(r"\b(?:until|till|til) (?:the (?=\d))?(?P<when>[\w ,-]{3,40})$", re.IGNORECASE)
_WHOLE_MONTH = lazy(
    rf"(?:the )?(?:(?P<part>end|middle) of )?{_MONTH}\.?(?:,? (?:of )?(?P<year>\d{{4}}))?", re.IGNORECASE
)
_CLAUSES = lazy(r"[,;:()]|\b(?:and|but|or|so|because|since|that|which|who|whose|where|when)\b", re.IGNORECASE)
_AGAIN = lazy(r"\b(?:from|between|every|each|always|usually|until|till|til)\b", re.IGNORECASE)


def dated(text: str, said_at: float) -> str:
    """Return a text with the day behind each time that only makes sense when it is said: "tomorrow (2026-05-04)".

    The words stay as they were; a span is given by its first and last day.

    Args:
        text: the statement.
        said_at: when it was said, epoch seconds, UTC.
    """
    today = dt.datetime.fromtimestamp(said_at, dt.UTC).date()
    pieces, end = [], 0
    for match, period in _relative(text, today):
        pieces += [text[end : match.end()], f" ({_written(period)})"]
        end = match.end()
    return "".join([*pieces, text[end:]])


def _relative(text: str, today: dt.date) -> Iterator[tuple[re.Match[str], Period]]:
    for match in _RELATIVE.finditer(text):
        if match["day"]:
            day = today + dt.timedelta(days=2 if match["day"].casefold() == "after tomorrow" else -2)
            yield match, Period(day, day)
        elif match["count"]:
            count = int(match["count"]) if match["count"].isdecimal() else _COUNTS[match["count"].casefold()]
            day = today + dt.timedelta(days=count * _UNIT_DAYS[match["unit"].casefold()])
            yield match, Period(day, day)
        else:
            yield from ((match, period) for period in periods(match[0], today)[:1])


def _written(period: Period) -> str:
    return str(period.first) if period.first == period.last else f"{period.first} to {period.last}"


def freeze_until(text: str, now: float, max_days: int = MAX_FREEZE_DAYS) -> float | None:
    """Return until when a fact must not expire because it speaks of a day to come; epoch seconds, UTC.

    A day without a year is the next one of that name. A fact about an appointment is of use until it is over.

    Args:
        text: the fact.
        now: when it was said, epoch seconds.
        max_days: the furthest day that counts; 0: no limit.

    Returns:
        The end of the last such day, or None if the text speaks of none.
    """
    today = dt.datetime.fromtimestamp(now, dt.UTC).date()
    days = [day for match in chain.from_iterable(p.finditer(text) for p in _PATTERNS) if (day := _day(match, today))]
    days += [period.last for _, period in _relative(text, today)]
    coming = [day for day in days if day > today and (not max_days or (day - today).days <= max_days)]
    if not coming:
        return None
    end = dt.datetime.combine(max(coming) + dt.timedelta(days=1), dt.time(), dt.UTC)
    return end.timestamp()


def until(text: str, said_at: float) -> tuple[float, str] | None:
    """Return when something ends that says so of all of itself: "I'm in Lisbon until December".

    A day belongs to what lasts until then; a month alone, a week or a year does not. Nothing is found where more than
    one thing is said, as the rest may go on, and where it comes again ("closed from October until May").

    Args:
        text: one sentence, without the mark at its end.
        said_at: when it was said, epoch seconds, UTC.

    Returns:
        The end, epoch seconds, and the words that tell it; None if there is none, or it is past.
    """
    found = _UNTIL.search(text)
    if found is None or says_more(text[: found.start()]) or _AGAIN.search(text[: found.start()]):
        return None
    today = dt.datetime.fromtimestamp(said_at, dt.UTC).date()
    end = _end(found["when"], today)
    if end is None or end <= today:
        return None
    return dt.datetime.combine(end, dt.time(), dt.UTC).timestamp(), found[0]


def says_more(text: str) -> bool:
    """Return whether a sentence says more than one thing, so that what ends one of them does not end all of it."""
    return bool(_CLAUSES.search(text))


def _end(when: str, today: dt.date) -> dt.date | None:
    """Return the first day on which something that lasts until then is over."""
    for pattern in _PATTERNS:
        match = pattern.fullmatch(when)
        day = _day(match, today) if match else None
        if day is not None:
            return day + dt.timedelta(days=1)
    month = _WHOLE_MONTH.fullmatch(when)
    if month is not None:
        number = _month(month["month"])
        year = int(month["year"] or (today.year if number >= today.month else today.year + 1))
        if not 1 <= year < dt.MAXYEAR:
            return None
        if month["part"] is None:
            return dt.date(year, number, 1)
        if month["part"].casefold() == "middle":
            return dt.date(year, number, 16)
        return dt.date(year + number // 12, number % 12 + 1, 1)
    period = next((period for match, period in _relative(when, today) if match[0] == when), None)
    if period is None:
        return None
    return period.last + dt.timedelta(days=1) if period.first == period.last else period.first


def _day(match: re.Match[str], today: dt.date) -> dt.date | None:
    found = match.groupdict()
    month = int(found["number"]) if found.get("number") else _month(found["month"])
    try:
        if found.get("year"):
            return dt.date(int(found["year"]), month, int(found["day"]))
        day = dt.date(today.year, month, int(found["day"]))
        return day if day >= today else day.replace(year=today.year + 1)
    except ValueError:
        return None


def _month(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name[:3].lower()))
