"""What the librarian is shown: turns with the user's plain speech marked, the memories near them, the day."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any, Final

from perdure.capture.language import language_of
from perdure.capture.sentences import sentences
from perdure.embed.base import Embedder
from perdure.errors import ModelError
from perdure.hooks.types import Messages
from perdure.index.vector_index import VectorIndex
from perdure.librarian.operations import schema
from perdure.llm import OWN
from perdure.recall.topics import private
from perdure.secrets.redact import redact
from perdure.speech.author import Author, author_of
from perdure.speech.spans import spoken
from perdure.speech.tool_use import Result, used
from perdure.speech.typed import typed
from perdure.store.fact import Fact
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_ids, captured, lexical, named, told_in
from perdure.store.sql import Connection
from perdure.store.store import Store
from perdure.store.triggers import of as triggers_of
from perdure.text.clean import clip, message_text
from perdure.text.fence import strip_fenced
from perdure.text.lexicon import table
from perdure.text.timestamps import day_of, seconds

SAID: Final = 4_000
BESIDE: Final = 400
"""Characters of a turn that are shown: of what its user said, and of each that stands beside it."""
MEMORIES: Final = 60
EACH: Final = 6
"""Memories that are shown: in all; for one turn by its meaning, for each of its first sentences by slots and by words;
and of the same conversation the newest."""
SENTENCES: Final = 12
NEAR: Final = 0.2
"""Cosine from which on a memory is near a turn: what a turn changes it often names in quite other words."""
CAPTURED: Final = "rule:"
"""How the extraction of what capture has kept of a turn begins."""
_PROMPTS: Mapping[str, str] = table("librarian", "prompts")
Leg = tuple[Embedder, VectorIndex]


@dataclass(frozen=True, slots=True)
class Turn:
    """What was said in a turn, without secrets."""

    at: float  # when, epoch seconds
    said: str  # by the user, plainly
    other: str = ""  # what the user pasted, quotes or gives to be worked on
    answered: str = ""  # by the assistant
    tools: str = ""  # what tools brought


@dataclass(frozen=True, slots=True)
class Batch:
    """Turns of one conversation that were not read yet."""

    host: str
    session: str | None
    scopes: tuple[str, ...]  # where what is said there is kept: the caller's own first, then the project's
    turns: tuple[Turn, ...]
    names: tuple[str, ...] = ()  # under which they wait
    rested: bool = False  # whether the conversation is over, or its model sees no more of it
    tries: int = 0  # so often a model has failed to read them
    after: float = 0.0  # not asked about before, epoch seconds

    @property
    def said_in(self) -> str:
        """Return the host without the mark of a program's own model."""
        return self.host.partition(OWN)[0]

    @property
    def audience(self) -> Audience:
        """Return who may read what is kept of these turns."""
        scopes = [Scope.parse(each) for each in self.scopes]
        return Audience(frozenset(scopes), scopes[0])


@dataclass(frozen=True, slots=True)
class Request:
    """One question to the librarian."""

    batch: Batch
    today: dt.date
    memories: Mapping[str, Fact]  # by the names under which they are shown
    new: frozenset[str] = frozenset()  # names of those that were captured from these very turns
    aimed: frozenset[str] = frozenset()  # names of those that have triggers

    def shown(self) -> dict[str, Any]:
        """Return what is shown, as JSON can hold it."""
        turns = [
            {"turn": number, **{name: text for name, text in asdict(turn).items() if name != "at" and text}}
            for number, turn in enumerate(self.batch.turns, 1)
        ]
        memories = [
            {
                "id": name, "text": fact.text, "category": fact.category,
                "since": day_of(fact.effective_date, fact.zone).isoformat(),
                **({"new": True} if name in self.new else {}), **({"triggers": True} if name in self.aimed else {}),
            }
            for name, fact in self.memories.items()
        ]  # fmt: skip
        return {"today": self.today.isoformat(), "turns": turns, "memories": memories}

    def renamed(self, names: Mapping[str, str]) -> Request:
        """Return the request with other names of its memories, each with its own one; one without is left out."""
        return replace(
            self,
            memories={name: self.memories[own] for name, own in names.items()},
            new=frozenset(name for name, own in names.items() if own in self.new),
            aimed=frozenset(name for name, own in names.items() if own in self.aimed),
        )

    @property
    def prompt(self) -> str:
        """Return the question."""
        return json.dumps(self.shown(), ensure_ascii=False, indent=1)


def system() -> str:
    """Return what the librarian is told before each question."""
    return _PROMPTS["system"] + json.dumps(schema(), separators=(",", ":"))


def repair(problems: Sequence[str]) -> str:
    """Return what is added to a question whose answer cannot be used as it is."""
    return _PROMPTS["repair"].format(problems="\n".join(f"- {each}" for each in problems))


def turn_of(messages: Messages, key: bytes, session: str | None, at: float) -> Turn | None:
    """Return what new messages of a turn say; None: its user says nothing plainly.

    The store's `key` recognises our own blocks.
    """
    parts: dict[str, list[str]] = {"said": [], "other": [], "answered": [], "tools": []}
    first = None
    for message in messages:
        author = author_of(message) if isinstance(message, Mapping) else None
        if author is Author.MACHINE:
            parts["tools"] += (redact(each.text).text for each in used(message) if isinstance(each, Result))
        elif author in (Author.USER, Author.ASSISTANT):
            text = strip_fenced(message_text(message), key, session)
            told = spoken(typed(text) if author is Author.USER else text)
            if author is Author.ASSISTANT:
                parts["answered"].append(told.text)
                continue
            parts["said"].append(told.plain)
            parts["other"] += (span.text for span in told.spans if span.author is not Author.USER)
            first = first or seconds(message.get("timestamp"))
    most = {"said": SAID}
    texts = {name: clip("\n".join(filter(None, each)), most.get(name, BESIDE)).strip() for name, each in parts.items()}
    return Turn(first or at, **texts) if texts["said"] else None


@dataclass(frozen=True)
class Reader:
    """Finds what a request shows."""

    store: Store
    leg: Callable[[], Leg | None]  # the embedder of the store's space, and the index of the same
    withholds: Callable[[str | None], bool] = lambda host: False  # whether a host may see only what was told there

    def request(self, batch: Batch) -> Request:
        """Return the question about a batch: memories are named in the order in which turns come upon them."""
        now = self.store.clock.now()
        view = View(batch.audience, now, approved_only=True)
        vectors = self._vectors(batch.turns)
        with self.store.database.read() as connection:
            here = captured(connection, view, batch.session, 0.0) if batch.session is not None else []
            fresh = [fact for fact in here if _is_of(fact, batch)]
            near = [each for turn, vector in zip(batch.turns, vectors, strict=True)
                    for each in self._near(connection, turn, fresh, vector, view)]  # fmt: skip
            last = sorted(here, key=lambda fact: fact.created_at)[-EACH:]
        facts = self._shown(batch.said_in, [*near, [*fresh, *last]], {fact.id for fact in fresh})
        with self.store.database.read() as connection:
            aimed = triggers_of(connection, [fact.id for fact in facts])
        names = {fact.id: f"m{number}" for number, fact in enumerate(facts, 1)}
        return Request(
            batch,
            day_of(now, self.store.zone),
            {names[fact.id]: fact for fact in facts},
            frozenset(names[fact.id] for fact in fresh if fact.id in names),
            frozenset(names[fact_id] for fact_id, held in aimed.items() if held),
        )

    def _shown(self, host: str, near: Sequence[Sequence[Fact]], fresh: Collection[str]) -> list[Fact]:
        """Return what is shown: the nearest of each turn and sentence, where there is not room for all."""
        found = {fact.id: fact for facts in near for fact in facts}
        if self.withholds(host) and found:
            elsewhere = found.keys() - self.store.database.query(told_in, found.keys(), host)
            withheld = private(self.store, [found[name] for name in elsewhere])
            withheld |= {name for name in elsewhere if found[name].scope != "project"}
            found = {name: fact for name, fact in found.items() if name not in withheld}
        ranked = [fact.id for facts in zip_longest(*near) for fact in facts if fact is not None and fact.id in found]
        room = {*list(dict.fromkeys([*(name for name in found if name in fresh), *ranked]))[:MEMORIES]}
        return [fact for name, fact in found.items() if name in room]

    def _vectors(self, turns: Sequence[Turn]) -> Sequence[Any]:
        leg = self.leg()
        if leg is None:
            return [None] * len(turns)
        try:
            return list(leg[0].embed([clip(turn.said, 1_000) for turn in turns], query=True))
        except ModelError:
            return [None] * len(turns)

    def _near(
        self, connection: Connection, turn: Turn, fresh: Sequence[Fact], vector: Any, view: View
    ) -> Iterator[list[Fact]]:
        """Yield what is near a turn by its meaning, and what is near each of its sentences."""
        leg, near = self.leg(), [fact for fact in fresh if fact.source_date == turn.at]
        if leg is not None and vector is not None:
            hits = [hit.id for hit in leg[1].search(vector, view, EACH) if hit.cosine >= NEAR]
            found = by_ids(connection, hits, view) if hits else {}
            near += (found[hit] for hit in hits if hit in found)
        yield near
        for sentence in sentences(turn.said, language_of(turn.said))[:SENTENCES]:
            words = lexical(connection, sentence, view, EACH).hits
            yield [*named(connection, sentence, view, EACH), *(hit.fact for hit in words)]


def _is_of(fact: Fact, batch: Batch) -> bool:
    """Return whether a fact of the conversation was captured from these very turns."""
    rule = (fact.extraction_method or "").startswith(CAPTURED)
    return rule and (fact.source_date or 0.0) >= min(turn.at for turn in batch.turns)
