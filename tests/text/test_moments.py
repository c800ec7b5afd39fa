from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.text.timestamps import seconds

numbers = st.one_of(st.integers(), st.floats())
words = st.one_of(
    st.text(max_size=30),
    st.datetimes(timezones=st.timezones() | st.none()).map(dt.datetime.isoformat),
    st.dates().map(dt.date.isoformat),
)


@pytest.mark.parametrize(
    ("value", "at"),
    [
        (1_767_225_600, 1_767_225_600.0),
        (1_767_225_600_000, 1_767_225_600.0),
        ("2026-01-01T00:00:00Z", 1_767_225_600.0),
        ("2026-01-01T01:00:00+01:00", 1_767_225_600.0),
        (True, None),
        (0, None),
        (-5.0, None),
        (1e30, None),
        (10**400, None),
        (float("nan"), None),
        ("1969-07-20", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("soon", None),
    ],
)
def test_times_of_hosts(value: Any, at: float | None) -> None:
    assert seconds(value) == at


@given(numbers | words)
def test_a_time_is_one_that_every_calendar_has(value: Any) -> None:
    at = seconds(value)
    if at is not None:
        assert 1970 <= dt.datetime.fromtimestamp(at, dt.UTC).astimezone().year <= 5139
