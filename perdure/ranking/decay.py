"""How long a fact of each decay class lives, and how its confidence falls."""

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

DEFAULT_CLASS = "permanent"
"""Of what nobody names a class for: that it ends is for its own words to say, or for whoever stores it."""
OF_SESSION = "session"
"""Of what ends with the session that it was said in, or with its lifetime where no session is told."""
REFRESHED_BY_USE = frozenset({"durable", "stable", "normal", "active"})
"""Classes whose lifetime starts anew when the fact is used."""

OLD_AGE = 0.75
OLD_AGE_FACTOR = 0.5
"""Past three quarters of its lifetime a fact counts half as certain."""


def expiry(decay_class: str, confirmed_at: float, freeze_until: float | None = None) -> float | None:
    """Return when a fact expires, in epoch seconds (None: never), but not before `freeze_until`.

    An unknown class, as an import may bring, lives as long as the default class.
    """
    lifetime = LIFETIMES.get(decay_class, LIFETIMES[DEFAULT_CLASS])
    if lifetime is None:
        return None
    return max(confirmed_at + lifetime, freeze_until or 0.0)


def confidence_at(confidence: float, confirmed_at: float, expires_at: float | None, now: float) -> float:
    """Return a fact's confidence at `now`, 0 to 1. Times are epoch seconds; without `expires_at` it never expires."""
    if expires_at is None or now <= confirmed_at + OLD_AGE * (expires_at - confirmed_at):
        return confidence
    return confidence * OLD_AGE_FACTOR
