"""What each way of finding memories brings, within the deadline."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, Protocol

from perdure.embed.base import Vector, Vectors
from perdure.errors import ModelError
from perdure.index.vector_index import Survey, all_cosines
from perdure.recall.aliases import bridging
from perdure.recall.gate import NEAR, SHARED
from perdure.recall.judge import judge_of
from perdure.recall.options import DATES, DIRECTIVE, LEXICAL, LINKS, LOOKUP, PASSAGES, PROFILE, VECTOR
from perdure.recall.query import Query
from perdure.recall.slot import Slot, Ticket
from perdure.recall.turn import Candidate, CountTokens, Judge, MissingError, Passage, Turn, VectorLeg
from perdure.recall.unasked import Profile, colliding, facts_of, matching, reread, standing
from perdure.store.links import related
from perdure.store.scope import Audience
from perdure.store.search import by_ids, by_phrases, lexical, named
from perdure.text.tokens import estimate_tokens

NO_EVIDENCE: Final = "no evidence"
"""The verdict on those that did not pass."""
OF_A_KIND = 100
"""Candidates of each leg where all of a kind is asked for."""
LINKED = 3
LINK_SHARE = 0.5
"""So many facts that links lead to come up, each with this share of the score for every step."""
NOT_FOLLOWED = frozenset({"SUPERSEDES", "CONTRADICTS", "CORRECTS"})
FILES = "files"
SESSIONS = "sessions"


class Source(Protocol):
    """Finds passages in two halves, so that the first runs beside the embedding of the query."""

    def draft(self, query: str, audience: Audience, session: str | None) -> Any:
        """Do what needs no vector. Whatever is returned goes to `passages`; None: there is nothing to find."""

    def passages(self, draft: Any, vector: tuple[Vector, str] | None) -> Sequence[Passage]:
        """Return passages that are sure enough to be brought up unasked, best first.

        `vector`: of the query, with the name of its space; None: there is no model.
        """


class Legs:
    """Searches: words and slots in the caller's thread, vectors in a slot of their own, passages in another."""

    def __init__(self, source: Source | None = None, *, near: int = NEAR, shared: int = SHARED) -> None:
        """Have a model judge so many of the nearest, and so many more of those that share words."""
        self._source = source
        self._near = near
        self._shared = shared
        self._vectors = Slot("vector-leg")
        self._passages = Slot("passage-leg")

    def search(self, turn: Turn) -> Judge:
        """Search for what a turn asks, and return what judges it; what the legs found stands in the turn."""
        most = OF_A_KIND if turn.query.kind else 0
        turn.shared = max(self._shared, most)
        vectors = self._begun(turn, max(self._near, most))
        passages = self._brought(turn, embeds=vectors is not None)
        turn.take(LEXICAL, words)
        turn.take(LOOKUP, slots)
        turn.take(VECTOR, lambda turn: meaning(turn, vectors))
        if self._source is not None and turn.view.tag is None and turn.view.as_of is None:
            turn.take(PASSAGES, lambda turn: said_elsewhere(turn, passages))
        return judge_of(turn)

    def foresee(self, query: Query, leg: VectorLeg, deadline: float) -> None:
        """Have the query's vector at hand before it is searched for; returns when it is, or at the deadline."""
        began = time.monotonic()
        if leg.breaker.open(began):
            return
        ticket = self._vectors.start(lambda: leg.embedder.embed(leg.asked(query), query=True))
        if ticket is not None and ticket.result(deadline - began) is None:
            leg.embedder.interrupt()

    def close(self) -> None:
        """End the slots' threads."""
        self._vectors.close()
        self._passages.close()

    def _begun(self, turn: Turn, near: int) -> Ticket[tuple[Vectors, Survey]] | None:
        """Have the query embedded, and what it is near to looked for, unless the leg rests or is busy."""
        leg = turn.leg
        if leg is None or leg.breaker.open(turn.began):
            return None
        limit = near if leg.gate else turn.options.candidates
        return self._vectors.start(lambda: _nearest(turn, leg, limit))

    def _brought(self, turn: Turn, *, embeds: bool) -> Ticket[Sequence[Passage]] | None:
        source = self._source
        if source is None or turn.view.tag is not None or turn.view.as_of is not None:
            return None
        return self._passages.start(lambda: _passages(turn, source, embeds))


def words(turn: Turn) -> list[Candidate]:
    """Find facts that share words with the prompt."""
    with turn.read() as reader:
        turn.lexical = lexical(reader, turn.query.text, turn.view, _most(turn))
    return [
        Candidate(hit.fact, coverage=hit.coverage, rare=hit.rare, scores={LEXICAL: hit.score})
        for hit in turn.lexical.hits
    ]


def slots(turn: Turn) -> list[Candidate]:
    """Find facts whose slot the prompt names, and by their words those of the kind that it asks for."""
    kind, found = turn.query.kind, [hit.fact for hit in turn.lexical.hits]
    with turn.read() as reader:
        facts = {fact.id: fact for fact in named(reader, turn.query.text, turn.view)}
        if kind is not None and len(kind.words) == 1:
            found += by_phrases(reader, kind.words[0], turn.view, _most(turn))
    if kind is not None:
        facts |= {fact.id: fact for fact in found if fact.id not in facts and kind.has(fact)}
    return [Candidate(fact, named=True, scores={LOOKUP: fact.confidence}) for fact in facts.values()]


def meaning(turn: Turn, ticket: Ticket[tuple[Vectors, Survey]] | None) -> list[Candidate]:
    """Find the facts that are nearest, and measure with the same vectors what the other legs found."""
    leg, result = turn.leg, ticket.result(turn.left) if ticket else None
    if leg is None:
        raise MissingError("no model, or none yet")
    if ticket is None:
        raise MissingError("resting or busy")
    leg.breaker.note(ok=result is not None, now=time.monotonic())
    if result is None:
        leg.embedder.interrupt()
        raise MissingError(ticket.error or "late")
    queries, turn.survey = result
    turn.cosines = dict(zip(turn.survey.ids, map(tuple, turn.survey.cosines.T.tolist()), strict=True))
    others = [fact_id for fact_id in turn.found if fact_id not in turn.cosines]
    if others:
        turn.cosines |= all_cosines(turn.store.database, queries, others, leg.embedder.identity.id)
    # An index may lag behind: what it names is a candidate only if the database says so now.
    fresh = [fact_id for fact_id in turn.survey.ids if fact_id not in turn.found]
    facts = turn.store.database.query(by_ids, fresh, turn.view) if fresh else {}
    return [Candidate(fact) for fact in facts.values()]


def said_elsewhere(turn: Turn, ticket: Ticket[Sequence[Passage]] | None) -> list[Candidate]:
    """Find passages of files and conversations."""
    found = ticket.result(turn.left) if ticket else None
    if ticket is None or ticket.error is not None:
        raise MissingError("busy" if ticket is None else ticket.error)
    return [Candidate(passage, passage.leg, passage.score) for passage in found or ()]


def directed(turn: Turn) -> list[Candidate]:
    """Find what the prompt's directives bring up, whatever a search finds."""
    wanted = matching(turn.options.directives, frozenset(turn.query.terms), turn.query.text, turn.first)
    if not wanted or turn.view.tag is not None:
        return []
    with turn.read() as reader:
        facts = {fact.id: fact for each in wanted for fact in facts_of(reader, each, turn.view)}
    return [Candidate(fact, DIRECTIVE, 1.0) for fact in facts.values()]


def dated(turn: Turn) -> list[Candidate]:
    """Find what stands on a day that the prompt names."""
    if turn.view.tag is not None or turn.view.as_of is not None:
        return []
    with turn.read() as reader:
        found = colliding(reader, turn.query.text, turn.view, turn.store.zone)
    return [Candidate(fact, DATES) for fact in found]


def linked(turn: Turn) -> list[Candidate]:
    """Find facts that links lead to from those that come up."""
    if not turn.ranked or not turn.options.link_depth or turn.view.tag is not None:
        return []
    seeds = {each.id: each.score for each in turn.ranked}
    with turn.read() as reader:
        reached = related(reader, seeds, turn.view, turn.options.link_depth)
    best = max(seeds.values())
    found = [
        Candidate(each.fact, LINKS, best * each.link.strength * LINK_SHARE**each.depth)
        for each in reached
        if each.link.type not in NOT_FOLLOWED
        and (each.fact.id not in turn.found or turn.found[each.fact.id].verdict == NO_EVIDENCE)
    ]
    return sorted(found, key=lambda each: (-each.score, each.id))[:LINKED]


def bridging_names(turn: Turn) -> list[Candidate]:
    """Find what links the names in a prompt with those in what answers it, where only these are."""
    ids = bridging((each.memory.text for each in (*turn.ranked, *turn.passages)), turn.query.aliases)
    if not ids:
        return []
    with turn.read() as reader:
        return [Candidate(fact, LINKS) for fact in by_ids(reader, ids, turn.view).values()]


def kept_in_mind(turn: Turn, profile: Profile) -> list[Candidate]:
    """Find what is kept in mind whatever is asked."""
    options, view = turn.options, turn.view
    if options.profile == "off" or view.tag is not None or view.as_of is not None:
        return []
    with turn.read() as reader:
        ids = profile.for_session(
            f"{view.audience.home}\0{turn.session}" if turn.session else None,
            lambda: [
                fact
                for fact in standing(reader, view, options.profile_limit)
                if fact.pinned or turn.opening or options.profile == "standing"
            ],
        )
        return [Candidate(fact, PROFILE, 1.0) for fact in reread(reader, ids, view)]


def _most(turn: Turn) -> int:
    return max(turn.options.candidates, OF_A_KIND if turn.query.kind else 0)


def _nearest(turn: Turn, leg: VectorLeg, limit: int) -> tuple[Vectors, Survey]:
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
        return vectors, leg.index.survey(vectors, turn.view, limit)


def _passages(turn: Turn, source: Source, embeds: bool) -> Sequence[Passage]:
    """Return the passages, by the query's vector too if it `embeds` in time."""
    with turn.store.database.reading(deadline=turn.deadline):
        draft = source.draft(turn.query.text, turn.view.audience, turn.session)
        if draft is None:
            return ()
        if embeds:
            turn.embedded.wait(max(0.0, turn.left))
        found = source.passages(draft, turn.vector)
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
