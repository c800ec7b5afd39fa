"""What a new statement does to one that is known: nothing, its place, its end, or it is known already.

The cosine tells whether two statements speak of the same; it hardly shows who, which and whether. Those are read from
the words (`reading`), and all of them must agree before anything is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from perdure.capture.change_words import ALSO, CHANGE, END, FORGET, FORMER, REPEAT
from perdure.capture.likeness import (
    SAME,
    SAME_TOPIC,
    alike,
    denies,
    ended,
    focus,
    other_subject,
    other_value,
    paraphrase,
    refines,
    replaceable,
    same_entity,
    same_people,
)
from perdure.capture.reading import Reading, read
from perdure.capture.slot_words import PREFERENCES
from perdure.store.fact import Fact
from perdure.store.slots import is_single_valued
from perdure.text.normalise import fingerprint, fold

RELATED = 0.35
"""Cosine below which two statements have nothing to do with each other, unless they share a slot."""
NEAR = 0.65
"""Cosine from which on one statement may stand in the place of another that it differs from in one value."""


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
        doubtful: whether both can hardly be true, though nothing says which is.
    """

    action: Action
    reason: str
    confidence: float
    doubtful: bool = False


BESIDE = Verdict(Action.ADD, "new", 1.0)
ASKED = "asked to forget it"
DOUBTFUL = Verdict(Action.ADD, "may contradict what is known", 0.4, doubtful=True)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A known and a new statement, with what tells them apart.

    Attributes:
        old, new: the facts.
        cosine: of their vectors.
        before: the known text.
        whole: the new text.
        after: the clause of the new text that has most to do with the known one.
        shared: stems that both have.
        slot: whether both fill the same slot.
        disjoint: whether they fill it with values that have no word in common.
        changed: whether the new text says that something changed.
        moved: whether their relative times were resolved to different days.
    """

    old: Fact
    new: Fact
    cosine: float
    before: Reading
    whole: Reading
    after: Reading
    shared: frozenset[str]
    slot: bool
    disjoint: bool
    changed: bool
    moved: bool


_Rule = Callable[[_Pair], Verdict | None]


def compare(old: Fact, new: Fact, cosine: float) -> Verdict:
    """Compare a new fact with a known one. The rules are asked in order; the first that has something to say decides.

    Args:
        old: what is known.
        new: what was said.
        cosine: of their vectors; 0 where there are none.
    """
    pair = _paired(old, new, cosine)
    return next(filter(None, (rule(pair) for rule in _RULES)), BESIDE)


def same_slot(old: Fact, new: Fact) -> bool:
    """Return whether two facts fill the same slot, in whatever case it is written."""
    return bool(old.key and new.key) and fold(f"{old.entity}\0{old.key}") == fold(f"{new.entity}\0{new.key}")


def _paired(old: Fact, new: Fact, cosine: float) -> _Pair:
    before, whole = read(old.text), read(new.text)
    folded = fold(new.text)
    slot = same_slot(old, new)
    values = read(old.value or "").terms, read(new.value or "").terms
    return _Pair(
        old,
        new,
        cosine,
        before,
        whole,
        after=focus(new.text, before),
        shared=before.terms & whole.terms,
        slot=slot,
        disjoint=slot and all(values) and values[0].isdisjoint(values[1]),
        changed=bool(CHANGE.search(folded)) and not REPEAT.search(folded),
        moved=bool(before.dates and whole.dates and before.dates != whole.dates),
    )


def _unrelated(pair: _Pair) -> Verdict | None:
    related = pair.slot or pair.cosine >= RELATED or len(pair.shared) >= 2
    if related or _former(pair) or (pair.shared & pair.before.subject and END.search(fold(pair.new.text))):
        return None
    return BESIDE


def _forget(pair: _Pair) -> Verdict | None:
    return Verdict(Action.DELETE, ASKED, 0.9) if FORGET.search(fold(pair.new.text)) else None


def _same_value(pair: _Pair) -> Verdict | None:
    if pair.moved and pair.before.terms == pair.whole.terms:
        return Verdict(Action.UPDATE, "names another time", 0.8)
    if pair.slot and pair.old.value and fingerprint(pair.old.value) == fingerprint(pair.new.value or ""):
        return Verdict(Action.NOOP, "same value in the same slot", 1.0)
    return None


def _others(pair: _Pair) -> Verdict | None:
    if same_people(pair.before, pair.after) and same_people(pair.after, pair.whole):
        return None
    return Verdict(Action.ADD, "says it of somebody else", 0.8)


def _over(pair: _Pair) -> Verdict | None:
    stated = pair.slot and pair.new.value
    if stated or not (pair.shared or pair.cosine >= 0.4) or not ended(pair.new.text, pair.before):
        return None
    return Verdict(Action.DELETE, "says that it is over", 0.8)


def _known(pair: _Pair) -> Verdict | None:
    if pair.changed or pair.moved or pair.disjoint or pair.before.denied != pair.after.denied:
        return None
    cosine = pair.cosine if same_entity(pair.old, pair.new) else pair.cosine - 0.1
    return (
        Verdict(Action.NOOP, "means what was said before", 0.8) if paraphrase(pair.before, pair.whole, cosine) else None
    )


def _disjoint_value(pair: _Pair) -> Verdict | None:
    single = pair.disjoint and is_single_valued(pair.new.key or "")
    return Verdict(Action.UPDATE, "slot holds one value", 0.95) if single else None


def _new_value(pair: _Pair) -> Verdict | None:
    key, old, new = pair.new.key or "", pair.old.value, pair.new.value
    if not (pair.slot and old and new) or pair.old.entity in ("decision", "convention"):
        return None
    if is_single_valued(key):
        return Verdict(Action.UPDATE, "slot holds one value", 0.95)
    return Verdict(Action.UPDATE, "new value of the slot", 0.9) if pair.changed or alike(key, old, new) else None


def _in_addition(pair: _Pair) -> Verdict | None:
    return Verdict(Action.ADD, "said in addition", 0.8) if ALSO.search(fold(pair.new.text)) else None


def _changed(pair: _Pair) -> Verdict | None:
    if _former(pair) and pair.old.category in (pair.new.category, "decision", "fact"):
        return Verdict(Action.UPDATE, "names the value it replaces", 0.9)
    near = pair.cosine >= 0.6 or (_topic(pair) and pair.cosine >= 0.3)
    if pair.changed and near and not other_subject(pair.before, pair.after):
        return Verdict(Action.UPDATE, "says that it has changed", 0.8)
    old, new = pair.before.times, pair.whole.times
    if pair.whole.denied and old & new and new - old:
        return Verdict(Action.UPDATE, "names another time instead", 0.7)
    return None


def _denied(pair: _Pair) -> Verdict | None:
    if pair.before.denied == pair.after.denied:
        return None
    if pair.after.denied and denies(pair.before, pair.after, pair.cosine):
        return Verdict(Action.DELETE, "says that it is not so", 0.7)
    return DOUBTFUL


def _refined(pair: _Pair) -> Verdict | None:
    if pair.cosine >= SAME_TOPIC and refines(pair.before, pair.whole):
        return Verdict(Action.UPDATE, "says the same more precisely", 0.7)
    return None


def _near(pair: _Pair) -> Verdict | None:
    # Many things are liked at once: another figure is another thing.
    if pair.old.key not in PREFERENCES and other_value(pair.before, pair.after, pair.cosine):
        return Verdict(Action.UPDATE, "another value of the same", 0.6)
    if pair.cosine >= NEAR and _topic(pair) and replaceable(pair.old, pair.new, pair.before, pair.after):
        return Verdict(Action.UPDATE, "says something else of the same", 0.6)
    return DOUBTFUL if pair.cosine >= SAME and pair.shared else Verdict(Action.ADD, "new", 0.7)


_RULES: tuple[_Rule, ...] = (
    _unrelated,
    _forget,
    _same_value,
    _others,
    _over,
    _disjoint_value,
    _known,
    _new_value,
    _in_addition,
    _changed,
    _denied,
    _refined,
    _near,
)


def _topic(pair: _Pair) -> frozenset[str]:
    """Return what both speak of beside names: two sentences about Ann need not be about the same."""
    return pair.shared - pair.before.names


def _former(pair: _Pair) -> bool:
    match = FORMER.search(fold(pair.new.text))
    former = read(next(filter(None, match.groups()))).terms if match else frozenset()
    return bool(former) and former <= pair.before.terms
