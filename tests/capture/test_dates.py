"""Times that make sense only when they are said get their day written behind them."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.capture.lifetimes import dated, freeze_until
from perdure.text.timestamps import midnight
from tests.capture.conftest import Notebook
from tests.kit import for_each, machine_in

ZONES = ("America/Los_Angeles", "Pacific/Auckland", "Asia/Shanghai", "Asia/Kathmandu", "UTC")
SUNDAY = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC).timestamp()


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("We moved the launch to next Friday.", "We moved the launch to next Friday (2026-11-27)."),
        ("I fly tomorrow.", "I fly tomorrow (2026-11-23)."),
        ("I fly the day after tomorrow.", "I fly the day after tomorrow (2026-11-24)."),
        ("I start in two weeks.", "I start in two weeks (2026-12-06)."),
        ("We moved last month.", "We moved last month (2026-10-01 to 2026-10-31)."),
        ("The launch is on 3 December.", "The launch is on 3 December."),
        ("I work on Fridays.", "I work on Fridays."),
    ],
)
def test_the_day_stands_behind_the_words(said: str, written: str) -> None:
    assert dated(said, SUNDAY) == written


@settings(max_examples=100)
@given(st.text(max_size=80), st.sampled_from(["tomorrow", "next week", "in 3 days", "two years ago", "yesterday"]))
def test_a_dated_text_is_left_as_it_is(text: str, when: str) -> None:
    once = dated(f"{text} {when}", SUNDAY)
    assert dated(once, SUNDAY) == once


def test_a_relative_day_to_come_keeps_the_fact_until_it_is_over() -> None:
    end = dt.datetime(2026, 11, 28, tzinfo=dt.UTC).timestamp()
    assert freeze_until("The launch is next Friday.", SUNDAY) == end
    assert freeze_until("The launch was last Friday.", SUNDAY) is None


def test_what_is_captured_shows_the_day(notebook: Notebook) -> None:
    [captured] = notebook.say("Our launch is next Friday.")
    said = dt.datetime.fromtimestamp(notebook.clock.now(), dt.UTC).date()
    friday = said + dt.timedelta(days=(4 - said.weekday() - 1) % 7 + 1)
    assert f"next Friday ({friday})" in captured.fact.text


def test_the_same_words_a_week_later_mean_another_day(notebook: Notebook) -> None:
    notebook.say("Our launch is next Friday.")
    for _ in range(7):
        notebook.clock.advance(86_400)
    [later] = notebook.say("Our launch is next Friday.")
    assert later.decision.action.value == "update"


@for_each(
    ("zone", "said", "tomorrow"),
    [
        *((zone, f"2026-03-02T{time}", "2026-03-03") for zone in ZONES for time in ("00:00:30", "12:00", "23:59:30")),
        ("America/Los_Angeles", "2026-03-07T23:59:30", "2026-03-08"),
        ("America/Los_Angeles", "2026-03-08T03:30", "2026-03-09"),
        ("America/Los_Angeles", "2026-11-01T00:30", "2026-11-02"),
        ("America/Los_Angeles", "2026-11-01T23:30", "2026-11-02"),
        ("Pacific/Auckland", "2026-04-05T00:30", "2026-04-06"),
        ("Pacific/Auckland", "2026-04-05T23:30", "2026-04-06"),
        ("Pacific/Auckland", "2026-09-27T23:30", "2026-09-28"),
        ("Europe/Lisbon", "2026-03-28T23:30", "2026-03-29"),
    ],
)
def test_a_day_is_that_of_the_place_where_it_was_said(zone: str, said: str, tomorrow: str) -> None:
    place, day = ZoneInfo(zone), dt.date.fromisoformat(tomorrow)
    at, text = dt.datetime.fromisoformat(said).replace(tzinfo=place).timestamp(), "I fly tomorrow."
    ends = midnight(day + dt.timedelta(days=1), place)
    assert (dated(text, at, place), freeze_until(text, at, place)) == (f"I fly tomorrow ({tomorrow}).", ends)
    with machine_in(zone):
        assert (dated(text, at), freeze_until(text, at)) == (f"I fly tomorrow ({tomorrow}).", ends)
