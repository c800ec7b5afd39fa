"""What conversations were shown: so that its use can be told and what comes back of it is not taken for news.

A process keeps it in memory; what an earlier one brought up stands in receipts, facts by their ids, passages by keyed
traces.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from perdure.hooks.types import Opening, Recall, RecallItem
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
class _Turn:
    at: float  # when it began, epoch seconds
    prompt: str = ""  # what it began with
    shown: frozenset[str] = frozenset()  # ids of what its block showed, and the opening before it
    silent: bool = False  # whether it was given nothing
    handed: set[str] = field(default_factory=set)  # ids of what tools have shown or changed in it
    batch: str = field(default_factory=lambda: uuid.uuid4().hex)  # of what is changed in it


@dataclass(frozen=True, slots=True)
class Lately:
    """What a conversation's turn that goes on, and the one before it, have to do with."""

    ids: frozenset[str]  # of memories that the user may have been told of when they spoke
    since: float  # when the turn before began, epoch seconds
    began: float  # when this one did
    batch: str  # of what is changed in it


@dataclass(frozen=True, slots=True)
class Ended:
    """What a turn was given, for who has its reply."""

    prompt: str
    shown: Pairs
    searched: frozenset[str]  # if it was given nothing, ids of what tools showed then
    began: float  # epoch seconds


@dataclass(slots=True)
class _Shown:
    prompt: str = ""
    last: Pairs = ()
    ids: dict[str, None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    # By the projects in which it was opened, "" for none, what it was given there; None: there was nothing to say.
    openings: dict[str, Opening | None] = field(default_factory=dict)
    opening: Opening | None = None  # the one that was given last
    unread: bool = False  # no turn has begun since
    asked: bool = False  # something was looked up for a turn of it
    turns: tuple[_Turn, ...] = ()  # the last two


@dataclass(eq=False, repr=False)
class Ledger:
    """Keeps, per conversation, what recall has brought up. Usable from any thread."""

    key: bytes  # the store's, for traces
    earlier: Callable[[str], Traces]  # what a conversation was shown before this process, as receipts tell
    visible: Callable[[str], Iterable[str]] = lambda conversation: ()  # ids of that which the model still sees
    # The projects in which a process before this one opened it, as far as the model still sees that.
    opened: Callable[[str], frozenset[str]] = lambda conversation: frozenset()
    # Whether it was compacted by a process before this one.
    shortened: Callable[[str], bool] = lambda conversation: False
    # Whether a process before this one looked up anything for it that the model may still see.
    asked: Callable[[str], bool] = lambda conversation: False

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: Recent[str, _Shown] = Recent(SESSIONS)
        self._traces: Recent[str, Traces] = Recent(TRACED)
        # The receipts are told of a compaction behind it.
        self._forgotten: Recent[str, bool] = Recent(SESSIONS)

    def note(self, key: str, prompt: str, recall: Recall | None, at: float = 0.0, *, asked: bool = True) -> None:
        """Keep what a turn was given that begins at a time, epoch seconds; `asked`: whether anything was looked up."""
        with self._lock:
            shown = self._of(key)
            shown.asked |= asked
            opened = shown.opening if shown.opening and shown.unread else None
            prompt = prompt[:PROMPT]
            turn, shown.unread = _Turn(at, prompt, _ids(recall) | _ids(opened), recall is None), False
            if shown.turns and shown.prompt and shown.prompt == prompt:
                # A host may ask several times for one turn, before it tells of its end.
                shown.turns[-1].shown |= turn.shown
                shown.turns[-1].silent &= turn.silent
            else:
                shown.turns = (*shown.turns[-1:], turn)
            shown.prompt = prompt
            fresh = tuple((item.id, item.text) for item in recall.items) if recall else ()
            # What the conversation began with is still there.
            shown.last = (*fresh, *((item.id, item.text) for item in (shown.opening.items if shown.opening else ())))
            shown.ids = _newest(shown.ids, dict.fromkeys(fact_id for fact_id, _ in fresh))
            # They wait for `traces`, which a host that captures nothing never asks for.
            shown.texts = _newest(shown.texts, dict(fresh))

    def open(self, key: str, project: str, opening: Opening | None) -> None:
        """Keep what a conversation began with in a project; None: there was nothing to say, or is no more."""
        texts = {item.id: item.text for item in opening.items} if opening else {}
        self.ids(key)  # also what a process before this one has shown
        with self._lock:
            shown = self._of(key)
            shown.openings[project] = shown.opening = opening
            shown.last, shown.unread = tuple(texts.items()), True
            shown.ids = _newest(shown.ids, dict.fromkeys(texts))
            shown.texts = _newest(shown.texts, texts)

    def is_opened(self, key: str, project: str) -> bool:
        """Return whether a conversation was opened in a project, and the model sees what it was given there."""
        known = self._sessions.get(key)
        return bool(known and project in known.openings) or (
            self._forgotten.get(key) is None and project in self.opened(key)
        )

    def openings(self, key: str) -> Mapping[str, Opening | None]:
        """Return what this process had a conversation begin with, by project; None: there was nothing to say."""
        with self._lock:
            known = self._sessions.get(key)
            return dict(known.openings) if known else {}

    def begun(self, key: str) -> frozenset[str]:
        """Return the ids of what a conversation was opened with, if no turn of it has begun since."""
        with self._lock:
            known = self._sessions.get(key)
            return _ids(known.opening) if known and known.unread else frozenset()

    def is_compacted(self, key: str) -> bool:
        """Return whether the model no longer sees all that was said in a conversation."""
        return self._forgotten.get(key) is not None or self.shortened(key)

    def is_new(self, key: str) -> bool:
        """Return whether a conversation was given nothing yet, and no turn of it has begun."""
        known = self._sessions.get(key)
        return known is None or not (known.turns or known.opening)

    def is_unasked(self, key: str) -> bool:
        """Return whether nothing was looked up yet for a conversation, or nothing that its model still sees."""
        known = self._sessions.get(key)
        return not (known and known.asked) and (self._forgotten.get(key) is not None or not self.asked(key))

    def ids(self, key: str) -> frozenset[str]:
        """Return the ids of all that a conversation was given since it was last compacted."""
        unknown = self.is_new(key) and self._forgotten.get(key) is None
        before = dict.fromkeys(self.visible(key)) if unknown else {}
        with self._lock:
            shown = self._of(key)
            shown.ids = _newest(before, shown.ids)
            return frozenset(shown.ids)

    def add(self, key: str, items: Iterable[RecallItem]) -> None:
        """Keep that something was shown besides, as before a tool ran."""
        texts = {item.id: item.text for item in items}
        with self._lock:
            shown = self._of(key)
            shown.ids = _newest(shown.ids, dict.fromkeys(texts))
            shown.texts = _newest(shown.texts, texts)

    def last(self, key: str) -> Pairs:
        """Return what the turn that goes on was given, id and text, in the order of its block."""
        with self._lock:
            shown = self._sessions.get(key)
            return shown.last if shown else ()

    def hand(self, key: str, ids: Iterable[str]) -> None:
        """Keep that tools have shown or changed these memories in the turn that goes on."""
        with self._lock:
            known = self._sessions.get(key)
            if known is not None and known.turns:
                known.turns[-1].handed.update(ids)

    def lately(self, key: str) -> Lately | None:
        """Return what the turn that goes on and the one before it have to do with; None if none is known."""
        with self._lock:
            known = self._sessions.get(key)
            if known is None or not known.turns:
                return None
            # The user spoke before what a tool shows in this very turn.
            first, last = known.turns[0], known.turns[-1]
            ids = last.shown | (first.shown | first.handed if first is not last else frozenset())
            return Lately(ids, first.at, last.at, last.batch)

    def batch(self, key: str, messages: Sequence[Any]) -> str | None:
        """Return the batch of what is changed in the turn that goes on; None if it did not begin with these messages.

        What the user said last in them must be its prompt: a host need not ask at every turn.
        """
        with self._lock:
            known = self._sessions.get(key)
            turn = known.turns[-1] if known and known.turns else None
        told = (each for each in reversed(messages) if isinstance(each, Mapping) and each.get("role") == "user")
        said = next(filter(None, map(message_text, told)), "")[:PROMPT] if turn else ""
        return turn.batch if turn and said and said == turn.prompt else None

    def take(self, key: str) -> Ended:
        """Return what the newest turn was given, once."""
        with self._lock:
            shown = self._of(key)
            turn = shown.turns[-1] if shown.turns else _Turn(0.0)
            searched = frozenset(turn.handed - shown.ids.keys() if turn.silent and shown.prompt else ())
            taken = Ended(shown.prompt, shown.last, searched, turn.at)
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


def _ids(given: Recall | Opening | None) -> frozenset[str]:
    return frozenset(item.id for item in given.items) if given else frozenset()


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


def from_receipts(
    store: Store, reader: Callable[[Connection, str | None, str, float], Value]
) -> Callable[[str], Value]:
    """Return a function that asks of the receipts of a conversation, named by its cursor, what a reader does."""

    def read(conversation: str) -> Value:
        scope, _, session = conversation.partition("\0")
        return store.database.query(reader, session or None, scope, store.clock.now() - SECONDS)

    return read


def _receipts(store: Store, connection: Connection, conversation: str) -> Sequence[Mapping[str, Any]]:
    scope, _, session = conversation.partition("\0")
    found = receipts.of_session(connection, session or None, scope, store.clock.now() - SECONDS, RECEIPTS)
    return [receipt.body for receipt in found]


def _read(seen: Sequence[Any]) -> tuple[Trace, ...]:
    return tuple(Trace(tuple(words), frozenset(details), frozenset(senses)) for words, details, senses in seen)
