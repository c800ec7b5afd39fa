"""Step two: what each way of searching finds, within the deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perdure.embed.base import Embedder
from perdure.errors import ModelError, StoreError
from perdure.index.vector_index import Surveyor, all_cosines
from perdure.ranking.calibration import Calibration, background
from perdure.ranking.gates import Evidence
from perdure.recall.features import NEAR, SHARED, Lexicon, Near, Prompt, rows
from perdure.recall.gate import LearnedGate
from perdure.recall.options import LEXICAL, LOOKUP, PASSAGES, VECTOR
from perdure.recall.query import Query
from perdure.recall.slot import Breaker, Slot, Ticket
from perdure.recall.sources import Passage, Source
from perdure.store.fact import Fact
from perdure.store.search import Lexical, LexicalHit, View, by_ids, lexical, named
from perdure.store.store import Store
from perdure.store.vocabulary import stem
from perdure.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from perdure.index.vector_index import Survey, Vector, Vectors
    from perdure.recall.features import Floats

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """An embedder, the index of its space, and how to tell whether a hit is evidence.

    Attributes:
        embedder: makes the vectors of prompts.
        index: of the embedder's space.
        calibration: tells it from a cosine.
        gate: tells it from all that is known, if it was fitted on this very embedder.
        breaker: lets the leg rest when it fails.
    """

    embedder: Embedder
    index: Surveyor
    calibration: Calibration
    gate: LearnedGate | None = None
    breaker: Breaker = field(default_factory=Breaker)

    def asked(self, query: Query) -> list[str]:
        """Return what is embedded of a query: its parts, if the gate can tell them apart."""
        return list(query.parts) if self.gate is not None and query.parts else [query.text]


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
        gate: what judged the candidates; None: their cosines and words tell.
        features: what it looked at, by the ids of those that it judged.
    """

    facts: Mapping[str, Fact]
    evidence: Mapping[str, Evidence]
    scores: Mapping[str, Mapping[str, float]]
    passages: Sequence[Passage]
    floor: float | None
    states: Mapping[str, str]
    seconds: Mapping[str, float]
    gate: LearnedGate | None = None
    features: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def judged(self) -> bool:
        """Whether a model judged the candidates."""
        return self.gate is not None


class Legs:
    """Runs the legs of a recall side by side.

    Words, slots and links in the caller's thread, vectors in a slot of their own, passages in another.
    """

    def __init__(
        self, store: Store, candidates: int, source: Source | None = None, near: int = NEAR, shared: int = SHARED
    ) -> None:
        """Search in a store.

        Args:
            store: where the facts are.
            candidates: what each leg brings at the most.
            source: brings passages.
            near: how many of the nearest a model judges.
            shared: how many more, of those that share words.
        """
        self._near, self._shared = near, shared
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
        run = _Run(self._store, query, view, deadline)
        ticket = brought = None
        if leg is not None and not leg.breaker.open(run.began):
            ticket = self._slot.start(lambda: run.nearest(leg, self._near if leg.gate else self._candidates))
        source = self._source if view.tag is None and view.as_of is None else None
        if source is not None:
            embeds = ticket is not None
            brought = self._passages.start(lambda: run.bring(source, query.text, session, embeds))
        run.words(query.text, self._candidates)
        run.slots(query.text)
        if leg is None:
            run.states[VECTOR] = "no model, or none yet"
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
        return run.found(leg, self._shared)

    def foresee(self, query: Query, leg: VectorLeg, deadline: float) -> None:
        """Have the query's vector at hand before it is searched for; returns when it is, or at the deadline."""
        began = time.monotonic()
        if leg.breaker.open(began):
            return
        ticket = self._slot.start(lambda: leg.embedder.embed(leg.asked(query), query=True))
        if ticket is not None and ticket.result(deadline - began) is None:
            leg.embedder.interrupt()

    def close(self) -> None:
        """End the slots' threads."""
        self._slot.close()
        self._passages.close()


class _Run:
    """One search, while it is put together."""

    def __init__(self, store: Store, query: Query, view: View, deadline: float) -> None:
        self.began = time.monotonic()
        self.states: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.deadline = deadline
        self.passages: Sequence[Passage] = ()
        self._query_vector: tuple[Vector, str] | None = None
        self._embedded = threading.Event()
        self._store = store
        self._query = query
        self._view = view
        self._words = Lexical((), {}, {})
        self._named: list[Fact] = []
        self._survey: Survey | None = None
        self._agree = 1.0
        self._cosines: dict[str, tuple[float, ...]] = {}

    def nearest(self, leg: VectorLeg, limit: int) -> tuple[Vectors, Survey]:
        """Return the vectors of the query's parts, and what they are near to."""
        import numpy as np

        try:
            vectors = leg.embedder.embed(leg.asked(self._query), query=True)
            middle = vectors.mean(0)
            self._agree = float(np.linalg.norm(middle))
            self._query_vector = middle / max(self._agree, 1e-6), leg.embedder.identity.id
        finally:
            # Passages need the vector alone: they are not to wait until the facts' index has been searched.
            self._embedded.set()
        return vectors, leg.index.survey(vectors, self._view, limit)

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
                self._words = lexical(connection, text, self._view, limit)
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

    def vectors(self, queries: Vectors, survey: Survey, leg: VectorLeg) -> None:
        """Take the vector leg's survey, and measure what the other legs found with the same vectors."""
        self._survey = survey
        self._cosines = dict(zip(survey.ids, map(tuple, survey.cosines.T.tolist()), strict=True))
        found = [*(hit.fact.id for hit in self._words.hits), *(fact.id for fact in self._named)]
        others = [fact_id for fact_id in dict.fromkeys(found) if fact_id not in self._cosines]
        if others:
            self._cosines |= all_cosines(self._store.database, queries, others, leg.embedder.identity.id)
        self.states[VECTOR] = "ok"
        self.seconds[VECTOR] = time.monotonic() - self.began

    def found(self, leg: VectorLeg | None, shared: int) -> Found:
        facts = {hit.fact.id: hit.fact for hit in self._words.hits} | {fact.id: fact for fact in self._named}
        # An index may lag behind: what it names is a candidate only if the database says so now.
        nearest = self._survey.ids if self._survey else ()
        named = [fact_id for fact_id in nearest if fact_id not in facts]
        if named:
            with self._store.database.read() as connection:
                facts |= by_ids(connection, named, self._view)
        gate = leg.gate if leg and self._survey else None
        common = leg.calibration.common if leg and not gate else lambda cosine: cosine
        best = {fact_id: common(max(row)) for fact_id, row in self._cosines.items()}
        near = [best[fact_id] for fact_id in nearest]
        # What counts in the blend is how far a hit stands out from the query's background.
        behind = background(near)
        by_words = {hit.fact.id: hit for hit in self._words.hits}
        features = self._features(facts, shared) if gate else {}
        judged = dict.fromkeys((fact_id for fact_id in facts if fact_id in best), 0.0) if gate else {}
        if gate and features:
            import numpy as np

            judged |= zip(features, gate.probabilities(np.stack(list(features.values()))), strict=True)
        # A fact that has no vector yet, as when it was stored before the model was there, goes by words.
        evidence = {
            fact_id: self._evidence(fact_id, best.get(fact_id), by_words.get(fact_id), judged.get(fact_id))
            for fact_id in facts
        }
        scores = {
            LEXICAL: {fact_id: hit.score for fact_id, hit in by_words.items()},
            VECTOR: {fact_id: cosine - behind for fact_id, cosine in best.items() if fact_id in facts},
            LOOKUP: {fact.id: fact.confidence for fact in self._named},
        }
        floor = leg.calibration.floor(near) if leg and self._survey and not gate else None
        return Found(facts, evidence, scores, self.passages, floor, self.states, self.seconds, gate, features)

    def _features(self, facts: Mapping[str, Fact], shared: int) -> dict[str, Floats]:
        """Return what the gate looks at, by id: of the nearest, of those that share words, and of the named."""
        import numpy as np

        survey, words = self._survey, self._words
        if survey is None:
            return {}
        chosen = dict.fromkeys(fact_id for fact_id in survey.ids if fact_id in facts)
        others = [hit for hit in words.hits if hit.fact.id not in chosen]
        others.sort(key=lambda hit: -hit.coverage)
        chosen |= dict.fromkeys(hit.fact.id for hit in others[:shared])
        chosen |= dict.fromkeys(fact.id for fact in self._named)
        ids = [fact_id for fact_id in chosen if fact_id in self._cosines]
        if not ids:
            return {}
        cosines = np.array([self._cosines[fact_id] for fact_id in ids], dtype=np.float32).T
        documents = {stem(term): count for term, count in words.counts.items()}
        lexicon = Lexicon(max(1, survey.texts), documents, {stem(term): known for term, known in words.meant.items()})
        near = Near.of(cosines, survey.totals, survey.squares, survey.count, self._agree)
        prompt = Prompt(self._query.text, self._query.parts or (self._query.text,))
        return dict(zip(ids, rows(prompt, lexicon, near, [facts[fact_id].text for fact_id in ids]), strict=True))

    def _evidence(
        self, fact_id: str, cosine: float | None, hit: LexicalHit | None, probability: float | None
    ) -> Evidence:
        named = any(fact.id == fact_id for fact in self._named)
        return Evidence(cosine, hit.coverage if hit else 0.0, hit.rare if hit else False, named, probability)


def token_counter(leg: VectorLeg | None) -> CountTokens:
    """Return what counts tokens: the model's own tokenizer if there is one and it works."""

    def count(text: str) -> int:
        try:
            return leg.embedder.count_tokens(text) if leg else estimate_tokens(text)
        except ModelError:
            return estimate_tokens(text)

    return count
