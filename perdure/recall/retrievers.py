"""What each way of finding memories brings, within the deadline."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from perdure.embed.base import Vector, Vectors
from perdure.errors import ModelError
from perdure.index.trigger_index import TriggerSurvey
from perdure.index.vector_index import Survey, all_cosines, dots
from perdure.recall.about import TRIED
from perdure.recall.entities import NOBODY, of_named
from perdure.recall.gate import NEAR
from perdure.recall.lane import Lane, Ticket
from perdure.recall.options import LEXICAL, LOOKUP, PASSAGES, TRIGGERS, VECTOR
from perdure.recall.query import Query
from perdure.recall.triggered import AIMED, met
from perdure.recall.turn import Candidate, CountTokens, Find, MissingError, Passage, Turn, VectorLeg
from perdure.store import triggers
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import AS_SET, WordIndex, by_ids, by_phrases, entities, lexical, named
from perdure.store.triggers import Trigger
from perdure.store.vocabulary import terms
from perdure.text.tokens import estimate_tokens

OF_A_KIND = 100
"""Candidates of each leg where all of a kind is asked for."""
NOT_LOADED = "the model was not loaded"
FILES = "files"
SESSIONS = "sessions"


class PassageSource(Protocol):
    """Finds passages in two halves, so that the first runs beside the embedding of the query."""

    def draft(self, query: str, audience: Audience, session: str | None) -> Any:
        """Do what needs no vector. Whatever is returned goes to `passages`; None: there is nothing to find."""

    def passages(self, draft: Any, vector: tuple[Vector, str] | None, *, agents: bool = False) -> Sequence[Passage]:
        """Return passages that are sure enough to be brought up unasked, best first.

        `vector`: of the query, with the name of its space; None: there is no model. `agents`: also what an agent said
        in conversations, for who asks for it.
        """


class Legs:
    """Searches: words and slots in the caller's thread, vectors in a lane of their own, passages in another."""

    def __init__(self, source: PassageSource | None = None, *, near: int = NEAR) -> None:
        """Find so many of the nearest for a model to judge."""
        self._source = source
        self._near = near
        self._vectors = Lane("vector-leg")
        self._passages = Lane("passage-leg")

    def search(self, turn: Turn) -> None:
        """Have the turn take what there is of facts; passages are looked for meanwhile, to be taken later."""
        most = OF_A_KIND if turn.query.kind else 0
        turn.shared = max(turn.shared, most)
        leg, source, vectors = turn.leg, None if turn.narrowed else self._source, None
        if leg is not None and not leg.breaker.open(turn.began):
            limit = max(self._near, most) if leg.gate else turn.options.candidates
            vectors = self._vectors.start(lambda: _nearest(turn, leg, limit))
        retrievers: list[tuple[str, Find]] = [
            (LEXICAL, words), (LOOKUP, slots), (VECTOR, lambda turn: meaning(turn, vectors))
        ]  # fmt: skip
        if source is not None:
            turn.elsewhere = self._passages.start(lambda: _passages(turn, source, embeds=vectors is not None))
        for name, find in retrievers:
            turn.take(name, find)
        if turn.survey is None and not turn.narrowed:
            turn.take(TRIGGERS, situations)

    def take_passages(self, turn: Turn) -> None:
        """Have the turn take the passages of its search, once they are there."""
        if self._source is not None and not turn.narrowed:
            turn.take(PASSAGES, said_elsewhere)

    def foresee(self, query: Query, leg: VectorLeg, deadline: float) -> None:
        """Have the query's vector at hand before it is searched for; returns when it is, or at the deadline."""
        began = time.monotonic()
        if leg.breaker.open(began):
            return
        ticket = self._vectors.start(lambda: leg.embedder.embed(leg.asked(query), query=True))
        if ticket is not None and ticket.result(deadline - began) is None:
            leg.embedder.interrupt()

    def close(self) -> None:
        """End the lanes' threads."""
        self._vectors.close()
        self._passages.close()


def words(turn: Turn) -> list[Candidate]:
    """Find facts that share words with the prompt."""
    index, why = _other_words(turn)
    with turn.read() as reader:
        turn.lexical = lexical(reader, turn.query.text, turn.view, _most(turn), index, why)
    return [
        Candidate(hit.fact, coverage=hit.coverage, rare=hit.rare, scores={LEXICAL: hit.score})
        for hit in turn.lexical.hits
    ]


def _other_words(turn: Turn) -> tuple[WordIndex | None, str]:
    """Return the other index of words if that is set, or why there is none."""
    if turn.options.lexical == "fts5":
        return None, AS_SET
    if turn.leg is None:
        return None, "there is no vector retriever"
    index = turn.leg.index
    return (index, AS_SET) if isinstance(index, WordIndex) else (None, "LanceDB is not used in this search")


def slots(turn: Turn) -> list[Candidate]:
    """Find facts whose slot the prompt names, or its entity alone, and by their words those of the kind asked for."""
    kind, found = turn.query.kind, [hit.fact for hit in turn.lexical.hits]
    with turn.read() as reader:
        facts = {fact.id: fact for fact in named(reader, turn.query.text, turn.view)}
        spoken_of = of_named(turn.query.text, entities(reader, turn.query.text, turn.view, NOBODY))
        if kind is not None and len(kind.words) == 1:
            found += by_phrases(reader, kind.words[0], turn.view, _most(turn))
    if kind is not None:
        facts |= {fact.id: fact for fact in found if fact.id not in facts and kind.has(fact)}
    return [
        *(Candidate(fact, named=True, scores={LOOKUP: fact.confidence}) for fact in facts.values()),
        *(Candidate(fact, spoken_of=True) for fact in spoken_of if fact.id not in facts),
    ]


def meaning(turn: Turn, ticket: Ticket[tuple[Vectors, Survey, TriggerSurvey | None]] | None) -> list[Candidate]:
    """Find the facts that are nearest, themselves or a trigger of theirs, and measure what the other legs found."""
    leg, result = turn.leg, ticket.result(turn.left) if ticket else None
    if leg is None:
        if turn.view.tag is not None:
            raise MissingError("tags are searched by keyword")
        raise MissingError(NOT_LOADED if turn.options.model else "no model, or not loaded yet")
    if ticket is None:
        raise MissingError("paused or busy")
    leg.breaker.note(ok=result is not None, now=time.monotonic())
    if result is None:
        leg.embedder.interrupt()
        raise MissingError(ticket.error or "late")
    queries, turn.survey, turn.aims = result
    turn.cosines = dict(zip(turn.survey.ids, map(tuple, turn.survey.cosines.T.tolist()), strict=True))
    named = dict.fromkeys((*turn.survey.ids, *(turn.aims.ids if turn.aims else ())))
    others = [fact_id for fact_id in (*turn.found, *named) if fact_id not in turn.cosines]
    if others:
        turn.cosines |= all_cosines(turn.store.database, queries, others, leg.embedder.identity.id)
    # An index may lag behind: what it names is a candidate only if the database says so now.
    fresh = [fact_id for fact_id in named if fact_id not in turn.found]
    facts = turn.store.database.query(by_ids, fresh, turn.view) if fresh else {}
    found = [Candidate(fact) for fact in facts.values()]
    if turn.aims is not None:
        near = [turn.found[fact_id] for fact_id in turn.aims.ids if fact_id in turn.found]
        some = {each.id: each.fact for each in (*found, *near, *turn.looked_at)}
        turn.aimed = _aimed(turn, turn.aims, leg, queries, some)
    return found


def _aimed(
    turn: Turn, aims: TriggerSurvey, leg: VectorLeg, queries: Vectors, facts: Mapping[str, Fact]
) -> dict[str, list[tuple[Trigger, float]]]:
    """Return the triggers of facts that may bring them up, each with the cosine of the part that is nearest to it."""
    import numpy as np

    space = leg.embedder.identity
    with turn.read() as reader:
        some = [trigger for found in triggers.of(reader, facts).values() for trigger in found[: aims.each]]
        counting = {each.id: each for each in some if triggers.counts(facts[each.fact_id], each)}
        blobs = triggers.vectors_of(reader, space.id, space.dims, list(counting))
    matrix = np.frombuffer(b"".join(blobs.values()), dtype="<f4").reshape(-1, space.dims)
    cosines = np.nan_to_num(np.max([dots(matrix, query) for query in queries], axis=0), posinf=0.0, neginf=0.0)
    aimed: dict[str, list[tuple[Trigger, float]]] = {}
    for name, cosine in zip(blobs, cosines.tolist(), strict=True):
        aimed.setdefault(counting[name].fact_id, []).append((counting[name], cosine))
    return aimed


def situations(turn: Turn) -> list[Candidate]:
    """Find facts by the words of their triggers: what is done where no vector answers."""
    asked = terms(turn.query.text)
    # The last letter of a stem may be another than in the word.
    beginnings = sorted({word[:-1] or word for word in asked if " " not in word})
    with turn.read() as reader:
        found = met(asked, triggers.holding(reader, beginnings))
        facts = by_ids(reader, list(found), turn.view) if found else {}
    told = ((fact, *found[fact.id]) for fact in facts.values())
    return [Candidate(fact, trigger=trigger, scores={LOOKUP: share}) for fact, share, trigger in told]


def said_elsewhere(turn: Turn) -> list[Candidate]:
    """Find passages of files and conversations."""
    ticket = turn.elsewhere
    found = ticket.result(turn.left) if ticket else None
    if ticket is None or ticket.error is not None:
        raise MissingError("busy" if ticket is None else ticket.error)
    return [Candidate(passage, passage.leg, passage.score) for passage in found or ()]


def _most(turn: Turn) -> int:
    return max(turn.options.candidates, OF_A_KIND if turn.query.kind else 0)


def _nearest(turn: Turn, leg: VectorLeg, limit: int) -> tuple[Vectors, Survey, TriggerSurvey | None]:
    """Return the vectors of the query's parts, and what they are near to."""
    import numpy as np

    try:
        vectors = leg.embedder.embed(leg.asked(turn.query), query=True)
        middle = vectors.mean(0)
        turn.agree = float(np.linalg.norm(middle))
        turn.vector = middle / max(turn.agree, 1e-6), leg.embedder.identity.id
    finally:
        # Passages need the vector alone: they are not to wait until the facts' index has been searched.
        turn.embedded.set()
    with turn.store.database.reading(deadline=turn.deadline):
        survey = leg.index.survey(vectors, turn.view, limit)
        # What triggers there were at another time is not known.
        if leg.triggers is None or turn.view.as_of is not None:
            return vectors, survey, None
        return vectors, survey, leg.triggers.survey(vectors, turn.view, 2 * AIMED, survey.seen)


def _passages(turn: Turn, source: PassageSource, *, embeds: bool) -> Sequence[Passage]:
    """Return the passages, by the query's vector too if it `embeds` in time."""
    with turn.store.database.reading(deadline=turn.deadline):
        draft = source.draft(turn.query.text, turn.view.audience, turn.session)
        if draft is None:
            return ()
        if embeds:
            turn.embedded.wait(max(0.0, turn.left))
        about = turn.query.about
        found = source.passages(draft, turn.vector, agents=about is not None and about.what == TRIED)
    turn.seconds[PASSAGES] = time.monotonic() - turn.began
    return found


def token_counter(leg: VectorLeg | None) -> CountTokens:
    """Return what counts tokens: the model's own tokenizer if there is one and it works."""

    def count(text: str) -> int:
        try:
            return leg.embedder.count_tokens(text) if leg else estimate_tokens(text)
        except ModelError:
            return estimate_tokens(text)

    return count
