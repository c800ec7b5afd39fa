"""One recall while it is put together: what is asked, and every memory from what finds it to its line in the block."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

from perdure.embed.base import Embedder, Floats, Vector
from perdure.errors import PerdureError, StoreError
from perdure.hooks.types import RecallItem
from perdure.index.trigger_index import TriggerIndex, TriggerSurvey
from perdure.index.vector_index import Survey, Surveyor
from perdure.ranking.calibration import Calibration
from perdure.recall.expand import OFF, Expansion
from perdure.recall.gate import SHARED, LearnedGate
from perdure.recall.lane import Breaker, Ticket
from perdure.recall.options import RecallOptions
from perdure.recall.query import Query
from perdure.store.fact import Fact
from perdure.store.search import Lexical, View
from perdure.store.sql import Connection
from perdure.store.store import Store
from perdure.store.triggers import Trigger

_Found = TypeVar("_Found")
CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that may be brought up unasked."""

    id: str  # where it stands: "memory/2026-02-24.md#L3-L9"
    leg: str  # "files" or "sessions"
    text: str  # what it says, with who said it
    about: str  # the day it is of, or the headings above it
    score: float  # 0 to 1, on one scale for all queries
    at: float | None = None  # when it was said, epoch seconds
    said: str = ""  # the text alone, as it was said


@dataclass(eq=False, slots=True)
class Candidate:
    """A memory that may come up: what found it, what speaks for it, and what became of it."""

    memory: Fact | Passage
    leg: str = ""  # what found it best
    score: float = 0.0  # 0 to 1, how well it fits
    verdict: str = ""  # "injected" or what it failed at; empty: nothing has spoken against it so far
    cosine: float | None = None  # between its vector and the query's; None: no vector
    coverage: float = 0.0  # share of the query's weighted words that it holds, 0 to 1
    rare: bool = False  # whether one of these words is rare in the store
    named: bool = False  # whether the prompt names the slot that it fills, entity and key
    spoken_of: bool = False  # whether it names the entity of that slot
    # Which brings it up, or is nearer to the prompt than it is: the nearest of its own, without vectors by their words.
    trigger: Trigger | None = None
    in_sight: bool = False  # whether it was said in this conversation, and the model still sees that
    probability: float | None = None  # that it helps, 0 to 1; None: no model can tell
    features: Floats | None = None  # by which a model tells
    scores: dict[str, float] = field(default_factory=dict)  # per leg, its raw score
    factors: Mapping[str, float] = field(default_factory=dict)  # what the adjustments multiplied the score by
    # In the block.
    text: str = ""
    category: str = ""
    note: str = ""  # how old it is, or how long; empty: nothing
    name: str = ""  # its short id; empty: the model has no tool that takes one
    # That it is earlier than another, or what of it is out of date; empty: nothing. It stands in every format.
    mark: str = ""

    @property
    def sure(self) -> bool:
        """Whether the prompt names its slot, or has the words of a trigger of it where no vector can tell."""
        return self.named or (self.trigger is not None and self.cosine is None)

    @property
    def id(self) -> str:
        """The fact's id, or where the passage stands."""
        return self.memory.id

    @property
    def fact(self) -> Fact:
        """The memory, which is no passage."""
        return cast(Fact, self.memory)

    @property
    def item(self) -> RecallItem:
        """What a host is told of it."""
        return RecallItem(self.id, self.text, self.category, self.leg, self.score)


class Beside(Protocol):
    """What the model sees in any case: the host's own memory files."""

    @property
    def tokens(self) -> int:
        """Of what is the user's own, about."""

    @property
    def own(self) -> Beside:
        """What is the user's own alone: nobody else's word leaves out what is pinned or a standing instruction."""

    def says(self, text: str, until: float) -> str:
        """Return the name of a file that says what a memory says; empty: none is found in time."""

    def otherwise(self, fact: Fact, until: float) -> str:
        """Return a remark on a file that has another value for what a memory is about; empty: none is found in time."""


class Judge(Protocol):
    """Tells which memories have evidence enough, and how well each fits."""

    floor: float | None = None  # cosine from which on a hit is evidence; None: cosines tell nothing by themselves
    threshold: float | None = None  # probability from which on a memory comes up; None: no model tells it
    # The same for what is known of whom or what the prompt names; None: that it is named brings nothing up.
    least_of_named: float | None = 0.0

    def passes(self, each: Candidate) -> bool:
        """Return whether a memory has evidence enough."""

    def ranked(self, some: Iterable[Candidate]) -> list[Candidate]:
        """Give each its score and the leg that found it best; return them best first, ties by id."""

    def near(self, ranked: list[Candidate]) -> list[Candidate]:
        """Return those that are not far below the best."""
        return ranked

    def reasons(self, some: Iterable[Candidate]) -> Mapping[str, Mapping[str, float]]:
        """Return by its id the features that moved a memory's log-odds most, with how far, the strongest first."""
        return {}


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """An embedder, the index of its space, and how to tell whether a hit is evidence."""

    embedder: Embedder  # makes the vectors of prompts
    index: Surveyor  # of the embedder's space
    calibration: Calibration  # tells it from a cosine
    gate: LearnedGate | None = None  # tells it from all that is known, if it was fitted on this very embedder
    breaker: Breaker = field(default_factory=Breaker)  # lets the leg rest when it fails
    triggers: TriggerIndex | None = None  # of the same space; None: triggers are not looked at

    def asked(self, query: Query) -> list[str]:
        """Return what is embedded of a query: its parts, if the gate can tell them apart."""
        return list(query.parts) if self.gate is not None and query.parts else [query.text]

    def close(self) -> None:
        """Release what its indexes hold."""
        self.index.close()
        if self.triggers is not None:
            self.triggers.close()


class MissingError(PerdureError):
    """A retriever that has nothing to say; the message is its state in the receipt."""


@dataclass(eq=False)
class Turn:
    """One recall. A retriever is asked with it and returns candidates."""

    store: Store
    options: RecallOptions
    query: Query
    view: View
    leg: VectorLeg | None
    deadline: float  # `time.monotonic()` after which a retriever is left behind
    session: str | None = None
    first: bool = False  # whether it is the first prompt of a session that is looked up
    # Tells whether the model no longer sees all that was said in the session; None: there is no session.
    compacted: Callable[[], bool] | None = None
    shared: int = SHARED  # how many a model judges of those that share words, beside the nearest
    found: dict[str, Candidate] = field(default_factory=dict)  # all, by id; each may be seen by the audience
    ranked: list[Candidate] = field(default_factory=list)  # the facts that are to come up, best first
    states: dict[str, str] = field(default_factory=dict)  # per retriever, "ok" or why it brought nothing
    seconds: dict[str, float] = field(default_factory=dict)  # per retriever, until it was through
    expansion: Expansion = OFF  # what was added to the query
    judge: Judge | None = None  # None: nothing was searched for
    notes: list[str] = field(default_factory=list)  # what the block says besides
    # What a judge looks at beside the candidates: words, the nearest, their cosines with each part of the query.
    lexical: Lexical = field(default_factory=lambda: Lexical((), {}, {}))
    survey: Survey | None = None
    cosines: dict[str, tuple[float, ...]] = field(default_factory=dict)
    agree: float = 1.0  # length of the mean of the parts' vectors
    aims: TriggerSurvey | None = None  # None: there are no triggers to be seen
    # Of each candidate that has triggers, these with their cosines.
    aimed: dict[str, list[tuple[Trigger, float]]] = field(default_factory=dict)
    vector: tuple[Vector, str] | None = None  # of the query, with the name of its space
    elsewhere: Ticket[Sequence[Passage]] | None = None  # by which passages come; None: they are not looked for

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        self.embedded = threading.Event()

    def asking(self, query: Query) -> Turn:
        """Return the same turn before anything was found, that asks something else."""
        return Turn(self.store, self.options, query, self.view, self.leg, self.deadline, self.session)

    @property
    def narrowed(self) -> bool:
        """Whether only a part of the memories is asked for: a tag's, or those of another time."""
        return self.view.tag is not None or self.view.as_of is not None

    @property
    def left(self) -> float:
        """Seconds up to the deadline."""
        return self.deadline - time.monotonic()

    @property
    def facts(self) -> list[Candidate]:
        """The facts among what was found."""
        return [each for each in self.found.values() if isinstance(each.memory, Fact)]

    @property
    def looked_at(self) -> list[Candidate]:
        """What a model judges of what was found: the nearest, those that share words, and the named."""
        chosen = dict.fromkeys(self.survey.ids if self.survey else ())
        hits = sorted(self.lexical.hits, key=lambda hit: -hit.coverage)
        others = [hit.fact.id for hit in hits if hit.fact.id not in chosen]
        chosen |= dict.fromkeys(others[: self.shared])
        chosen |= dict.fromkeys(each.id for each in self.facts if each.named or each.spoken_of)
        return [self.found[fact_id] for fact_id in chosen if fact_id in self.found and fact_id in self.cosines]

    @property
    def passages(self) -> list[Candidate]:
        """The passages among what was found, best first."""
        return [each for each in self.found.values() if isinstance(each.memory, Passage)]

    def read(self) -> AbstractContextManager[Connection]:
        """Open a read of the store that waits up to the deadline."""
        return self.store.database.read(deadline=self.deadline)

    def tried(self, name: str, find: Callable[[Turn], _Found]) -> _Found | None:
        """Return what is found; None where the database keeps it waiting, and the receipt says so."""
        try:
            return find(self)
        except MissingError as missing:
            self.states[name] = str(missing)
        except StoreError as error:
            self.states[name] = type(error).__name__
        return None

    def take(self, name: str, find: Find) -> None:
        """Take what a search finds as candidates, to be judged."""
        for each in self.tried(name, find) or ():
            known = self.found.setdefault(each.id, each)
            known.named |= each.named
            known.spoken_of |= each.spoken_of
            known.trigger = known.trigger or each.trigger
            known.scores |= each.scores
        self.states.setdefault(name, "ok")
        self.seconds.setdefault(name, time.monotonic() - self.began)

    def add(self, found: Iterable[Candidate]) -> None:
        """Have facts come up behind the others, whatever the judge says; those that do already stay as they are."""
        there = {each.id for each in self.ranked}
        for each in found:
            if each.id not in there:
                there.add(each.id)
                known = self.found.setdefault(each.id, each)
                known.leg, known.score, known.mark = each.leg, each.score, each.mark or known.mark
                self.ranked.append(known)


Find = Callable[[Turn], Sequence[Candidate]]
"""A retriever. A StoreError of it costs what it would have found, and nothing else."""
