"""What stands on a day that a prompt plans for comes up, whatever words they share."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from perdure.recall.options import DATES
from perdure.recall.pipeline import Asked
from perdure.store.scope import Audience
from tests.recall.conftest import Desk

NOW = datetime(2026, 11, 23, 9, 0, tzinfo=UTC).timestamp()


@pytest.fixture
def monday(desk: Desk) -> Desk:
    """A store whose clock stands on Monday, 23 November 2026."""
    desk.clock.set(NOW)
    return desk


@pytest.mark.parametrize(
    "memory",
    [
        "Anna has her recital on 27 November",
        "Anna's recital is on November 27th, 2026",
        "the recital: 27th of November",
        "recital on 2026-11-27 at six",
        "Annas Konzert ist am 27. November",
        "el recital es el 27 de noviembre",
    ],
)
@pytest.mark.parametrize("prompt", ["Book the dentist for Friday", "freitag zahnarzt", "el viernes al dentista"])
def test_a_plan_is_told_of_what_stands_on_that_day(monday: Desk, memory: str, prompt: str) -> None:
    monday.put(memory)
    monday.put("The boiler is serviced on 28 November")
    recall, receipt = monday.ask(prompt)
    assert recall is not None
    assert [(item.text, item.leg) for item in recall.items] == [(memory, DATES)]
    assert receipt.verdicts[recall.items[0].id] == "injected"


@pytest.mark.parametrize(
    ("memory", "prompt"),
    [
        ("Anna has her recital on 27 November 2025", "Book the dentist for Friday"),
        ("Anna has her recital on 27 November", "What did I do last Friday?"),
        ("Anna has her recital on 4 December", "Book the dentist for Friday"),
        ("Anna has her recital on Friday evenings", "Book the dentist for Friday"),
        ("Anna has her recital on 27 November", "Book the dentist"),
        ("the flat has 27 rooms, November was cold", "Book the dentist for Friday"),
    ],
)
def test_nothing_else_collides(monday: Desk, memory: str, prompt: str) -> None:
    monday.put(memory)
    assert monday.texts(prompt) == []


def test_at_most_three_come_up_the_latest_first(monday: Desk) -> None:
    for number in range(5):
        monday.put(f"Meeting {number} is on 27 November")
    assert monday.texts("Book the dentist for Friday") == [
        f"Meeting {number} is on 27 November" for number in (4, 3, 2)
    ]


def test_who_asks_for_an_earlier_time_is_not_told_of_days_to_come(monday: Desk) -> None:
    monday.put("Anna has her recital on 27 November")
    asked = Asked(as_of=monday.clock.now())
    assert monday.recaller().recall("Book the dentist for Friday", Audience.of(), asked=asked)[0] is None
