"""Step five: is it new, known already, over, or does it take the place of something?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import apsw

from perdure.capture.compare import Action, compare, rank
from perdure.capture.features import same_slot
from perdure.capture.likeness import likeness
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_hash, by_ids, lexical, lookup
from perdure.store.slots import is_single_valued
from perdure.store.trust import SUPERSEDES
from perdure.store.vector_index import VectorHit
from perdure.text.normalise import fingerprint

CANDIDATES = 10
SURE = 0.75
"""A decision of less confidence is left to a judge, if there is one."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done, with which older fact, and why.

    Attributes:
        action: what is to be done.
        target: id of the fact that is confirmed, replaced or withdrawn.
        reason: why, in a few words that are no memory.
        confidence: 0 to 1.
        against: id of a fact that an added one may contradict; it is linked and stays.
    """

    action: Action
    target: str | None
    reason: str
    confidence: float = 1.0
    against: str | None = None


NEW = Decision(Action.ADD, None, "new")


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
    twin = _twin(connection, fact, view, levels)
    if twin is not None or not (levels.vector or levels.classify):
        return twin or NEW
    known = candidates(connection, fact, view, near)
    if levels.vector:
        cosines = {hit.id: hit.cosine for hit in near}
        for old in known:
            if cosines.get(old.id, 0.0) >= levels.vector_cosine and _same_details(old, fact):
                return Decision(Action.NOOP, old.id, "means what was said before")
    return permitted(fact, known, _classified(fact, known, near)) if levels.classify else NEW


def candidates(connection: apsw.Connection, fact: Fact, view: View, near: Sequence[VectorHit]) -> list[Fact]:
    """Return the facts that a new one is compared with: of its slot, near in meaning, with rare words in common."""
    found = lookup(connection, fact.entity, fact.key, view, CANDIDATES) if fact.entity and fact.key else []
    found += by_ids(connection, [hit.id for hit in near[:CANDIDATES]], view).values()
    found += [hit.fact for hit in lexical(connection, fact.text, view, CANDIDATES)]
    return list({old.id: old for old in found}.values())


def permitted(fact: Fact, known: Iterable[Fact], decision: Decision) -> Decision:
    """Return the decision, or an addition beside where the new fact's channel may not do that to what the user said."""
    old = next((old for old in known if old.id == decision.target), None)
    if old is None or decision.action not in (Action.UPDATE, Action.DELETE):
        return decision
    if old.channel in SUPERSEDES and fact.channel not in SUPERSEDES:
        reason = f"channel {Channel(fact.channel).value} may not replace what the user said"
        return Decision(Action.ADD, None, reason, decision.confidence, old.id)
    return decision


def own_view(fact: Fact, now: float) -> View:
    """Return the view of the one scope that a fact belongs to."""
    scope = Scope(fact.scope, fact.scope_target)
    return View(Audience(frozenset({scope}), scope), now)


def _twin(connection: apsw.Connection, fact: Fact, view: View, levels: Levels) -> Decision | None:
    for same in by_hash(connection, fingerprint(fact.text), view):
        if levels.exact and same.text == fact.text:
            return Decision(Action.NOOP, same.id, "said before")
        if levels.normalised:
            return Decision(Action.NOOP, same.id, "said before in other letters")
    return None


def _same_details(old: Fact, new: Fact) -> bool:
    """Return whether two texts that are near also agree in what vectors hardly show: figures, names, a "not"."""
    slots = (old.entity, old.key, old.value), (new.entity, new.key, new.value)
    return slots[0] == slots[1] and likeness(old.text, new.text).same_details


def _classified(fact: Fact, known: Sequence[Fact], near: Sequence[VectorHit]) -> Decision:
    cosines = {hit.id: hit.cosine for hit in near}
    # What has no vector is judged by the words it shares.
    alike = {old.id: cosines.get(old.id, likeness(old.text, fact.text).overlap) for old in known}
    nearest = max(alike.values(), default=0.0)
    verdicts = [(compare(old, fact, alike[old.id], alike[old.id] == nearest), old) for old in known]
    if not verdicts:
        return NEW
    verdict, old = max(verdicts, key=lambda found: (*rank(found[0]), alike[found[1].id]))
    # Undoing may have left two values where there is room for one: then the newest, which comes first, decides.
    single = is_single_valued(fact.key) if fact.key else False
    holder = next((found for found in verdicts if single and same_slot(found[1], fact)), None)
    if holder is not None and holder[0].action is not Action.ADD:
        verdict, old = holder
    if verdict.action is not Action.ADD:
        return Decision(verdict.action, old.id, verdict.reason, verdict.confidence)
    doubtful = next((each for found, each in verdicts if found.doubtful), None)
    if doubtful is not None:
        return Decision(Action.ADD, None, "may contradict what is known", 0.4, doubtful.id)
    return replace(NEW, confidence=min(found.confidence for found, _ in verdicts))
