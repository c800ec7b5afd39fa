"""Is it new, known already, over, or does it take the place of something?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from perdure.capture import evidence
from perdure.capture.evidence import same_slot
from perdure.capture.forgetting import among
from perdure.capture.reading import read
from perdure.hooks.types import Channel
from perdure.index.vector_index import VectorHit
from perdure.speech.forgetting import orders_to_forget
from perdure.store.fact import Fact, is_single_valued
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_hash, by_ids, every, lexical, lookup
from perdure.store.sql import Connection
from perdure.store.trust import SUPERSEDES, gives_way
from perdure.text.normalise import fingerprint


class Action(StrEnum):
    """What is to be done with a statement."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"
    NOOP = "noop"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a new statement does to a known one."""

    action: Action
    reason: str  # in a few words that are no memory
    confidence: float  # 0 to 1
    part: bool = False  # the known one stays, as it says more than what is out of date, or may still hold
    stale: str = ""  # what of it is out of date, as it is written there; empty where that cannot be told
    doubtful: bool = False  # one says in the same words that the other is not so, though nothing says which holds


SPEAKER = "speaker"
"""Under this name the metadata of a fact hold who said it, in a conversation of several people."""
CANDIDATES = 10
NAMED = 0.6
"""Cosine from which on a statement that speaks of a change is taken to mean a known one, which is then marked."""
MAX_COMPARED = 16_000
"""Characters of two texts: what they replace of each other is told clause by clause, which nobody can say of pages."""
ASKED_TO_FORGET = "the user asked to forget it"
BESIDE = Verdict(Action.ADD, "new", 1.0)
MARKED = Verdict(Action.UPDATE, "states a change to this", 0.6, part=True)
DENIED = Verdict(Action.ADD, "denies this", 0.4, doubtful=True)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done, with which older fact, and why."""

    action: Action
    target: str | None  # id of the fact that is confirmed, replaced or withdrawn
    reason: str  # in a few words that are no memory
    confidence: float = 1.0  # 0 to 1
    against: str | None = None  # id of a fact that an added one contradicts; it is linked and stays
    corrects: tuple[str, ...] = ()  # ids of facts of which a part is out of date; they are linked and stay for the rest
    twins: tuple[str, ...] = ()  # ids of further facts whose place is taken: they say the same, on a weaker word


NEW = Decision(Action.ADD, None, "new")


@dataclass(frozen=True, slots=True)
class Levels:
    """The four levels of duplicate detection; each can be turned off."""

    exact: bool = True  # the same text
    normalised: bool = True  # the same text but for case, white space and the like
    vector: float = 0.95  # a text that means the same, from this cosine on; 0: it is not asked
    classify: bool = True  # the rules of evidence, which also find what is no longer true


def compare(old: Fact, new: Fact, cosine: float = 0.0) -> Verdict:
    """Compare a new fact with a known one: without evidence both stay. Without vectors their cosine is 0."""
    if len(old.text) + len(new.text) > MAX_COMPARED:
        return BESIDE
    if not (evidence.same_slot(old, new) or read(old.text).terms & read(new.text).terms):
        return BESIDE
    if evidence.same(old, new):
        return Verdict(Action.NOOP, "repeats an earlier statement", 0.95)
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


def decide(
    connection: Connection,
    fact: Fact,
    view: View,
    near: Sequence[VectorHit] = (),
    levels: Levels = Levels(),
) -> Decision:
    """Compare a new fact with those of its own scope.

    Without evidence it is added beside the old: nothing is ever overwritten on a guess. What says the same on a weaker
    word is passed over, as if it were not there, and gives its place up. `view` is that of the scope it would be
    written to; the nearest by their vectors, best first, are hints that are checked here.
    """
    passed: list[str] = []
    while True:
        found = _compared(connection, fact, view, near, levels, passed)
        if found.action is not Action.NOOP or found.target is None:
            break
        if not gives_way(by_ids(connection, [found.target], view)[found.target], fact):
            return found
        passed.append(found.target)
    if not passed or found.action is Action.DELETE:
        return found
    if found.action is Action.UPDATE:
        return replace(found, twins=tuple(passed))
    reason = "already stored from a weaker source"
    return replace(found, action=Action.UPDATE, target=passed[0], reason=reason, twins=tuple(passed[1:]))


def _compared(
    connection: Connection,
    fact: Fact,
    view: View,
    near: Sequence[VectorHit],
    levels: Levels,
    passed: Collection[str],
) -> Decision:
    twin = _twin(connection, fact, view, levels, passed)
    if twin is not None or not (levels.vector or levels.classify):
        return twin or NEW
    if orders := list(orders_to_forget(fact.text)):
        facts = every(connection, view)
        meant = [old for order in orders for old in among(order, facts).clear]
        return permitted(fact, meant, Decision(Action.DELETE, meant[0].id, ASKED_TO_FORGET, 0.9)) if meant else NEW
    found = _candidates(connection, fact, view, near)
    known = [old for old in found if old.id not in passed and old.metadata.get(SPEAKER) == fact.metadata.get(SPEAKER)]
    if levels.vector:
        cosines = {hit.id: hit.cosine for hit in near}
        for old in known:
            if cosines.get(old.id, 0.0) >= levels.vector and evidence.same(old, fact, near=True):
                return Decision(Action.NOOP, old.id, "paraphrases an earlier statement")
    return permitted(fact, known, _classified(fact, known, near)) if levels.classify else NEW


def _candidates(connection: Connection, fact: Fact, view: View, near: Sequence[VectorHit]) -> list[Fact]:
    """Return the facts that a new one is compared with: of its slot, near in meaning, with rare words in common."""
    found = lookup(connection, fact.entity, fact.key, view, CANDIDATES) if fact.entity and fact.key else []
    found += by_ids(connection, [hit.id for hit in near[:CANDIDATES]], view).values()
    found += [hit.fact for hit in lexical(connection, fact.text, view, CANDIDATES).hits]
    return list({old.id: old for old in found}.values())


def permitted(fact: Fact, known: Iterable[Fact], decision: Decision) -> Decision:
    """Return the decision, without what the new fact's channel may not do to what the user said."""
    if fact.channel in SUPERSEDES:
        return decision
    said = {old.id for old in known if old.channel in SUPERSEDES}
    decision = replace(decision, corrects=tuple(each for each in decision.corrects if each not in said))
    if decision.target not in said or decision.action not in (Action.UPDATE, Action.DELETE):
        return decision
    reason = f"channel {Channel(fact.channel).value} may not replace what the user said"
    return Decision(Action.ADD, None, reason, decision.confidence, decision.target, decision.corrects)


def own_view(fact: Fact, now: float) -> View:
    """Return the view of the one scope that a fact belongs to."""
    scope = Scope(fact.scope, fact.scope_target)
    return View(Audience(frozenset({scope}), scope), now)


def _twin(connection: Connection, fact: Fact, view: View, levels: Levels, passed: Collection[str]) -> Decision | None:
    for same in by_hash(connection, fingerprint(fact.text), view):
        if same.id in passed:
            continue
        if levels.exact and same.text == fact.text:
            return Decision(Action.NOOP, same.id, "said before")
        if levels.normalised:
            return Decision(Action.NOOP, same.id, "already stored, written differently")
    return None


def _classified(fact: Fact, known: Sequence[Fact], near: Sequence[VectorHit]) -> Decision:
    cosines = {hit.id: hit.cosine for hit in near}
    single = bool(fact.key) and is_single_valued(fact.key or "")
    # Undoing may have left two values where there is room for one: then the newest, which comes first, decides.
    holder = next((old for old in known if single and same_slot(old, fact)), None)
    compared = [old for old in known if holder is None or old is holder or not same_slot(old, fact)]
    verdicts = [(compare(old, fact, cosines.get(old.id, 0.0)), old) for old in compared]
    parts = tuple(old.id for verdict, old in verdicts if verdict.stale and verdict.part)
    found = [(verdict, old) for verdict, old in verdicts if verdict.action is not Action.ADD and not verdict.part]
    if found:
        verdict, old = _chosen(found, holder)
        return Decision(verdict.action, old.id, verdict.reason, verdict.confidence, corrects=parts)
    meant = [(verdict, old) for verdict, old in verdicts if verdict.part]
    if meant:
        # Where no words show which one is meant, it is the nearest, and only that.
        verdict, nearest = max(meant, key=lambda each: (bool(each[0].stale), cosines.get(each[1].id, 0.0)))
        return Decision(Action.ADD, None, verdict.reason, verdict.confidence, corrects=parts or (nearest.id,))
    denied = next(((verdict, old) for verdict, old in verdicts if verdict.doubtful), None)
    if denied is not None:
        return Decision(Action.ADD, None, denied[0].reason, denied[0].confidence, denied[1].id)
    return NEW


def _chosen(found: Sequence[tuple[Verdict, Fact]], holder: Fact | None) -> tuple[Verdict, Fact]:
    """Return the verdict that decides: that on the holder of the slot, else the surest, else that on the newest."""
    return max(found, key=lambda each: (each[1] is holder, each[0].confidence, each[1].effective_date))
