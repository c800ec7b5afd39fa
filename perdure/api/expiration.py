"""When a memory fades and ends, and why: in words for people."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from perdure.capture.lifetimes import lifetime
from perdure.ranking.decay import OLD_AGE, REFRESHED_BY_USE, expiry
from perdure.store.fact import Fact

NEVER = "for good"


@dataclass(frozen=True, slots=True)
class Ending:
    """How long a memory lives.

    Attributes:
        at: when it ends, epoch seconds; None: never.
        fades_at: from then on it counts half as certain, epoch seconds; None: never.
        words: those of its text that say so; None: it was given its end, or has none.
        told: all of it in a few words, such as "until 2026-12-01, as it says 'until December'".
    """

    at: float | None
    fades_at: float | None
    words: str | None
    told: str


def ending(fact: Fact, now: float) -> Ending:
    """Return when a memory ends, and why.

    Args:
        fact: the memory.
        now: epoch seconds.
    """
    if fact.expires_at is None:
        return Ending(None, None, None, NEVER)
    confirmed = fact.last_confirmed_at or fact.created_at
    fades = confirmed + OLD_AGE * (fact.expires_at - confirmed)
    own = lifetime(fact.text, fact.effective_date, fact.key)
    if own.words is not None and own.decay_class == fact.decay_class:
        words, why = own.words, f"as it says '{own.words}'"
    elif expiry(fact.decay_class, confirmed, fact.decay_freeze_until) is None:
        words, why = None, "an end that it was given"
    else:
        words, why = None, f"as the class '{fact.decay_class}' it was given says"
    if fact.decay_class in REFRESHED_BY_USE and fact.expires_at > now:
        why += "; each use puts it off"
    fading = f"; fades since {_day(fades)}" if fades < now < fact.expires_at else ""
    return Ending(fact.expires_at, fades, words, f"until {_day(fact.expires_at)}, {why}{fading}")


def _day(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).date().isoformat()
