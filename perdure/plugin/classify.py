"""Give memories of the category "other" the one that their words, or the memories nearest to them, have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from perdure.background.calibrate import scaled
from perdure.capture.describe import describe
from perdure.capture.statements import Statement, cue_of
from perdure.plugin.audit import Progress, every, no_progress
from perdure.store.database import run
from perdure.store.fact import Fact
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_ids
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.store.vector_index import VectorIndex

OTHER = "other"
NEIGHBOURS = 7
CANDIDATES = 40
"""So many of the nearest are looked at to find seven with a category."""
MIN_COSINE = 0.5
MIN_VOTES = 2
MIN_SHARE = 0.6
BATCH = 20


@dataclass(frozen=True, slots=True)
class Classified:
    """A memory that got a category.

    Attributes:
        id: of the memory.
        category: its new one.
        by: "rules", or "neighbours" with how sure they are.
    """

    id: str
    category: str
    by: str


def classify(
    store: Store,
    audience: Audience,
    author: Author,
    *,
    pause: Callable[[], None],
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Sequence[Classified]:
    """Classify what an audience may write; `undo` takes each batch of 20 back.

    Args:
        store: where they are.
        audience: who asks.
        author: for the journal.
        pause: called between two batches; lets turns go first.
        dry_run: only say what would be done.
        progress: called with how many of how many memories were looked at.

    Raises:
        StoreError: it could not be written; the batches before are kept.
    """
    view = View(audience, store.clock.now())
    index = _index(store)
    waiting = (
        (fact, made)
        for fact in every(store, view, progress, f"facts.category = '{OTHER}'")
        if audience.may_write(Scope(fact.scope, fact.scope_target))
        and (made := _of_rules(fact) or _of_neighbours(store, index, fact, view))
    )
    done: list[Classified] = []
    for batch in _batches(waiting):
        pause()
        done += (made for _, made in batch)
        if not dry_run:
            with store.write(author) as tx:
                for fact, made in batch:
                    # Somebody may have given it a category meanwhile.
                    if tx.fact(fact.id).category == OTHER:
                        tx.change(fact.id, "classify", {"category": made.category}, reason=made.by)
    return done


def _of_rules(fact: Fact) -> Classified | None:
    # Without a cue there is nothing that the words say for sure: "fact" is what describe falls back to.
    cue = cue_of(fact.text)
    category = describe(Statement(fact.text, cue)).category if cue else OTHER
    return None if category == OTHER else Classified(fact.id, category, "rules")


def _of_neighbours(store: Store, index: _Index | None, fact: Fact, view: View) -> Classified | None:
    vector = index.vector(store, fact.id) if index else None
    if index is None or vector is None:
        return None
    import numpy as np

    hits = index.index.search(np.frombuffer(vector, dtype="<f4"), view, CANDIDATES)
    near = [hit for hit in hits if hit.cosine >= MIN_COSINE and hit.id != fact.id]
    with store.database.read() as connection:
        facts = by_ids(connection, [hit.id for hit in near], view)
    labelled = [hit for hit in near if hit.id in facts and facts[hit.id].category != OTHER][:NEIGHBOURS]
    if len(labelled) < MIN_VOTES:
        return None
    votes: dict[str, float] = defaultdict(float)
    for hit in labelled:
        votes[facts[hit.id].category] += hit.cosine
    category = max(votes, key=lambda name: votes[name])
    share = votes[category] / sum(votes.values())
    return Classified(fact.id, category, f"neighbours ({share:.2f})") if share >= MIN_SHARE else None


@dataclass(frozen=True, slots=True)
class _Index:
    space_id: str
    index: VectorIndex

    def vector(self, store: Store, fact_id: str) -> bytes | None:
        sql = "SELECT vector FROM vectors WHERE fact_id = ? AND embedding_id = ?"
        with store.database.read() as connection:
            rows = run(connection, sql, (fact_id, self.space_id))
        return rows[0][0] if rows else None


def _index(store: Store) -> _Index | None:
    # The stored vectors are compared with each other, so no model is needed.
    space = store.space()
    return _Index(space.id, scaled(store, space)) if space else None


def _batches(pairs: Iterator[tuple[Fact, Classified]]) -> Iterator[list[tuple[Fact, Classified]]]:
    while batch := list(islice(pairs, BATCH)):
        yield batch
