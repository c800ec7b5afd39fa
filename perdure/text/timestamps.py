"""Times as hosts write them."""

from __future__ import annotations

import datetime as dt

MAX_SECONDS = 1e11
"""Host times beyond the year 5138 are no times, and neither are those before 1970: no calendar need hold them."""


def seconds(value: object) -> float | None:
    """Return a time of a host in epoch seconds: ISO 8601, seconds or milliseconds; None if it is no time."""
    if isinstance(value, str):
        try:
            at = dt.datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
        return at if 0 < at <= MAX_SECONDS else None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1000 * MAX_SECONDS:
        return value / 1000 if value > MAX_SECONDS else float(value)
    return None
