"""Times that make sense only when they are said get their day written behind them."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.capture.lifetimes import dated, freeze_until
from tests.capture.conftest import Notebook

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
