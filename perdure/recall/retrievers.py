"""Step two: what each way of searching finds, within the deadline, and which of it has evidence enough."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from perdure.embed.base import Embedder, Floats, Vector, Vectors
from perdure.errors import ModelError, StoreError
from perdure.index.vector_index import Survey, Surveyor, all_cosines
from perdure.ranking.calibration import Calibration, background
from perdure.ranking.fuse import Fused, fuse
from perdure.ranking.gates import Evidence, Gate
from perdure.recall.gate import NEAR, SHARED, LearnedGate, Lexicon, Near, Prompt, rows
from perdure.recall.kind_gate import of_kind
from perdure.recall.kinds import Kind
from perdure.recall.options import LEXICAL, LOOKUP, PASSAGES, VECTOR
from perdure.recall.query import Query
from perdure.recall.slot import Breaker, Slot, Ticket
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import Lexical, LexicalHit, View, by_ids, by_phrases, lexical, named
from perdure.store.sql import Connection
from perdure.store.store import Store
from perdure.store.vocabulary import stem
from perdure.text.tokens import estimate_tokens

NO_EVIDENCE: Final = "no evidence"
"""The verdict on those that did not pass."""
NAMED: Final = 0.9
"""The least score of a memory whose slot the prompt names: that is exact, and needs no model."""
BY_WORDS: Final = 0.5
"""From this share of the prompt's words on a memory is said to be found by words."""
OF_A_KIND = 100
"""Candidates of each leg where all of a kind is asked for."""
FILES = "files"
SESSIONS = "sessions"


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that may be brought up unasked."""

    id: str  # where it stands: "memory/2026-02-24.md#L3-L9"
    leg: str  # "files" or "sessions"
    text: str  # what it says, with who said it
    about: str  # the day it is of, or the headings above it
    score: float  # 0 to 1, on one scale for all queries


class Source(Protocol):
    """Finds passages in two halves, so that the first runs beside the embedding of the query."""

    def draft(self, query: str, audience: Audience, session: str | None) -> Any:
        """Do what needs no vector. Whatever is returned goes to `passages`; None: there is nothing to find."""

    def passages(self, draft: Any, vector: tuple[Vector, str] | None) -> Sequence[Passage]:
        """Return passages that are sure enough to be brought up unasked, best first.

        `vector`: of the query, with the name of its space; None: there is no model.
        """


CountTokens = Callable[[str], int]
Brought = TypeVar("Brought")


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """An embedder, the index of its space, and how to tell whether a hit is evidence."""

    embedder: Embedder  # makes the vectors of prompts
    index: Surveyor  # of the embedder's space
    calibration: Calibration  # tells it from a cosine
    gate: LearnedGate | None = None  # tells it from all that is known, if it was fitted on this very embedder
    breaker: Breaker = field(default_factory=Breaker)  # lets the leg rest when it fails

    def asked(self, query: Query) -> list[str]:
        """Return what is embedded of a query: its parts, if the gate can tell them apart."""
        return list(query.parts) if self.gate is not None and query.parts else [query.text]


@dataclass(frozen=True, slots=True)
class Found:
    """What the legs brought."""

    facts: Mapping[str, Fact]  # every candidate, by id; each may be seen by the audience
    evidence: Mapping[str, Evidence]  # what speaks for it
    scores: Mapping[str, Mapping[str, float]]  # per leg, its raw score by id
    passages: Sequence[Passage]  # of files and conversations, best first
    floor: float | None  # cosine from which a hit is evidence for this query; None without a vector leg
    states: Mapping[str, str]  # per leg, "ok" or why it brought nothing, for the receipt
    seconds: Mapping[str, float]  # per leg, until it was through
    gate: LearnedGate | None = None  # what judged the candidates; None: their cosines and words tell
    # What it looked at, by the ids of those that it judged.
    features: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def judged(self) -> bool:
        """Whether a model judged the candidates."""
        return self.gate is not None

    def gate_at(self, threshold: float | str) -> Gate:
        """Return the gate to be passed; `threshold` is a probability, or a point of the learned gate."""
        if isinstance(threshold, str):
            threshold = self.gate.points[threshold] if self.gate else 0.0
        return Gate(self.floor if self.floor is not None else 1.0, threshold)

    def passing(self, gate: Gate) -> set[str]:
        """Return the ids of the candidates that have evidence enough."""
        return {fact_id for fact_id in self.facts if gate.verdict(self.evidence[fact_id]) is not None}

    def ranked(self, some: Set[str], weights: Mapping[str, float]) -> list[Fused]:
        """Return some of the candidates, best first: by their probability if a model judged them, else by a blend."""
        if self.judged:
            judged = [_judged(fact_id, self.evidence[fact_id]) for fact_id in some]
            return sorted(judged, key=lambda item: (-item.score, item.id))
        legs = {
            leg: {fact_id: score for fact_id, score in scores.items() if fact_id in some}
            for leg, scores in self.scores.items()
        }
        return [item for item in fuse(legs, weights) if item.id in some]


@dataclass(eq=False)
class Legs:
    """Runs the legs of a recall side by side.

    Words, slots and links in the caller's thread, vectors in a slot of their own, passages in another.
    """

    store: Store
    candidates: int  # that each leg brings at the most
    source: Source | None = None  # brings passages
    near: int = NEAR  # how many of the nearest a model judges
    shared: int = SHARED  # how many more, of those that share words

    def __post_init__(self) -> None:
        self._slot = Slot("vector-leg")
        self._passages = Slot("passage-leg")

    def search(
        self, query: Query, view: View, leg: VectorLeg | None, deadline: float, session: str | None = None
    ) -> Found:
        """Search for the query.

        `deadline`: `time.monotonic()` after which a leg is left behind.
        """
        run = _Run(self.store, query, view, deadline)
        most = OF_A_KIND if query.kind else 0
        ticket = brought = None
        if leg is not None and not leg.breaker.open(run.began):
            near = max(self.near, most)
            ticket = self._slot.start(lambda: run.nearest(leg, near if leg.gate else self.candidates))
        source = self.source if view.tag is None and view.as_of is None else None
        if source is not None:
            embeds = ticket is not None
            brought = self._passages.start(lambda: run.bring(source, query.text, session, embeds))
        run.words(query.text, max(self.candidates, most))
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
        return run.found(leg, max(self.shared, most))

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
        with self._store.database.reading(deadline=self.deadline):
            return vectors, leg.index.survey(vectors, self._view, limit)

    def bring(self, source: Source, text: str, session: str | None, embeds: bool) -> Sequence[Passage]:
        """Bring passages, by the query's vector too if it `embeds` in time."""
        with self._store.database.reading(deadline=self.deadline):
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
        """Look for facts that share words with the prompt, and for those whose slot it names."""
        view = self._view
        self._words = self._read(LEXICAL, lambda connection: lexical(connection, text, view, limit)) or self._words
        self._named = self._read(LOOKUP, lambda connection: named(connection, text, view)) or self._named
        self._named += self._of_kind(self._query.kind, limit) if self._query.kind else ()

    def _of_kind(self, kind: Kind, limit: int) -> list[Fact]:
        """Return the memories that are of a kind by their words, the newest first."""
        found = [hit.fact for hit in self._words.hits]
        if len(kind.words) == 1:
            found += self._read(LOOKUP, lambda reader: by_phrases(reader, kind.words[0], self._view, limit)) or ()
        there = {fact.id for fact in self._named}
        return [fact for fact in {each.id: each for each in found}.values() if fact.id not in there and kind.has(fact)]

    def _read(self, leg: str, look: Callable[[Connection], Brought]) -> Brought | None:
        """Return what a leg finds, and note how it went; one that the database keeps waiting brings nothing."""
        found = None
        try:
            with self._store.database.read(deadline=self.deadline) as connection:
                found = look(connection)
            self.states[leg] = "ok"
        except StoreError as error:
            self.states[leg] = type(error).__name__
        self.seconds[leg] = time.monotonic() - self.began
        return found

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
            facts |= self._store.database.query(by_ids, named, self._view)
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

            rows = np.stack(list(features.values()))
            told = gate.probabilities(rows)
            judged |= zip(features, told, strict=True)
            kind = self._query.kind
            if kind is not None and kind.own:
                for name, one in zip(features, of_kind(rows, told, bool(self._named)), strict=True):
                    # Those that have its word come first.
                    judged[name] = NAMED * max(judged[name], one) if kind.may_have(facts[name].text) else 0.0
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


def _judged(fact_id: str, evidence: Evidence) -> Fused:
    if evidence.named:
        leg, score = LOOKUP, max(NAMED, evidence.probability or 0.0)
    elif evidence.probability is None:
        leg, score = LEXICAL, evidence.coverage
    else:
        leg, score = LEXICAL if evidence.coverage >= BY_WORDS else VECTOR, evidence.probability
    return Fused(fact_id, score, {leg: score})
