"""The steps of capture in their order: what is behind an inbox entry becomes facts, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perdure.capture.decide import Action, Decision, decide
from perdure.capture.describe import describe
from perdure.capture.rules import guarded
from perdure.capture.statements import CaptureRule, Statement, statements
from perdure.embed.base import Embedder
from perdure.errors import ModelError
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.scope import Audience, Scope
from perdure.store.search import View
from perdure.store.slots import vector_text
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector

if TYPE_CHECKING:
    from perdure.embed.base import Vectors

IMPORTANCE = 0.7
BATCH = 4
"""Texts embedded at once: more would raise the memory of the process, not the speed."""


@dataclass(frozen=True, slots=True)
class Captured:
    """What became of one statement."""

    fact: Fact
    decision: Decision


class Capturer:
    """Turns inbox entries into facts."""

    def __init__(
        self,
        store: Store,
        embedder: Callable[[], Embedder | None],
        rules: Callable[[], tuple[CaptureRule, ...]],
    ) -> None:
        """Capture into `store`.

        Args:
            store: where facts go.
            embedder: returns the embedder of the store's space, or None while there is none.
            rules: returns the capture rules of extensions.
        """
        self._store = store
        self._embedder = embedder
        self._rules = rules

    def process(self, entry: Mapping[str, Any], pause: Callable[[], None] = lambda: None) -> list[Captured]:
        """Deal with an entry, once: a repeated call finds it done.

        Args:
            entry: as the inbox holds it.
            pause: called between steps, so that a turn that begins meanwhile need not wait.

        Raises:
            StoreError: nothing of the entry was kept; repeat it later.
        """
        if self._store.is_finished(entry["id"]):
            return []
        rules = tuple(guarded(rule) for rule in self._rules())
        drafts = []
        for message in entry["messages"]:
            for statement in statements(message["text"], rules):
                drafts.append(_draft(statement, message, entry))
                pause()
        vectors = self._vectors([vector_text(draft.text, draft.entity, draft.key) for draft in drafts], pause)
        author = Author(Channel.USER, entry.get("host", "python"), entry.get("session"))
        with self._store.write(author) as tx:
            captured = []
            for draft, vector in zip(drafts, vectors, strict=True):
                decision = decide(tx.connection, draft, _own_scope(draft, self._store.clock.now()))
                match decision.action:
                    case Action.NOOP if decision.target:
                        tx.reinforce(decision.target)
                    case Action.UPDATE if decision.target:
                        draft = tx.add(draft, vector)
                        tx.supersede(decision.target, draft.id, decision.reason)
                    case _:
                        draft = tx.add(draft, vector)
                captured.append(Captured(draft, decision))
            tx.move_cursor(entry["cursor"], entry["tail"])
            tx.finish_entry(entry["id"])
        return captured

    def _vectors(self, texts: Sequence[str], pause: Callable[[], None]) -> list[StoredVector | None]:
        embedder = self._embedder()
        if embedder is None:
            return [None] * len(texts)
        vectors: list[StoredVector | None] = []
        for start in range(0, len(texts), BATCH):
            pause()
            part = texts[start : start + BATCH]
            try:
                vectors += stored(embedder.embed(part), embedder.identity.id)
            except ModelError:
                # The fact is kept without a vector; the worker gives it one later.
                vectors += [None] * len(part)
        return vectors


def stored(vectors: Vectors, embedding_id: str) -> list[StoredVector]:
    """Return rows of vectors as they are stored."""
    return [StoredVector(embedding_id, row.astype("<f4").tobytes()) for row in vectors]


def _draft(statement: Statement, message: Mapping[str, Any], entry: Mapping[str, Any]) -> Fact:
    description = describe(statement)
    scope = Scope.parse(entry["scope"])
    slot = description.slot
    return Fact(
        text=statement.text,
        why=description.why,
        category=description.category,
        importance=IMPORTANCE,
        entity=slot.entity if slot else None,
        key=slot.key if slot else None,
        value=slot.value if slot else None,
        channel=Channel.USER,
        source_date=message.get("at") or entry["at"],
        decay_class=description.decay_class,
        tags=description.tags,
        scope=scope.kind,
        scope_target=scope.target,
        provenance_session=entry.get("session"),
        source_turn=entry.get("turn"),
        extraction_method=f"rule:{statement.cue}",
    )


def _own_scope(fact: Fact, now: float) -> View:
    scope = Scope(fact.scope, fact.scope_target)
    return View(Audience(frozenset({scope}), scope), now)
