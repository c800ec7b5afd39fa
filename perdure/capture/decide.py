"""Step five: is it new, known already, or does it take the place of something?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import apsw

from perdure.capture.describe import Slot
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.search import View, by_hash, by_ids, lexical, lookup
from perdure.store.slots import is_single_valued
from perdure.store.trust import SUPERSEDES
from perdure.store.vector_index import VectorHit
from perdure.text.normalise import fingerprint, fold, match_terms

CANDIDATES = 5


class Action(StrEnum):
    """What is to be done with a statement."""

    ADD = "add"
    UPDATE = "update"
    NOOP = "noop"


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done, with which older fact, and why."""

    action: Action
    target: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Levels:
    """The four levels of duplicate detection; each can be turned off.

    Attributes:
        exact: the same text.
        normalised: the same text but for case, white space and the like.
        vector: a text that means the same, by its cosine.
        vector_cosine: from which cosine on.
        classify: rules over slots and cues of change, which also find what is no longer true.
    """

    exact: bool = True
    normalised: bool = True
    vector: bool = True
    vector_cosine: float = 0.95
    classify: bool = True


def decide(
    connection: apsw.Connection,
    fact: Fact,
    view: View,
    near: Sequence[VectorHit] = (),
    levels: Levels = Levels(),
) -> Decision:
    """Compare a new fact with those of its own scope.

    What is not clearly an update is added beside the old: nothing is ever overwritten on a guess.

    Args:
        connection: a reader.
        fact: the new fact, with its slot filled in if it has one.
        view: the facts of the scope it would be written to.
        near: the facts whose vectors are nearest, best first; hints that are checked here.
        levels: which comparisons are made.
    """
    twin = _duplicate(connection, fact, view, near, levels)
    if twin is not None:
        return twin
    if not levels.classify:
        return Decision(Action.ADD, None, "new")
    return _classified(connection, fact, view)


def _duplicate(
    connection: apsw.Connection, fact: Fact, view: View, near: Sequence[VectorHit], levels: Levels
) -> Decision | None:
    for same in by_hash(connection, fingerprint(fact.text), view):
        if levels.exact and same.text == fact.text:
            return Decision(Action.NOOP, same.id, "said before")
        if levels.normalised:
            return Decision(Action.NOOP, same.id, "said before in other letters")
    if levels.vector:
        close = [hit.id for hit in near if hit.cosine >= levels.vector_cosine]
        for old in by_ids(connection, close, view).values():
            if _same_details(old, fact):
                return Decision(Action.NOOP, old.id, "means what was said before")
    return None


def _same_details(old: Fact, new: Fact) -> bool:
    """Return whether two texts that are near also agree in what vectors hardly show: figures, names, a "not"."""
    slots = (old.entity, old.key, old.value), (new.entity, new.key, new.value)
    return set(_DETAIL.findall(old.text)) == set(_DETAIL.findall(new.text)) and slots[0] == slots[1]


def _classified(connection: apsw.Connection, fact: Fact, view: View) -> Decision:
    slot = Slot(fact.entity, fact.key, fact.value or "") if fact.entity and fact.key else None
    changed = bool(_CHANGE.search(fold(fact.text)))
    if slot is not None:
        for old in lookup(connection, slot.entity, slot.key, view, CANDIDATES):
            if _same_value(old.value, slot.value):
                return Decision(Action.NOOP, old.id, "same value in the same slot")
            if is_single_valued(slot.key) or changed:
                return _update(fact, old, f"new value of {slot.key}" if changed else "slot holds one value")
    former = _former_value(fact.text)
    if former:
        for hit in lexical(connection, former, view, CANDIDATES):
            if fact.category in (hit.fact.category, "decision") and _mentions(hit.fact, former):
                return _update(fact, hit.fact, "names the value it replaces")
    return Decision(Action.ADD, None, "new")


def _update(fact: Fact, old: Fact, reason: str) -> Decision:
    users = old.channel in SUPERSEDES
    if users and fact.channel not in SUPERSEDES:
        return Decision(Action.ADD, None, f"channel {Channel(fact.channel).value} may not replace what the user said")
    return Decision(Action.UPDATE, old.id, reason)


def _same_value(old: str | None, new: str) -> bool:
    return bool(old) and fingerprint(old or "") == fingerprint(new)


def _former_value(text: str) -> str | None:
    match = _FORMER.search(text)
    return next((group.strip() for group in match.groups() if group), None) if match else None


def _mentions(fact: Fact, value: str) -> bool:
    words = set(match_terms(value))
    return bool(words) and words <= set(match_terms(fact.text))


_DETAIL = re.compile(r"\d[\d.:/-]*|(?<=[a-z,] )[A-Z]\w+|(?i:\b(?:not?|never|no longer|\w+n't|without)\b)")
_CHANGE = re.compile(
    r"\b(?:actually|correction|instead|now|no longer|not any ?more|anymore|switched|changed|moved|renamed|rescheduled|"
    r"updated?|used to|stopped|quit|cancelled|canceled|postponed|pushed back|turns out|i was wrong|i misspoke|"
    r"sorry, i meant|not the)\b"
)
_FORMER = re.compile(
    r"\b(?:switched|moved|changed|migrated|migrating|going|went) (?:[\w ]{1,30} )?from ([\w .+#-]{2,60}?) to\b"
    r"|\binstead of ([\w .+#-]{2,60}?)(?=[,.;!]|$| now\b| because\b)"
    r"|\b(?:no longer|don't|do not|stopped|quit) (?:use|using|like|liking|eat|eating|drink|drinking|want|prefer|"
    r"play|playing|work at|working at|live in|living in) ([\w .+#-]{2,60}?)"
    r"(?=[,.;!]|$| any ?more\b| now\b| because\b| and\b)"
    r"|, not (?:on |in |at |the )*([\w .:+#-]{2,40}?)(?=[,.;!]|$)",
    re.IGNORECASE,
)
