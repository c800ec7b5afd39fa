"""What a new statement does to one that is known: nothing, its place, its end, or it is known already."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from perdure.capture import evidence
from perdure.capture.change_words import FORGET
from perdure.capture.reading import read
from perdure.store.fact import Fact
from perdure.text.normalise import fold


class Action(StrEnum):
    """What is to be done with a statement."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"
    NOOP = "noop"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a new statement does to a known one.

    Attributes:
        action: what is to be done.
        reason: why, in a few words that are no memory.
        confidence: 0 to 1.
        part: whether the known one stays, as it says more than what is out of date, or may still hold.
        stale: what of it is out of date, as it is written there; empty where that cannot be told.
        doubtful: whether one says in the same words that the other is not so, though nothing says which holds.
    """

    action: Action
    reason: str
    confidence: float
    part: bool = False
    stale: str = ""
    doubtful: bool = False


NAMED = 0.6
"""Cosine from which on a statement that speaks of a change is taken to mean a known one, which is then marked."""
ASKED = "asked to forget it"
BESIDE = Verdict(Action.ADD, "new", 1.0)
MARKED = Verdict(Action.UPDATE, "speaks of a change of this", 0.6, part=True)
DENIED = Verdict(Action.ADD, "says that it is not so", 0.4, doubtful=True)


def compare(old: Fact, new: Fact, cosine: float = 0.0) -> Verdict:
    """Compare a new fact with a known one: without evidence both stay.

    Args:
        old: what is known.
        new: what was said.
        cosine: of their vectors; 0 where there are none.
    """
    if not (evidence.same_slot(old, new) or read(old.text).terms & read(new.text).terms):
        return BESIDE
    if FORGET.search(fold(new.text)):
        return _ended(old, new, evidence.asked(old, new), 0.9)
    if evidence.same(old, new):
        return Verdict(Action.NOOP, "says what was said before", 0.95)
    found = evidence.replaces(old, new)
    if found is not None:
        return Verdict(Action.UPDATE, found.reason, 0.9, found.rest, found.stale)
    over = evidence.over(old, new)
    if over is None and evidence.denies(old, new):
        return DENIED
    if over is None and cosine >= NAMED and evidence.speaks_of_change(old, new):
        return MARKED
    return _ended(old, new, over, 0.8)


def stale(older: Fact, newer: Fact) -> str:
    """Return the words of a fact that a newer one makes out of date; empty where they cannot be told."""
    return compare(older, newer).stale


def _ended(old: Fact, new: Fact, found: evidence.Evidence | None, confidence: float) -> Verdict:
    if found is None:
        return BESIDE
    # What the new one says of its own is not to be lost with the old one.
    action = Action.UPDATE if found.rest or evidence.says_more(old, new) else Action.DELETE
    return Verdict(action, found.reason, confidence, found.rest, found.stale)
