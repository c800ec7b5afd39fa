"""How long a fact lives."""

from __future__ import annotations

import pytest

from perdure.ranking.decay import DAY, HOUR, LIFETIMES, expiry


@pytest.mark.parametrize(
    ("decay_class", "seconds"),
    [
        ("durable", 90 * DAY),
        ("stable", 90 * DAY),
        ("normal", 14 * DAY),
        ("active", 14 * DAY),
        ("short", 2 * DAY),
        ("session", 24 * HOUR),
        ("ephemeral", 4 * HOUR),
        ("checkpoint", 4 * HOUR),
        ("of an import", 90 * DAY),
    ],
)
def test_a_fact_lives_its_class_long(decay_class: str, seconds: float) -> None:
    assert expiry(decay_class, 1000.0) == 1000.0 + seconds


def test_what_is_permanent_never_expires() -> None:
    assert expiry("permanent", 1000.0) is None
    assert [name for name, lifetime in LIFETIMES.items() if lifetime is None] == ["permanent"]
