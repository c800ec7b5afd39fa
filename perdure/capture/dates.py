"""Days that a text speaks of."""

from __future__ import annotations

import datetime as dt
import re
from itertools import chain

MAX_FREEZE_DAYS = 365
_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = _MONTH_NAMES.split()
_MONTH = "(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + ")"
_PATTERNS = (
    re.compile(r"\b(?P<year>\d{4})-(?P<number>\d\d)-(?P<day>\d\d)\b"),
    re.compile(rf"\b{_MONTH}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?\b", re.IGNORECASE),
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? (?P<year>\d{{4}}))?\b", re.IGNORECASE),
)


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
