"""What conversations were shown: so that its use can be told and what comes back of it is not taken for news.

A process keeps it in memory; what an earlier one brought up stands in receipts, facts by their ids, passages by keyed
traces.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from perdure.hooks.types import Opening, Recall
from perdure.recent import Recent
from perdure.store import receipts
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.text.clean import message_text
from perdure.text.sameness import Trace, traces

SESSIONS = 64
"""Conversations that are remembered, those that went on last."""
ITEMS = 512
"""Memories of one conversation that are known to have been shown, and whose echo is told: those shown last."""
PROMPT = 65_536
"""Characters of a prompt by which it is told what a reply has from the memories and not from the prompt."""
TRACED = 16
"""Conversations whose traces are at hand; those of others are read from their receipts when they go on."""
RECEIPTS = 64
"""So many receipts of a conversation are looked at, the newest."""
SECONDS = 30 * 86_400.0
Pairs = Sequence[tuple[str, str]]
Traces = Mapping[str, Sequence[Trace]]
Value = TypeVar("Value")


@dataclass(slots=True)
class _Shown:
    prompt: str = ""
    last: Pairs = ()
    ids: dict[str, None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    opened: str | None = None  # the project in which its opening was given, "" for none; None: it was not yet


@dataclass(eq=False, repr=False)
class Ledger:
    """Keeps, per conversation, what recall has brought up. Usable from any thread."""

    key: bytes  # the store's, for traces
    earlier: Callable[[str], Traces]  # what a conversation was shown before this process, as receipts tell
    visible: Callable[[str], Iterable[str]] = lambda conversation: ()  # ids of that which the model still sees
    # The project in which a process before this one opened it, if the model still sees that; else None.
    opened: Callable[[str], str | None] = lambda conversation: None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: Recent[str, _Shown] = Recent(SESSIONS)
        self._traces: Recent[str, Traces] = Recent(TRACED)
        # The receipts are told of a compaction behind it.
        self._forgotten: Recent[str, bool] = Recent(SESSIONS)

    def note(self, key: str, prompt: str, recall: Recall | None) -> None:
        """Keep what a turn was given."""
        with self._lock:
            shown = self._of(key)
            shown.prompt = prompt[:PROMPT]
            shown.last = tuple((item.id, item.text) for item in recall.items) if recall else ()
            shown.ids = _newest(shown.ids, dict.fromkeys(fact_id for fact_id, _ in shown.last))
            # They wait for `traces`, which a host that captures nothing never asks for.
            shown.texts = _newest(shown.texts, dict(shown.last))

    def open(self, key: str, project: str | None, opening: Opening) -> None:
        """Keep what a conversation began with."""
        texts = {item.id: item.text for item in opening.items}
        self.ids(key)  # also what a process before this one has shown
        with self._lock:
            shown = self._of(key)
            shown.opened, shown.last = project or "", tuple(texts.items())
            shown.ids = _newest(shown.ids, dict.fromkeys(texts))
            shown.texts = _newest(shown.texts, texts)

    def is_opened(self, key: str, project: str | None) -> bool:
        """Return whether the model sees what a conversation began with, and the project is still the same."""
        known = self._sessions.get(key)
        before = known.opened if known else None
        if before is None and self._forgotten.get(key) is None:
            before = self.opened(key)
        return before == (project or "")

    def is_new(self, key: str) -> bool:
        """Return whether nothing is known of a conversation yet."""
        return self._sessions.get(key) is None

    def ids(self, key: str) -> frozenset[str]:
        """Return the ids of all that a conversation was given since it was last compacted."""
        unknown = self.is_new(key) and self._forgotten.get(key) is None
        before = dict.fromkeys(self.visible(key)) if unknown else {}
        with self._lock:
            shown = self._of(key)
            shown.ids = _newest(before, shown.ids)
            return frozenset(shown.ids)

    def last(self, key: str) -> Pairs:
        """Return what the turn that goes on was given, id and text, in the order of its block."""
        with self._lock:
            shown = self._sessions.get(key)
            return shown.last if shown else ()

    def take(self, key: str) -> tuple[str, Pairs]:
        """Return the prompt and what the newest turn was given, once."""
        with self._lock:
            shown = self._of(key)
            taken = shown.prompt, shown.last
            shown.prompt, shown.last = "", ()
            return taken

    def traces(self, key: str) -> Traces:
        """Return the traces of what a conversation was given, also by a process before this one.

        For the background: it may read the database.
        """
        with self._lock:
            known = self._sessions.get(key)
            fresh, old = dict(known.texts) if known else {}, self._traces.get(key)
        shown = {item_id: traces(text, self.key) for item_id, text in fresh.items()}
        found = _newest(self.earlier(key) if old is None else old, shown)
        with self._lock:
            if known is not None and self._sessions.get(key) is known:
                self._traces.put(key, found)
                # What was shown meanwhile waits for the next call.
                known.texts = {each: text for each, text in known.texts.items() if fresh.get(each) != text}
        return found

    def forget(self, key: str) -> None:
        """Take note that the model sees nothing of it any more, as after a compaction."""
        with self._lock:
            self._sessions.drop(key)
            self._traces.drop(key)
            self._forgotten.put(key, True)

    def _of(self, key: str) -> _Shown:
        return self._sessions.first(key, _Shown())


def _newest(before: Mapping[str, Value], shown: Mapping[str, Value]) -> dict[str, Value]:
    """Return what was shown before and now, in the order in which each was last shown."""
    kept = {name: value for name, value in before.items() if name not in shown}
    return dict(list({**kept, **shown}.items())[-ITEMS:])


def newest_reply(messages: Sequence[Any]) -> str:
    """Return what the assistant said after the last message of the user."""
    said: list[str] = []
    for message in reversed(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "user":
            break
        if role == "assistant":
            said.append(message_text(message))
    return "\n".join(reversed(said))


def of_passages(recall: Recall | None, key: bytes) -> dict[str, Any]:
    """Return, as JSON values, the traces of the passages in a recall; facts are found again by their ids."""
    # Only a passage is named by where it stands.
    items = [item for item in recall.items if "#" in item.id] if recall else []
    return {
        item.id: [[each.words, sorted(each.details), sorted(each.senses)] for each in traces(item.text, key)]
        for item in items
    }


def earlier(store: Store) -> Callable[[str], Traces]:
    """Return a function that reads what a conversation, named by its cursor, was shown."""

    def read(conversation: str) -> Traces:
        sql = "SELECT id, text FROM facts WHERE id IN (SELECT value FROM json_each(?))"
        with store.database.read() as connection:
            bodies = _receipts(store, connection, conversation)
            ids = {
                candidate["id"]
                for body in bodies
                for candidate in body.get("candidates", ())
                if candidate["verdict"] == "injected" and "change_seq" in candidate
            }
            facts = run(connection, sql, (json.dumps(sorted(ids)),))
        passages = {name: _read(seen) for body in bodies for name, seen in body.get("echo", {}).items()}
        return passages | {fact_id: traces(text, store.key) for fact_id, text in facts}

    return read


def visible(store: Store) -> Callable[[str], Iterable[str]]:
    """Return a function that reads what a conversation, named by its cursor, was shown and the model still sees."""

    def read(conversation: str) -> Iterable[str]:
        with store.database.read() as connection:
            bodies = _receipts(store, connection, conversation)
        for body in bodies:
            if not body.get(receipts.COMPACTED):
                yield from body.get("echo", ())
                yield from (each["id"] for each in body.get("candidates", ()) if each["verdict"] == "injected")

    return read


def opened(store: Store) -> Callable[[str], str | None]:
    """Return a function that reads in which project a conversation, named by its cursor, was opened last."""

    def read(conversation: str) -> str | None:
        with store.database.read() as connection:
            bodies = _receipts(store, connection, conversation)
        seen = (body for body in bodies if not body.get(receipts.COMPACTED))
        return next((body["opening"] for body in seen if "opening" in body), None)

    return read


def _receipts(store: Store, connection: Connection, conversation: str) -> Sequence[Mapping[str, Any]]:
    scope, _, session = conversation.partition("\0")
    found = receipts.of_session(connection, session or None, scope, store.clock.now() - SECONDS, RECEIPTS)
    return [receipt.body for receipt in found]


def _read(seen: Sequence[Any]) -> tuple[Trace, ...]:
    return tuple(Trace(tuple(words), frozenset(details), frozenset(senses)) for words, details, senses in seen)
