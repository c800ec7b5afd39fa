"""Give memories of the category "other" a better one.

A language model is asked, where one is set; without an answer the words of a memory decide, and then the memories that
are nearest to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from perdure.capture.describe import CategoryPatterns, describe
from perdure.capture.statements import Statement, cue_of
from perdure.consolidation.category_model import CategoryModel
from perdure.index.calibrate import scaled
from perdure.index.vector_index import VectorIndex
from perdure.llm import Asker
from perdure.store.fact import CATEGORIES, Fact
from perdure.store.listing import Progress, every, no_progress
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_ids
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author

OTHER = "other"
MODEL = "language model"
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
        by: "language model", "rules", or "neighbours" with how sure they are.
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
    own: CategoryPatterns = (),
    llm: Asker | None = None,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Sequence[Classified]:
    """Classify what an audience may write; `undo` takes each batch of 20 back.

    Args:
        store: where they are.
        audience: who asks.
        author: for the journal.
        pause: called between two batches; lets turns go first.
        own: configured categories.
        llm: is asked first, about each memory once; None, or if it fails: the rules alone.
        dry_run: only say what would be done.
        progress: called with how many of how many memories were looked at.

    Raises:
        StoreError: it could not be written; the batches before are kept.
    """
    view = View(audience, store.clock.now())
    index = _index(store)
    known = dict.fromkeys([*CATEGORIES, *(name for name, _ in own)])
    model = CategoryModel(store, llm, audience.home, [name for name in known if name != OTHER])
    others = (
        fact
        for fact in every(store, view, progress, f"facts.category = '{OTHER}'")
        if audience.may_write(Scope(fact.scope, fact.scope_target))
    )
    done: list[Classified] = []
    while batch := list(islice(others, BATCH)):
        pause()
        told = model.categories(batch, keep=not dry_run)
        made = [
            Classified(fact.id, told[fact.id], MODEL)
            if fact.id in told
            else _of_rules(fact, own) or _of_neighbours(store, index, fact, view)
            for fact in batch
        ]
        found = [each for each in made if each is not None]
        done += found
        if found and not dry_run:
            _write(store, author, found)
    return done


def _write(store: Store, author: Author, found: Sequence[Classified]) -> None:
    with store.write(author) as tx:
        for each in found:
            # Somebody may have given it a category meanwhile.
            if tx.fact(each.id).category == OTHER:
                tx.change(each.id, "classify", {"category": each.category}, reason=each.by)


def _of_rules(fact: Fact, own: CategoryPatterns) -> Classified | None:
    # Without a cue there is nothing that the words say for sure: "fact" is what describe falls back to.
    cue = cue_of(fact.text)
    category = next((name for name, pattern in own if pattern.search(fact.text)), None)
    category = category or (describe(Statement(fact.text, cue)).category if cue else OTHER)
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
