"""What a new statement does to one that is known: nothing, its place, its end, or it is known already.

The cosine tells whether two statements speak of the same; it hardly shows who, which and whether. Those are read from
the words (`reading`) and weighed together by a logistic regression (`features`, data/judge.toml, fitted by
bench/fit_judge.py). Guards stand before it and behind it: what is said of somebody else replaces nothing.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from perdure.capture.change_words import CHANGE, END, FORGET, FORMER
from perdure.capture.describe import slot_of
from perdure.capture.features import Pair, features
from perdure.capture.language import language_of
from perdure.capture.likeness import denies, ended, other_one, other_subject, same_entity, same_people, told
from perdure.capture.reading import USER, read
from perdure.capture.slot_words import BASES, MANY, PREFERENCES
from perdure.store.fact import Fact
from perdure.store.slots import is_single_valued
from perdure.text.normalise import fingerprint, fold

RELATED = 0.35
"""Cosine below which two statements have nothing to do with each other, unless they share a slot."""
FAVOUR = 0.25
"""By how much another action must be likelier than an addition, which loses nothing."""
PARAPHRASE = 0.7
"""Cosine below which a statement with a word that is not known is not taken for a repetition: it would be lost."""
WEIGHTS = Path(__file__).parent / "data" / "judge.toml"


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


DOUBT = 0.4
"""From which likelihood of a change on an addition is linked to what it may contradict."""
BESIDE = Verdict(Action.ADD, "new", 1.0)
ASKED = "asked to forget it"
DOUBTFUL = Verdict(Action.ADD, "may contradict what is known", 0.4, doubtful=True)


Weights = Mapping[str, Mapping[Action, float]]
_Rule = Callable[[Pair], Verdict | None]


def compare(old: Fact, new: Fact, cosine: float, nearest: bool = True) -> Verdict:
    """Compare a new fact with a known one.

    Args:
        old: what is known.
        new: what was said.
        cosine: of their vectors; where there are none, the share of their words that they have in common.
        nearest: whether nothing known is nearer.
    """
    return verdict(Pair.of(old, new, cosine, nearest), fitted())


def verdict(pair: Pair, weights: Weights) -> Verdict:
    """Compare two facts: by the guards, or where none has something to say by these weights of each feature."""
    return next(filter(None, (guard(pair) for guard in _GUARDS)), None) or _weighed(pair, weights)


def rank(found: Verdict) -> tuple[bool, float]:
    """Return by what the verdicts on several known facts are ranked: the largest decides."""
    return found.action is not Action.ADD, found.confidence


@lru_cache(maxsize=1)
def fitted() -> Weights:
    """Return the weights of data/judge.toml."""
    rows = tomllib.loads(WEIGHTS.read_text(encoding="utf-8"))
    return {name: {Action(action): value for action, value in row.items()} for name, row in rows.items()}


def _weighed(pair: Pair, weights: Weights) -> Verdict:
    given = {"constant": 1.0, **features(pair)}
    scores = {
        action: math.exp(sum(weights[name][action] * value for name, value in given.items())) for action in Action
    }
    total = sum(scores.values())
    likely = {action: score / total for action, score in scores.items()}
    likely[Action.ADD] += FAVOUR
    action = max(likely, key=lambda each: likely[each])
    if action is Action.ADD:
        unsure = likely[Action.UPDATE] + likely[Action.DELETE] > DOUBT or pair.before.denied != pair.after.denied
        return DOUBTFUL if unsure and not _of_another(pair) else Verdict(Action.ADD, "new", min(1.0, likely[action]))
    if _of_another(pair):
        return Verdict(Action.ADD, "says it of somebody else", 0.8)
    return _guarded(pair, Verdict(action, _REASONS[action], likely[action]))


def _guarded(pair: Pair, found: Verdict) -> Verdict:
    """Return a verdict, or where it might lose what still holds an addition."""
    over = END.search(fold(pair.new.text))
    if (
        found.action is Action.DELETE
        and over
        and ((pair.slot and pair.new.value) or not ended(pair.new.text, pair.before))
    ):
        # Something came in its place.
        return Verdict(Action.UPDATE, _REASONS[Action.UPDATE], found.confidence)
    if found.action is Action.DELETE and not over and not denies(pair.before, pair.after, pair.cosine):
        return DOUBTFUL
    if found.action is Action.UPDATE and (_may_both_hold(pair) or _another_slot(pair)):
        return DOUBTFUL
    if found.action is Action.NOOP and not pair.whole.figures <= pair.before.figures:
        # Two codes or numbers are two things, however near their sentences are.
        return DOUBTFUL if pair.slot else Verdict(Action.ADD, "another figure", 0.8)
    if found.action is Action.NOOP and pair.whole.terms - pair.before.terms and pair.cosine < PARAPHRASE:
        return Verdict(Action.ADD, "in words that are not known", 0.7)
    if found.action is Action.NOOP and _one_more(pair) and pair.whole.terms - pair.before.terms:
        return Verdict(Action.ADD, "one more of its kind", 0.8)
    return found


def _unrelated(pair: Pair) -> Verdict | None:
    related = pair.slot or pair.cosine >= RELATED or len(pair.shared) >= 2
    if related or _former(pair) or (pair.shared & pair.before.subject and END.search(fold(pair.new.text))):
        return None
    return BESIDE


def _forget(pair: Pair) -> Verdict | None:
    return Verdict(Action.DELETE, ASKED, 0.9) if FORGET.search(fold(pair.new.text)) else None


def _same_value(pair: Pair) -> Verdict | None:
    if pair.moved and pair.before.terms == pair.whole.terms:
        return Verdict(Action.UPDATE, "names another time", 0.8)
    if pair.slot and pair.old.value and fingerprint(pair.old.value) == fingerprint(pair.new.value or ""):
        return Verdict(Action.NOOP, "same value in the same slot", 1.0)
    return None


def _single(pair: Pair) -> Verdict | None:
    told = pair.slot and pair.old.value and pair.new.value and is_single_valued(pair.new.key or "")
    # A part of the value that is known says nothing new.
    single = told and not read(pair.new.value or "").terms <= read(pair.old.value or "").terms
    return Verdict(Action.UPDATE, "slot holds one value", 0.95) if single else None


_GUARDS: tuple[_Rule, ...] = (_unrelated, _forget, _same_value, _single)
_REASONS = {
    Action.UPDATE: "says otherwise of the same",
    Action.DELETE: "says that it is over",
    Action.NOOP: "means what was said before",
}


_MANY = PREFERENCES | BASES | MANY


def _of_another(pair: Pair) -> bool:
    """Return whether the two are about different people, or say the same of different things."""
    if pair.slot:
        return False
    if other_one(pair.old.text, pair.new.text):
        return True
    same_key = pair.old.key and pair.old.key == pair.new.key
    same_person = pair.before.owner == pair.whole.owner != USER
    if same_key and not same_person and not same_entity(pair.old, pair.new):
        return True
    return not same_people(pair.before, pair.whole) and not same_people(pair.before, pair.after)


def _one_more(pair: Pair) -> bool:
    return pair.slot and (pair.old.key or "").casefold() in _MANY and not pair.before.terms <= pair.whole.terms


def _may_both_hold(pair: Pair) -> bool:
    """Return whether nothing shows that the old must go for the new: another thing, or one more that is liked."""
    if _former(pair) or CHANGE.search(fold(pair.new.text)):
        return False
    before, after = pair.before, pair.whole
    beside = before.owner != USER and not pair.slot and pair.shared <= before.subject
    another = bool(pair.old.entity and pair.new.entity) and not same_entity(pair.old, pair.new)
    untold = not told(before) or not told(after)
    return untold or _one_more(pair) or beside or another or other_subject(before, after)


def _another_slot(pair: Pair) -> bool:
    """Return whether they fill different slots that callers named; two that the words tell may mean one."""
    return bool(pair.old.key and pair.new.key) and not pair.slot and all(map(_slot_named, (pair.old, pair.new)))


def _slot_named(fact: Fact) -> bool:
    told_by_words = slot_of(fact.text, language_of(fact.text))
    return told_by_words is None or (told_by_words.entity, told_by_words.key) != (fact.entity, fact.key)


def _former(pair: Pair) -> bool:
    match = FORMER.search(fold(pair.new.text))
    former = read(next(filter(None, match.groups()))).terms if match else frozenset()
    return bool(former) and former <= pair.before.terms
