"""How two statements are alike and how they differ, by their words: what the rules of comparison are made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.capture.change_words import END, INSTEAD
from perdure.capture.clauses import parts
from perdure.capture.reading import USER, Reading, has_verb, ordered, read
from perdure.store.fact import Fact
from perdure.text.normalise import fold

SAME_TOPIC = 0.5
"""Cosine from which on two statements are taken to be about the same thing."""
SAME = 0.75
"""Cosine from which on they may say the same."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two texts are by their words alone.

    Attributes:
        overlap: share of their words that they have in common (Dice's coefficient), 0 to 1.
        same_details: whether figures, times, names and denial agree.
    """

    overlap: float
    same_details: bool


def denies(before: Reading, after: Reading, cosine: float) -> bool:
    """Return whether a denial speaks of just what was said, and puts nothing in its place."""
    if not after.figures <= before.figures or not after.names <= before.terms:
        return False
    lost = before.terms - after.terms
    return not lost or (len(lost) == 1 and len(before.terms) > 2 and cosine >= SAME_TOPIC)


def focus(text: str, before: Reading) -> Reading:
    """Read the clause that shares most with what is known: around it may stand a whole story."""
    clauses = [read(part) for part in parts(text)] or [read(text)]
    # Of equals the last: what matters is mostly said at the end.
    return max(enumerate(clauses), key=lambda item: (len(item[1].terms & before.terms), item[0]))[1]


def likeness(one: str, other: str) -> Likeness:
    """Compare two texts by their words."""
    first, second = read(one), read(other)
    both = len(first.terms) + len(second.terms)
    details = (first.figures, first.times, first.names, first.denied) == (
        second.figures, second.times, second.names, second.denied
    )  # fmt: skip
    return Likeness(2 * len(first.terms & second.terms) / both if both else 0.0, details)


def ended(text: str, before: Reading) -> bool:
    """Return whether a text says that something is over, and of nothing that it came in its place."""
    folded = fold(text)
    if not END.search(folded) or INSTEAD.search(folded):
        return False
    return not any(replaces(read(part), before) for part in _PIECES.split(text) if not END.search(fold(part)))


def replaces(piece: Reading, before: Reading) -> bool:
    """Return whether a piece of a text gives what is known another figure or name."""
    other = piece.figures - before.figures or piece.names - before.terms
    return bool(other and piece.terms & before.terms)


def same_people(before: Reading, after: Reading) -> bool:
    """Return whether neither statement is about somebody whom the other does not mention."""
    return (after.owner == USER or after.owner in before.words) and (
        before.owner == USER or before.owner in after.words
    )


def substituted(before: Reading, after: Reading) -> bool:
    """Return whether one is the other with some words in a row exchanged, as a value is."""
    old, new = list(before.sequence), list(after.sequence)
    common = 0
    for at in (0, -1):
        while old and new and old[at] == new[at]:
            old.pop(at)
            new.pop(at)
            common += 1
    return common >= 2 and bool(old and new) and max(len(old), len(new)) <= 3


def same_entity(old: Fact, new: Fact) -> bool:
    """Return whether two facts, where both have a slot, are of the same person or thing."""
    return not (old.entity and new.entity) or fold(old.entity) == fold(new.entity)


def paraphrase(before: Reading, after: Reading, cosine: float) -> bool:
    """Return whether the new statement holds no figure, time or name more, and its other words mean the same."""
    if after.figures - before.figures or after.times - before.times or after.names - before.terms:
        return False
    added, lost = after.terms - before.terms, before.terms - after.terms
    if not before.terms & after.terms or substituted(before, after):
        return False
    return not added or (
        bool(lost) and not other_subject(before, after) and cosine >= (SAME if len(added) > 1 else SAME_TOPIC)
    )


def other_subject(before: Reading, after: Reading) -> bool:
    """Return whether each subject has a word that the other statement lacks: the road bike and the mountain bike."""
    return bool(before.subject - after.terms and after.subject - before.terms)


def other_one(before: str, after: str) -> bool:
    """Return whether two texts of the same frame differ in whom or what they speak of, and not in what they say of it.

    "Berth 12 is free" and "Berth 13 is free" do; so do two codes in "The marker … stands for the database". What
    differs behind a verb, or at the end, may be another value of the same thing.
    """
    old, new = ordered(before), ordered(after)
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    lost, added = old[start : len(old) - end], new[start : len(new) - end]
    if not lost or not added or any(map(has_verb, (old[:start], lost, added))):
        return False
    codes = all(any(map(str.isdecimal, word)) for word in (lost[0], added[0]))
    return end > 1 or (codes and min(len(lost), len(added)) + end > 1)


def _common(some: Sequence[str], others: Sequence[str]) -> int:
    return next((at for at, (one, other) in enumerate(zip(some, others, strict=False)) if one != other),
                min(len(some), len(others)))  # fmt: skip


def told(reading: Reading) -> bool:
    """Return whether it can be made out what a statement is about."""
    return bool(reading.subject) or not reading.words.isdisjoint(_SELF)


def other_value(before: Reading, after: Reading, cosine: float) -> bool:
    """Return whether a figure has another value and nothing else tells the two statements apart."""
    if not (before.figures - after.figures and after.figures - before.figures) or other_subject(before, after):
        return False
    if not told(before):
        return False
    lost, added = before.terms - after.terms - before.figures, after.terms - before.terms - after.figures
    same_times = before.times - _MONTHS <= after.times and after.times - _MONTHS <= before.times | _MONTHS
    return min(len(lost), len(added)) <= (1 if before.subject else 0) and cosine >= SAME_TOPIC and same_times


_SELF = frozenset(["i", "we", "my", "our", "i'm", "we're", "i've", "we've"])
_PIECES = re.compile(r"[,;:.!?]\s+|\s+(?:and|but|so)\s+")
_MONTHS = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ]
)
