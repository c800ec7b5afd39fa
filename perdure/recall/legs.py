"""Step two: what each way of searching finds, within the deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perdure.embed.base import Embedder
from perdure.errors import StoreError
from perdure.index.vector_index import VectorHit, VectorIndex, cosines
from perdure.ranking.calibration import Calibration, background
from perdure.ranking.gates import Evidence
from perdure.recall.options import LEXICAL, LOOKUP, PASSAGES, VECTOR
from perdure.recall.query import Query
from perdure.recall.slot import Breaker, Slot, Ticket
from perdure.recall.sources import Passage, Source
from perdure.store.fact import Fact
from perdure.store.search import LexicalHit, View, by_ids, lexical, named
from perdure.store.store import Store

if TYPE_CHECKING:
    from perdure.index.vector_index import Vector


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """An embedder, the index of its space, and how to tell from a cosine whether a hit is evidence."""

    embedder: Embedder
    index: VectorIndex
    calibration: Calibration
    breaker: Breaker = field(default_factory=Breaker)


@dataclass(frozen=True, slots=True)
class Found:
    """What the legs brought.

    Attributes:
        facts: every candidate, by id; each may be seen by the audience.
        evidence: what speaks for it.
        scores: per leg, its raw score by id.
        passages: of files and conversations, best first.
        floor: cosine from which a hit is evidence for this query; None without a vector leg.
        states: per leg, "ok" or why it brought nothing, for the receipt.
        seconds: per leg, until it was through.
    """

    facts: Mapping[str, Fact]
    evidence: Mapping[str, Evidence]
    scores: Mapping[str, Mapping[str, float]]
    passages: Sequence[Passage]
    floor: float | None
    states: Mapping[str, str]
    seconds: Mapping[str, float]


class Legs:
    """Runs the legs of a recall side by side.

    Words, slots and links in the caller's thread, vectors in a slot of their own, passages in another.
    """

    def __init__(self, store: Store, candidates: int, source: Source | None = None) -> None:
        """Search in `store`; each leg brings up to `candidates` facts. `source` brings passages."""
        self._store = store
        self._candidates = candidates
        self._source = source
        self._slot = Slot("vector-leg")
        self._passages = Slot("passage-leg")

    def search(
        self, query: Query, view: View, leg: VectorLeg | None, deadline: float, session: str | None = None
    ) -> Found:
        """Search for the query.

        Args:
            query: what is asked.
            view: what may be seen.
            leg: the vector leg, or None to go by words alone.
            deadline: `time.monotonic()` after which a leg is left behind.
            session: the conversation that is going on.
        """
        run = _Run(self._store, view, deadline)
        ticket = brought = None
        if leg is not None and not leg.breaker.open(run.began):
            ticket = self._slot.start(lambda: run.nearest(leg, query.text, self._candidates))
        source = self._source if view.tag is None and view.as_of is None else None
        if source is not None:
            embeds = ticket is not None
            brought = self._passages.start(lambda: run.bring(source, query.text, session, embeds))
        run.words(query.text, self._candidates)
        run.slots(query.text)
        if leg is None:
            run.states[VECTOR] = "off"
        elif ticket is None:
            run.states[VECTOR] = "resting or busy"
        else:
            result = ticket.result(deadline - time.monotonic())
            leg.breaker.note(ok=result is not None, now=time.monotonic())
            if result is None:
                run.states[VECTOR] = ticket.error or "late"
                leg.embedder.interrupt()
            else:
                run.vectors(*result, leg)
        if source is not None:
            run.take(brought)
        return run.found(leg.calibration if leg else None)

    def foresee(self, query: Query, leg: VectorLeg, deadline: float) -> None:
        """Have the query's vector at hand before it is searched for; returns when it is, or at the deadline."""
        began = time.monotonic()
        if leg.breaker.open(began):
            return
        ticket = self._slot.start(lambda: leg.embedder.embed([query.text], query=True))
        if ticket is not None and ticket.result(deadline - began) is None:
            leg.embedder.interrupt()

    def close(self) -> None:
        """End the slots' threads."""
        self._slot.close()
        self._passages.close()


class _Run:
    """One search, while it is put together."""

    def __init__(self, store: Store, view: View, deadline: float) -> None:
        self.began = time.monotonic()
        self.states: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.deadline = deadline
        self.passages: Sequence[Passage] = ()
        self._query_vector: tuple[Vector, str] | None = None
        self._embedded = threading.Event()
        self._store = store
        self._view = view
        self._hits: list[LexicalHit] = []
        self._named: list[Fact] = []
        self._near: list[VectorHit] | None = None
        self._cosines: dict[str, float] = {}

    def nearest(self, leg: VectorLeg, text: str, limit: int) -> tuple[Vector, list[VectorHit]]:
        try:
            vector = leg.embedder.embed([text], query=True)[0]
            self._query_vector = vector, leg.embedder.identity.id
        finally:
            # Passages need the vector alone: they are not to wait until the facts' index has been searched.
            self._embedded.set()
        return vector, leg.index.search(vector, self._view, limit)

    def bring(self, source: Source, text: str, session: str | None, embeds: bool) -> Sequence[Passage]:
        """Bring passages, by the query's vector too if it `embeds` in time."""
        draft = source.draft(text, self._view.audience, session)
        if draft is None:
            return ()
        if embeds:
            self._embedded.wait(max(0.0, self.deadline - time.monotonic()))
        found = source.passages(draft, self._query_vector)
        self.seconds[PASSAGES] = time.monotonic() - self.began
        return found

    def take(self, brought: Ticket[Sequence[Passage]] | None) -> None:
        """Take the passages, if they are there in time."""
        if brought is None:
            self.states[PASSAGES] = "busy"
            return
        self.passages = brought.result(self.deadline - time.monotonic()) or ()
        self.states[PASSAGES] = brought.error or "ok"

    def words(self, text: str, limit: int) -> None:
        try:
            with self._store.database.read(deadline=self.deadline) as connection:
                self._hits = lexical(connection, text, self._view, limit)
            self.states[LEXICAL] = "ok"
        except StoreError as error:
            self.states[LEXICAL] = type(error).__name__
        self.seconds[LEXICAL] = time.monotonic() - self.began

    def slots(self, text: str) -> None:
        """Look for facts whose slot the prompt names."""
        try:
            with self._store.database.read(deadline=self.deadline) as connection:
                self._named = named(connection, text, self._view)
            self.states[LOOKUP] = "ok"
        except StoreError as error:
            self.states[LOOKUP] = type(error).__name__
        self.seconds[LOOKUP] = time.monotonic() - self.began

    def vectors(self, query: Vector, near: list[VectorHit], leg: VectorLeg) -> None:
        """Take the vector leg's hits, and measure those of the other legs with the same vector."""
        common = leg.calibration.common
        self._near = [VectorHit(hit.id, common(hit.cosine)) for hit in near]
        self._cosines = {hit.id: hit.cosine for hit in self._near}
        found = [*(hit.fact.id for hit in self._hits), *(fact.id for fact in self._named)]
        others = [fact_id for fact_id in dict.fromkeys(found) if fact_id not in self._cosines]
        if others:
            measured = cosines(self._store.database, query, others, leg.embedder.identity.id)
            self._cosines |= {fact_id: common(cosine) for fact_id, cosine in measured.items()}
        self.states[VECTOR] = "ok"
        self.seconds[VECTOR] = time.monotonic() - self.began

    def found(self, calibration: Calibration | None) -> Found:
        facts = {hit.fact.id: hit.fact for hit in self._hits} | {fact.id: fact for fact in self._named}
        # An index may lag behind: what it names is a candidate only if the database says so now.
        named = [hit.id for hit in self._near or () if hit.id not in facts]
        if named:
            with self._store.database.read() as connection:
                facts |= by_ids(connection, named, self._view)
        by_words = {hit.fact.id: hit for hit in self._hits}
        near = [hit.cosine for hit in self._near or ()]
        # What counts in the blend is how far a hit stands out from the query's background.
        behind = background(near)
        return Found(
            facts,
            {fact_id: self._evidence(fact_id, by_words.get(fact_id)) for fact_id in facts},
            {
                LEXICAL: {fact_id: hit.score for fact_id, hit in by_words.items()},
                VECTOR: {fact_id: value - behind for fact_id, value in self._cosines.items() if fact_id in facts},
                LOOKUP: {fact.id: fact.confidence for fact in self._named},
            },
            self.passages,
            calibration.floor(near) if calibration and self._near is not None else None,
            self.states,
            self.seconds,
        )

    def _evidence(self, fact_id: str, hit: LexicalHit | None) -> Evidence:
        # A fact that has no vector yet, as when it was stored before the model was there, goes by words.
        cosine = self._cosines.get(fact_id) if self._near is not None else None
        named = any(fact.id == fact_id for fact in self._named)
        return Evidence(cosine, hit.coverage if hit else 0.0, hit.rare if hit else False, named)
