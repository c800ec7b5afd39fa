"""Days that a text speaks of: relative ones are made absolute, and what is still to come keeps a fact alive."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from itertools import chain

from perdure.text.when import Period, periods

MAX_FREEZE_DAYS = 365
_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = _MONTH_NAMES.split()
_MONTH = "(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + ")"
_PATTERNS = (
    re.compile(r"\b(?P<year>\d{4})-(?P<number>\d\d)-(?P<day>\d\d)\b"),
    re.compile(rf"\b{_MONTH}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?\b", re.IGNORECASE),
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? (?P<year>\d{{4}}))?\b", re.IGNORECASE),
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
_RELATIVE = re.compile(
    rf"\b(?:(?:next|last|this) (?:{_NAMED})|day (?P<day>after tomorrow|before yesterday)|tomorrow|yesterday"
    rf"|(?:\d{{1,3}}|{'|'.join(_COUNTS)}) (?:day|week|month|year)s? ago"
    rf"|in (?P<count>\d{{1,3}}|{'|'.join(_COUNTS)}) (?P<unit>day|week)s?(?: from now|'? time)?)\b(?! ?\()",
    re.IGNORECASE,
)


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
