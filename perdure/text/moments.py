"""Times as hosts write them."""

from __future__ import annotations

import datetime as dt

MAX_MILLISECONDS = 1e14
"""Host times beyond the year 5138 are no times."""


def seconds(value: object) -> float | None:
    """Return a time of a host in epoch seconds: ISO 8601, seconds or milliseconds; None if it is no time."""
    if isinstance(value, str):
        try:
            return dt.datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MAX_MILLISECONDS:
        return value / 1000 if value > 1e11 else float(value)
    return None
