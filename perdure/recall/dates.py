"""What is already on a day that a prompt plans for: "book the dentist for Friday" is told of the recital on Friday."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Final

from perdure.store.fact import Fact
from perdure.store.search import View, by_phrases
from perdure.store.sql import Connection
from perdure.text.when import Period, days_ahead, month_names, periods

AHEAD: Final = 14
"""Days after today, for which a prompt is held against what stands there."""
MOST: Final = 3
_READ: Final = 20


def colliding(connection: Connection, prompt: str, view: View) -> list[Fact]:
    """Return the memories that name a day of the next two weeks which the prompt names too, the latest first.

    A memory must say the date: day and month, with or without a year. A weekday alone would collide every week.
    """
    today = datetime.fromtimestamp(view.now, UTC).date()
    days = days_ahead(prompt, today, AHEAD)
    if not days:
        return []
    facts = by_phrases(connection, [form for day in days for form in _written(day)], view, _READ)
    # On the day itself a date without a year is that day; one with another year is not.
    return [fact for fact in facts if any(Period(day, day) in periods(fact.text, day) for day in days)][:MOST]


def _written(day: date) -> Iterator[str]:
    """Yield how a date is written, as the full-text index cuts it into words."""
    yield f"{day:%Y %m %d}"
    yield f"{day:%d %m %Y}"
    yield f"{day.day} {day.month} {day.year}"
    for number in (str(day.day), f"{day.day}{_ending(day.day)}"):
        for name in _MONTHS[day.month - 1]:
            yield from (f"{number} {name}", f"{number} of {name}", f"{number} de {name}", f"{name} {number}")


def _ending(number: int) -> str:
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number // 10 != 1 else 0, "th")


_MONTHS: Final = month_names()
