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
    ],
)
def test_a_fact_lives_its_class_long(decay_class: str, seconds: float) -> None:
    assert expiry(decay_class, 1000.0) == 1000.0 + seconds


def test_what_is_permanent_never_expires() -> None:
    assert expiry("permanent", 1000.0) is None


def test_a_class_that_nobody_knows_ends_nothing() -> None:
    assert expiry("of an import", 1000.0) is None


def test_there_is_one_class_without_an_end() -> None:
    assert [name for name, lifetime in LIFETIMES.items() if lifetime is None] == ["permanent"]
