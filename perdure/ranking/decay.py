"""How long a fact of each decay class lives."""

from __future__ import annotations

HOUR = 3600.0
DAY = 24 * HOUR

LIFETIMES: dict[str, float | None] = {
    "permanent": None,
    "durable": 90 * DAY,
    "stable": 90 * DAY,
    "normal": 14 * DAY,
    "active": 14 * DAY,
    "short": 2 * DAY,
    "session": 24 * HOUR,
    "ephemeral": 4 * HOUR,
    "checkpoint": 4 * HOUR,
}
"""Seconds from the last confirmation to expiry; None: never. `stable` is another name of `durable`,
`active` of `normal`, `checkpoint` of `ephemeral`."""

DEFAULT_CLASS = "stable"


def expiry(decay_class: str, confirmed_at: float) -> float | None:
    """Return when a fact confirmed at this time expires, in epoch seconds; None: never.

    An unknown class, as an import may bring, lives as long as the default class.
    """
    lifetime = LIFETIMES.get(decay_class, LIFETIMES[DEFAULT_CLASS])
    return None if lifetime is None else confirmed_at + lifetime
