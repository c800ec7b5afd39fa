"""Explicit search of all memories that the caller may read; those that never come up unasked are marked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perdure.engine.composing import recall_options
from perdure.engine.engine import Engine
from perdure.errors import InputError
from perdure.index.vector_index import Survey, VectorHit, scan, surveyed
from perdure.recall.aliases import spelled
from perdure.recall.judge import judge_of
from perdure.recall.kinds import kind_named
from perdure.recall.query import understand
from perdure.recall.retrievers import Legs
from perdure.recall.turn import Turn
from perdure.store.aliases import Names, naming
from perdure.store.fact import Fact
from perdure.store.listing import Chosen, Filter, check_page
from perdure.store.search import View
from perdure.store.store import Store
from perdure.store.trust import AGENTS_NOTE, AUTO_RECALLED
from perdure.text.timestamps import Dated

if TYPE_CHECKING:
    from perdure.embed.base import Vector, Vectors

PATIENCE = 10.0
"""Seconds for the retrievers of a search: no turn waits for it."""
POOL = 3
"""Candidates of each leg for each result asked for."""


@dataclass(frozen=True, slots=True, repr=False)
class Hit(Dated):
    """A memory that a search found.

    Attributes:
        fact: the memory.
        score: 0 to 1, comparable within one search.
        leg: the retriever that ranked it highest: "sqlite" (keyword), "lance" (semantic) or "lookup" (slot).
        cosine: similarity of its vector to the query's; None without a model.
        coverage: share of the query's weighted words that it contains, 0 to 1.
        marks: why it would not come up unasked, such as "import" or "pending".
    """

    fact: Fact
    score: float
    leg: str
    cosine: float | None
    coverage: float
    marks: tuple[str, ...]

    @property
    def id(self) -> str:
        """The memory's id."""
        return self.fact.id


@dataclass(frozen=True, slots=True)
class _Scan:
    """A vector index that heeds every part of a view, a filter included; exact, and slower than the others."""

    store: Store
    space: str

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        return scan(self.store.database, self.space, query, view, limit)

    def survey(self, queries: Vectors, view: View, limit: int) -> Survey:
        return surveyed(self.store.database, self.space, self, queries, view, limit)

    def close(self) -> None:
        """Nothing is held."""


def search_facts(engine: Engine, view: View, query: str, chosen: Filter, limit: int) -> Sequence[Hit]:
    """Return the memories that share words with a query or are closest to it in meaning, best first.

    No minimum of evidence applies: whoever searches can judge the results.

    Args:
        engine: of the store.
        view: what the caller may read.
        query: what to search for.
        chosen: only these memories.
        limit: maximum number of results.

    Raises:
        InputError: the query is empty, or the limit out of range.
    """
    check_page(limit)
    asked = understand(query)
    if not asked.text:
        raise InputError("the query is empty; give a query, or list instead")
    narrow = Chosen(view.audience, view.now, view.as_of, view.include_superseded, view.tag, chosen=chosen)
    # What does not fit is refused here, and not in a leg's thread.
    narrow.sql(engine.store.database.dialect)
    asked = replace(asked, kind=asked.kind or kind_named(query))
    asked = spelled(asked, Names.of(engine.store.database.query(naming, view.audience, view.now)))
    leg = engine.model.leg()
    if leg is not None and (chosen != Filter() or view.tag is not None):
        leg = replace(leg, index=_Scan(engine.store, leg.embedder.identity.id))
    pool = POOL * limit
    options = replace(recall_options(engine.settings), candidates=pool)
    turn = Turn(engine.store, options, asked, narrow, leg, time.monotonic() + PATIENCE, shared=pool)
    with closing(Legs(near=pool)) as legs:
        legs.search(turn)
    ranked = judge_of(turn).ranked(turn.facts)
    found = [each for each in ranked if chosen.holds(each.fact)]
    return [
        Hit(each.fact, each.score, each.leg, each.cosine, each.coverage, marks(each.fact)) for each in found[:limit]
    ]


def marks(fact: Fact) -> tuple[str, ...]:
    """Return why a memory would not come up unasked."""
    found = []
    if fact.channel not in AUTO_RECALLED:
        found.append(fact.channel.value)
    if fact.channel in AGENTS_NOTE:
        found.append("agent's note")
    if fact.review_state != "approved":
        found.append(fact.review_state)
    if fact.superseded_at is not None:
        found.append("former version")
    return tuple(found)
