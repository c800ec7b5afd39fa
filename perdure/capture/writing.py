"""A described fact is compared and written. Every way in ends here: captured, stored, imported by hand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from perdure.capture.decide import (
    ASKED_TO_FORGET,
    CANDIDATES,
    Action,
    Decision,
    Levels,
    decide,
    own_view,
    permitted,
)  # fmt: skip
from perdure.capture.describe import PATTERNS, TagPatterns, extract_tags
from perdure.embed.base import Embedder
from perdure.errors import ModelError
from perdure.index.vector_index import VectorHit, VectorIndex
from perdure.ranking.decay import OF_SESSION
from perdure.store.fact import Fact, vector_text
from perdure.store.lifecycle import forget, retract
from perdure.store.links import link
from perdure.store.search import by_ids
from perdure.store.transaction import StoredVector, Transaction
from perdure.store.trust import gives_way, strength

_LINKED = 0.7
"""Cosine from which on facts are near enough to be linked."""
Leg = tuple[Embedder, VectorIndex]


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """How facts are written; a new fact gets up to `auto_link` links to those that are near."""

    levels: Levels = field(default_factory=Levels)
    tags: TagPatterns = PATTERNS
    auto_link: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a fact: as it is stored, and what was decided."""

    fact: Fact
    decision: Decision


@dataclass(frozen=True, slots=True)
class Prepared:
    """A fact that is ready to be written, with its vector and its neighbours if there is a model."""

    fact: Fact
    vector: StoredVector | None
    near: tuple[VectorHit, ...]  # best first
    verdict: Decision | None = None  # what the librarian made of it


class Writer:
    """Prepares facts outside of a transaction, where it may take its time, and writes them inside of one."""

    def __init__(self, leg: Callable[[], Leg | None], options: WritingOptions) -> None:
        """Write with these options.

        `leg` returns the embedder of the store's space and the index of the same space, or None while there is no
        model.
        """
        self._leg = leg
        self._options = options

    def prepare(self, facts: Sequence[Fact], now: float) -> list[Prepared]:
        """Embed facts and look up their neighbours. Without a model they are written by their words alone."""
        # Taken once: the store's model may be switched at any moment.
        leg = self._leg()
        texts = [vector_text(fact.text, fact.entity, fact.key) for fact in facts]
        vectors = _vectors(texts, leg[0] if leg else None)
        return [
            Prepared(self._tagged(fact), vector, _near(fact, vector, leg[1] if leg else None, now))
            for fact, vector in zip(facts, vectors, strict=True)
        ]

    def write(self, tx: Transaction, prepared: Prepared) -> Written:
        """Add a fact, let it take the place of others, or note that it was said before."""
        fact = prepared.fact
        if tx.is_purged(fact.text):
            return Written(fact, Decision(Action.NOOP, None, "purged before"))
        if fact.source_date is not None and tx.is_forgotten(fact, fact.source_date):
            return Written(fact, Decision(Action.NOOP, None, "forgotten since then"))
        decision = self.decide(tx, prepared)
        old = tx.fact(decision.target) if decision.target else None
        # What ends with the session takes the place of nothing that lasts, and does not stand for it.
        if _of_moment(fact) and decision.action is not Action.NOOP:
            decision, old = Decision(Action.ADD, None, "transient"), None
        elif old is not None and _of_moment(old) and not _of_moment(fact) and decision.action is Action.NOOP:
            decision = replace(decision, action=Action.UPDATE)
        if old is not None and decision.action is Action.NOOP:
            # Who repeats what was said on a stronger word adds nothing to it.
            weaker = strength(fact.channel) < strength(old.channel)
            return Written(old if weaker else tx.reinforce(old.id, decision.reason), decision)
        late = old is not None and fact.source_date is not None and old.effective_date > fact.source_date
        if old is not None and decision.action is Action.DELETE:
            if late:
                return Written(old, Decision(Action.NOOP, old.id, "said before the memory it would retract"))
            withdraw = forget if decision.reason == ASKED_TO_FORGET else retract
            return Written(withdraw(tx, old.id, decision.reason), decision)
        if old is not None and late and strength(old.channel) >= strength(fact.channel):
            # Turns may be captured in another order than they were said in: the later word stands.
            added = tx.add(fact, prepared.vector, decision.reason)
            tx.supersede(added.id, old.id, decision.reason)
            return Written(tx.fact(added.id), decision)
        gone = [old, *map(tx.fact, decision.twins)] if old is not None else []
        added = tx.add(_inheriting(fact, gone), prepared.vector, decision.reason)
        for each in gone:
            tx.supersede(each.id, added.id, decision.reason)
        if decision.against:
            link(tx, added.id, decision.against, "CONTRADICTS", decision.confidence)
        for outdated in decision.corrects:
            link(tx, added.id, outdated, "CORRECTS", decision.confidence)
        self._link(tx, added, prepared.near, {each.id for each in gone})
        return Written(tx.fact(added.id), decision)

    def decide(self, tx: Transaction, prepared: Prepared) -> Decision:
        """Return what would become of a fact."""
        fact, view = prepared.fact, own_view(prepared.fact, tx.now)
        if prepared.verdict is not None:
            known = by_ids(tx.connection, [prepared.verdict.target] if prepared.verdict.target else [], view)
            # What an agent had noted is the user's word once they say the same.
            if prepared.verdict.action is Action.NOOP and any(gives_way(old, fact) for old in known.values()):
                return replace(prepared.verdict, action=Action.UPDATE)
            # Between the question and its answer the target may have gone.
            if prepared.verdict.target is None or prepared.verdict.target in known:
                return permitted(fact, known.values(), prepared.verdict)
        return decide(tx.connection, fact, view, prepared.near, self._options.levels)

    def _tagged(self, fact: Fact) -> Fact:
        if fact.preserve_tags:
            return fact
        return replace(fact, tags=extract_tags(fact.text, fact.entity, self._options.tags))

    def _link(self, tx: Transaction, fact: Fact, near: Sequence[VectorHit], gone: Collection[str]) -> None:
        if not self._options.auto_link:
            return
        close = [hit for hit in near if hit.cosine >= _LINKED and hit.id not in gone]
        for hit in close[: self._options.auto_link]:
            link(tx, fact.id, hit.id, "RELATED_TO", round(min(1.0, hit.cosine), 4))


def _of_moment(fact: Fact) -> bool:
    return fact.decay_class == OF_SESSION and fact.extraction_method != "explicit"


def _inheriting(fact: Fact, gone: Sequence[Fact]) -> Fact:
    """Return a fact with what it keeps of those whose place it takes.

    Of a word as strong as its own that is the importance; a pin, which is the user's doing, of any that may come up.
    """
    equals = [old.importance for old in gone if strength(old.channel) >= strength(fact.channel)]
    twins = [old for old in gone if 0 < strength(old.channel) < strength(fact.channel)]
    pinned = fact.pinned or any(old.pinned for old in twins)
    return replace(fact, importance=max([fact.importance, *equals]), pinned=pinned)


def _near(fact: Fact, vector: StoredVector | None, index: VectorIndex | None, now: float) -> tuple[VectorHit, ...]:
    if vector is None or index is None:
        return ()
    import numpy as np

    query = np.frombuffer(vector.blob, dtype="<f4")
    return tuple(index.search(query, own_view(fact, now), CANDIDATES))


def _vectors(texts: Sequence[str], embedder: Embedder | None) -> list[StoredVector | None]:
    if embedder is None or not texts:
        return [None] * len(texts)
    try:
        return list(StoredVector.rows(embedder.embed(texts), embedder.identity.id))
    except ModelError:
        # The facts are kept without vectors; the worker gives them some later.
        return [None] * len(texts)
