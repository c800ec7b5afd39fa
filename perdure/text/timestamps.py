"""Times as hosts write them, and the day and the zone that they are of.

A zone is a `tzinfo`; None is the machine's, whose summer times Python knows as well.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, fields
from enum import Enum
from functools import lru_cache
from typing import Any, cast
from zoneinfo import ZoneInfo

from perdure.errors import refused
from perdure.regex import lazy
from perdure.text.clean import message_text

_MAX_SECONDS = 1e11
"""Host times beyond the year 5138 are no times, and neither are those before 1970: no calendar need hold them."""
ZONE = "zone"
"""Under this name what was said, and a memory whose words were dated, tell by which zone."""
Moment = float | str | dt.date
"""A time as a caller may name it: a date or a time, or either in ISO 8601; or epoch seconds."""
_OFFSET = lazy(r"(?:UTC|GMT)?([+-])(\d\d?):?(\d\d)?")
_BEHIND = lazy(r"([+-]\d\d:?\d\d)\Z")
_ENVELOPE = lazy(r"\s*\[[^\]\n]{0,80}?\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)? ?([A-Za-z+-][\w/+:-]{1,40})\]")
"""What a host puts in front of a message: "[Mon 2026-03-16 14:27 GMT+8]"."""
_AMERICAN = {"HST": -10, "AKST": -9, "AKDT": -8, "PST": -8, "PDT": -7, "MDT": -6, "CST": -6, "CDT": -5, "EDT": -4}
"""Short names that hosts write and no database of zones has."""


Epoch = float
"""The type of a field that holds a time in epoch seconds."""


class Dated:
    """A dataclass that people look at: it shows them its times as texts, and nothing that says nothing."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; its times are ISO 8601 texts in UTC, where the fields hold epoch seconds."""
        return {each.name: _plain(getattr(self, each.name), each) for each in fields(cast(Any, self))}

    def __repr__(self) -> str:
        """Return what differs from the usual."""
        values = [(each, getattr(self, each.name)) for each in fields(cast(Any, self))]
        told = (
            f"{each.name}={_plain(value, each) if isinstance(value, float | Enum) else value!r}"
            for each, value in values if value != each.default and (value or each.default_factory is MISSING)
        )  # fmt: skip
        return f"{type(self).__name__}({', '.join(told)})"


def _plain(value: Any, of: Field[Any] | None = None) -> Any:
    match value:
        case Dated():
            return value.to_dict()
        case Enum():
            return value.value
        case Mapping():
            return {str(_plain(name)): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case float() if of is not None and str(of.type).startswith("Epoch"):
            # No calendar has a time that is too far off.
            with suppress(ValueError, OverflowError, OSError):
                return dt.datetime.fromtimestamp(value, dt.UTC).isoformat()
    return value


def seconds(value: object) -> float | None:
    """Return a time of a host in epoch seconds: ISO 8601, seconds or milliseconds; None if it is no time."""
    if isinstance(value, str):
        try:
            at = dt.datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
        return at if 0 < at <= _MAX_SECONDS else None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1000 * _MAX_SECONDS:
        return value / 1000 if value > _MAX_SECONDS else float(value)
    return None


def moment(value: Moment | None) -> float | None:
    """Return a time that a caller names in epoch seconds; without a zone it is the machine's, None is None.

    Raises:
        InputError: it is no time of the years from 1 to 9999.
    """
    if value is None:
        return None
    told: Any = value.isoformat() if isinstance(value, dt.date) else None if isinstance(value, bool) else value
    for read in (float, lambda text: dt.datetime.fromisoformat(text).timestamp()):
        # What is read must be the time of some day, too.
        with suppress(ValueError, TypeError, OverflowError, OSError):
            return dt.datetime.fromtimestamp(read(told), dt.UTC).timestamp()
    raise refused(value, "a time, such as 2026-01-15, 2026-01-15T10:00 or epoch seconds")


def day_of(at: float, zone: dt.tzinfo | None) -> dt.date:
    """Return the day of a time, epoch seconds, in a zone.

    Raises:
        ValueError, OverflowError, OSError: no calendar has it.
    """
    return dt.datetime.fromtimestamp(at, zone).date()


def midnight(day: dt.date, zone: dt.tzinfo | None) -> float:
    """Return when a day begins in a zone, in epoch seconds; of a year that is beyond the zone, in UTC."""
    try:
        return dt.datetime.combine(day, dt.time(), zone).timestamp()
    except (ValueError, OverflowError, OSError):
        return dt.datetime.combine(day, dt.time(), dt.UTC).timestamp()


@lru_cache(maxsize=64)
def zone_of(name: str | None) -> dt.tzinfo | None:
    """Return the zone of a name, as "Asia/Kathmandu", or of an offset, as "-08:00" or "GMT+8"; None if it is none."""
    offset = _OFFSET.fullmatch(name or "")
    try:
        if offset is not None:
            ahead = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
            return dt.timezone(ahead if offset[1] == "+" else -ahead)
        if name in _AMERICAN:
            return dt.timezone(dt.timedelta(hours=_AMERICAN[name]))
        return ZoneInfo(name) if name else None
    except (ValueError, LookupError, OSError):
        return None


def zone_told(message: Mapping[str, Any]) -> dict[str, str]:
    """Return, under `ZONE`, in which zone a message of a host was written; nothing if it does not tell.

    Its timestamp tells, or what the host has put in front of the text. UTC tells nothing: programs write it anywhere.
    """
    stamp = message.get("timestamp")
    told = _BEHIND.search(stamp) if isinstance(stamp, str) else None
    for found in (told, _ENVELOPE.match(message_text(message)[:200])):
        zone = zone_of(found[1]) if found else None
        if found and zone is not None and zone.utcoffset(dt.datetime(2026, 1, 1)):
            return {ZONE: found[1]}
    return {}
