from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.text.timestamps import seconds, zone_of, zone_told
from tests.kit import for_each

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


@for_each(
    ("name", "hours"),
    [
        ("Asia/Kathmandu", 5.75),
        ("America/Los_Angeles", -8),
        ("UTC", 0),
        ("-08:00", -8),
        ("+0545", 5.75),
        ("GMT+8", 8),
        ("UTC-3:30", -3.5),
        ("PST", -8),
        ("EDT", -4),
        ("", None),
        (None, None),
        ("Mars/Olympus", None),
        ("America", None),
        ("../../etc/passwd", None),
        ("GMT+99", None),
    ],
)
def test_zones_are_told_by_name_or_offset(name: str | None, hours: float | None) -> None:
    zone = zone_of(name)
    offset = zone.utcoffset(dt.datetime(2026, 1, 1)) if zone else None
    assert offset == (None if hours is None else dt.timedelta(hours=hours))


@for_each(
    ("message", "zone"),
    [
        ({"content": "Hello.", "timestamp": "2026-03-02T20:30:00-08:00"}, "-08:00"),
        ({"content": "Hello.", "timestamp": "2026-03-03T04:30:00Z"}, None),
        ({"content": "Hello.", "timestamp": "2026-03-03T04:30:00+00:00"}, None),
        ({"content": "Hello.", "timestamp": 1_772_512_200_000}, None),
        ({"content": "Hello.", "timestamp": "2026-03-02"}, None),
        ({"content": "[Mon 2026-03-16 14:27 GMT+8] Hello."}, "GMT+8"),
        ({"content": "[Mon 2026-03-16 14:27 GMT+8] Hello.", "timestamp": "2026-03-16T06:27:00Z"}, "GMT+8"),
        ({"content": "[WhatsApp +15550100 +2m 2026-03-16 14:27 PST] Hello."}, "PST"),
        ({"content": "[Mon 2026-03-16 06:27 UTC] Hello."}, None),
        (
            {"content": [{"type": "text", "text": "[Mira 2026-03-16 14:27 Asia/Kathmandu]"}]},
            "Asia/Kathmandu",
        ),
        ({"content": "Meet me [2026-03-16 14:27 GMT+8]."}, None),
        ({"content": "[todo] Hello."}, None),
        ({}, None),
    ],
)
def test_a_message_may_tell_where_it_was_written(message: dict[str, Any], zone: str | None) -> None:
    assert zone_told(message).get("zone") == zone
