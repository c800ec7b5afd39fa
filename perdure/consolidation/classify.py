"""Give memories of the category "other" a better one: by their words, else by the memories that are nearest to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from perdure.capture.describe import CategoryPatterns, describe
from perdure.capture.statements import Statement, cue_of
from perdure.index.calibrate import scaled
from perdure.index.vector_index import VectorIndex
from perdure.store.fact import Fact
from perdure.store.listing import Progress, every, no_progress
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_ids
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author

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
    """A memory that got a category."""

    id: str  # of the memory
    category: str  # its new one
    by: str  # "rules", or "neighbours" with their agreement


def classify(
    store: Store,
    audience: Audience,
    author: Author,
    *,
    pause: Callable[[], None],
    own: CategoryPatterns = (),
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Sequence[Classified]:
    """Classify what an audience may write; `undo` takes each batch of 20 back.

    `pause`: called between two batches; lets turns go first.
    """
    view = View(audience, store.clock.now())
    # The stored vectors are compared with each other, so no model is needed.
    near = (space.id, scaled(store, space)) if (space := store.space()) else None
    others = (
        fact
        for fact in every(store, view, progress, f"facts.category = '{OTHER}'")
        if audience.may_write(Scope(fact.scope, fact.scope_target))
    )
    done: list[Classified] = []
    while batch := list(islice(others, BATCH)):
        pause()
        made = (_of_rules(fact, own) or _of_neighbours(store, near, fact, view) for fact in batch)
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


def _of_neighbours(store: Store, space: tuple[str, VectorIndex] | None, fact: Fact, view: View) -> Classified | None:
    sql = "SELECT vector FROM vectors WHERE fact_id = ? AND embedding_id = ?"
    rows = store.database.query(run, sql, (fact.id, space[0])) if space else []
    if space is None or not rows:
        return None
    import numpy as np

    hits = space[1].search(np.frombuffer(rows[0][0], dtype="<f4"), view, CANDIDATES)
    near = [hit for hit in hits if hit.cosine >= MIN_COSINE and hit.id != fact.id]
    facts = store.database.query(by_ids, [hit.id for hit in near], view)
    labelled = [hit for hit in near if hit.id in facts and facts[hit.id].category != OTHER][:NEIGHBOURS]
    if len(labelled) < MIN_VOTES:
        return None
    votes: dict[str, float] = defaultdict(float)
    for hit in labelled:
        votes[facts[hit.id].category] += hit.cosine
    category = max(votes, key=lambda name: votes[name])
    share = votes[category] / sum(votes.values())
    return Classified(fact.id, category, f"neighbours ({share:.2f})") if share >= MIN_SHARE else None
