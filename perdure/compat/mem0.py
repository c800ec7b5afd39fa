"""mem0's `Memory`, over a store of perdure: `from perdure.compat.mem0 import Memory` instead of mem0's import.

It needs no API key: of messages it stores what perdure's capture finds, a text as it is. A user's memories are those of
`Memory.for_user`; of one user, agents and runs are told apart by marks. What was added for a user is found with the
user's id alone or beside others; what an agent or a run has without a user stands apart.
"""

from __future__ import annotations

import datetime as dt
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Self

from perdure.api import memory as library
from perdure.api.stored import Outcome, Stored
from perdure.api.turns import understood
from perdure.api.view import MemoryView
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import Channel, TurnContext
from perdure.store import history, lifecycle, search
from perdure.store.fact import Fact
from perdure.store.listing import MAX_LIMIT
from perdure.store.scope import ALL_SCOPES, Scope, checked_id, named_user
from perdure.store.search import View
from perdure.store.transaction import Author
from perdure.text.clean import message_text

_HOST = "mem0"
"""By which the journal knows this door; also the agent that has what belongs to a run and no user."""
_IDS = ("user_id", "agent_id", "run_id")
_EVENTS = {Outcome.STORED: "ADD", Outcome.REPLACED: "UPDATE", Outcome.WITHDREW: "DELETE"}


class Memory:
    """A store with mem0's API. A memory that a call may not read is treated as if it did not exist."""

    def __init__(self, config: Any = None) -> None:
        """Open the store of this machine's user; the models and databases of mem0's config are not needed."""
        if config is not None:
            warnings.warn("perdure needs no models or databases: mem0's config is ignored", stacklevel=2)
        self._store = library.Memory()
        self._lock = threading.Lock()

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any] | None = None) -> Self:
        """Open the store; see `Memory`."""
        return cls(config_dict)

    def add(
        self, messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]], *, user_id: str | None = None,
        agent_id: str | None = None, run_id: str | None = None, metadata: Mapping[str, Any] | None = None,
        infer: bool = True, memory_type: str | None = None, prompt: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Store a text, or what capture finds in messages; without `infer`, every message.

        Args:
            messages: a string, a message or a list of messages.
            user_id: the user it belongs to.
            agent_id: the agent it belongs to.
            run_id: the run it belongs to.
            metadata: JSON values.
            infer: whether to store only what capture finds.
            memory_type: has no effect, like `prompt`: no language model is used.
            prompt: has no effect.

        Returns:
            `results`: the id, the text and the event of each memory that changed: ADD, UPDATE if it replaced
            others, or DELETE if it withdrew them.

        Raises:
            InputError: no id is given, or a value is invalid.
            ScopeError: an id is empty or malformed.
        """
        view, given = self._for(user_id, agent_id, run_id)
        if metadata is not None and not isinstance(metadata, Mapping):
            raise InputError(f"metadata is of type {type(metadata).__name__}; give names and JSON values")
        kept = {**{name: value for name, value in (metadata or {}).items() if name not in _IDS}, **given}
        said = [messages] if isinstance(messages, Mapping) else messages
        # What was known gets further marks, which two threads must not set for each other.
        with self._lock:
            taken = infer or isinstance(said, str)
            added = view.add(said, metadata=kept) if taken else _verbatim(view, said, kept)
            told = [(_event(fact), _marked(view, fact, kept)) for fact in added]
        return {"results": [{"id": fact.id, "memory": fact.text, "event": event} for event, fact in told if event]}

    def search(
        self, query: str, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None,
        limit: int = 100, top_k: int | None = None, filters: Mapping[str, Any] | None = None,
        threshold: float | None = None, rerank: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the memories that are nearest to a query as `results`, best first, each with its score.

        Args:
            query: what to search for.
            user_id: only memories of this user.
            agent_id: only memories of this agent.
            run_id: only memories of this run.
            limit: maximum number of results.
            top_k: the newer name of `limit`.
            filters: ids and metadata that a memory must have, such as `{"user_id": "ada", "topic": "tea"}`.
            threshold: minimum score.
            rerank: has no effect: perdure already combines semantic and keyword search.

        Raises:
            InputError: no id is given, the query is empty, or a filter is not understood.
        """
        view, given = self._for(user_id, agent_id, run_id, filters)
        most = limit if top_k is None else top_k
        hits = view.search(query, limit=most, scope=str(view._home()), metadata=given)
        found = [_shown(hit.fact) | {"score": hit.score} for hit in hits if threshold is None or hit.score >= threshold]
        return {"results": found}

    def get_all(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None,
        limit: int = 100, top_k: int | None = None, filters: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return memories as `results`, newest first; see `search`."""
        view, given = self._for(user_id, agent_id, run_id, filters)
        most = limit if top_k is None else top_k
        facts = view.get_all(limit=most, scope=str(view._home()), metadata=given)
        return {"results": [_shown(fact) for fact in facts]}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory by its id, or None."""
        try:
            view, fact = self._of(memory_id)
            return _shown(view.get(fact.id))
        except (NotFoundError, InputError):
            return None

    def update(self, memory_id: str, data: str, metadata: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Replace a memory's text. The previous version stays in its history; its previous id still finds it.

        Raises:
            NotFoundError: there is no such memory.
        """
        view, fact = self._of(memory_id, live=True)
        view.update(fact.id, text=data, **({} if metadata is None else {"metadata": {**fact.metadata, **metadata}}))
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Forget a memory; `perdure unforget` restores it.

        Raises:
            NotFoundError: there is no such memory.
        """
        view, fact = self._of(memory_id, live=True)
        view.forget(fact.id)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Forget all memories of a user, agent or run.

        Raises:
            InputError: no id is given.
        """
        view, given = self._for(user_id, agent_id, run_id)
        while facts := view.get_all(limit=MAX_LIMIT, scope=str(view._home()), metadata=given):
            for fact in facts:
                # What quotes another memory goes with it.
                with suppress(NotFoundError):
                    view.forget(view.get(fact))
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the changes to a memory, oldest first; empty if it does not exist."""
        try:
            view, fact = self._of(memory_id)
        except (NotFoundError, InputError):
            return []
        versions = view.history(fact.id).versions
        told: list[tuple[str, Fact | None, Fact | None, float]] = [
            ("ADD" if old is None else "UPDATE", old, new, new.since)
            for old, new in pairwise([None, *versions]) if new is not None and (old is None or old.text != new.text)
        ]  # fmt: skip
        if fact.forgotten_at is not None:
            told.append(("DELETE", fact, None, fact.forgotten_at))
        return [
            {
                "id": f"{memory_id}-{number}", "memory_id": memory_id, "event": event, "is_deleted": event == "DELETE",
                "old_memory": old and old.text, "new_memory": new and new.text,
                "created_at": _iso(versions[0].created_at), "updated_at": _iso(at),
            }
            for number, (event, old, new, at) in enumerate(told)
        ]  # fmt: skip

    def reset(self) -> None:
        """Forget everything added through this API, of all users; `perdure unforget` restores each."""
        with self._store._engine.store.write(Author(Channel.LIBRARY, _HOST)) as tx:
            for change in history.changes(tx.connection, ALL_SCOPES, 0, -1):
                # What quotes another memory goes with it.
                mine = change.action == "add" and change.host == _HOST
                if mine and (fact := tx.fact(change.fact.id)).forgotten_at is None and fact.superseded_at is None:
                    lifecycle.forget(tx, fact.id)

    def close(self) -> None:
        """Finish pending work and close all files."""
        self._store.close()

    def _for(
        self, user: str | None, agent: str | None, run: str | None, filters: Mapping[str, Any] | None = None
    ) -> tuple[MemoryView, dict[str, Any]]:
        """Return what a user, or an agent, has, and what its memories are to have in their metadata."""
        given = {"user_id": user, "agent_id": agent, "run_id": run}
        wanted = {**_flat(filters), **{name: value for name, value in given.items() if value is not None}}
        ids = {name: checked_id(wanted[name], name.removesuffix("_id")) for name in _IDS if name in wanted}
        if not ids:
            raise InputError(f"specify whose memories you mean: pass one of {', '.join(_IDS)}")
        user = named_user(ids["user_id"]) if "user_id" in ids else None
        # Of a user the agent is only a mark: who asks for the user alone is to find it, too.
        agent = None if user else ids.get("agent_id", _HOST)
        context = TurnContext(user_id=user, agent_id=agent, session_id=ids.get("run_id"), host=_HOST)
        marks = {name: value for name, value in {**wanted, **ids}.items() if name != "user_id"}
        return MemoryView(self._store._engine, context), marks

    def _of(self, memory_id: str, *, live: bool = False) -> tuple[MemoryView, Fact]:
        """Return a memory in its newest version, as its owner has it: mem0's ids need no name beside them.

        Raises:
            NotFoundError: there is none, or only one that was forgotten, if it is to be `live`.
        """
        engine = self._store._engine
        whole = View(ALL_SCOPES, engine.clock.now(), everything=True)
        found = engine.store.database.query(search.by_prefix, memory_id, whole)
        scope = Scope(found.scope, found.scope_target)
        view = MemoryView(engine, TurnContext(user_id=scope.user, agent_id=scope.agent, host=_HOST))
        newest = view.history(found.id).versions[-1]
        return view, view.get(newest.id) if live else newest


def _flat(filters: Any) -> dict[str, Any]:
    """Return the names and values that a memory must have.

    Raises:
        InputError: a filter is not understood, or two contradict each other.
    """
    found: dict[str, Any] = {}
    if not isinstance(filters, Mapping | None):
        raise InputError(f"filters are of type {type(filters).__name__}; give names and plain values, joined by AND")
    for name, value in (filters or {}).items():
        both = name == "AND" and isinstance(value, list)
        if not both and (name in ("AND", "OR", "NOT") or isinstance(value, Mapping | list) or value == "*"):
            raise InputError(f"filter {name!r} is not understood; give names and plain values, joined by AND")
        for each in map(_flat, value) if both else [{name: value}]:
            if any(found.get(other, wanted) != wanted for other, wanted in each.items()):
                raise InputError(f"filters require two values of {', '.join(each)}; no memory has both")
            found |= each
    return found


def _verbatim(view: MemoryView, said: Any, kept: Mapping[str, Any]) -> list[Fact]:
    """Store what messages say, whatever it is, but for a system's."""
    texts = [message_text(each) for each in understood(said) if each["role"] != "system"]
    return [view.store(text, metadata=kept) for text in texts if text.strip()]


def _event(fact: Fact) -> str | None:
    """Return mem0's word for what became of a text; None: it was known."""
    outcome = fact.outcome if isinstance(fact, Stored) else Outcome.REPLACED if fact.supersedes_id else Outcome.STORED
    return _EVENTS.get(outcome)


def _marked(view: MemoryView, fact: Fact, kept: Mapping[str, Any]) -> Fact:
    """Return a memory with marks: of agents and runs it has all for which it was said."""
    marks = {**fact.metadata, **kept}
    for name in _IDS:
        before, given = fact.metadata.get(name, []), kept.get(name)
        several = dict.fromkeys([*(before if isinstance(before, list) else [before]), *([given] if given else [])])
        if several:
            marks[name] = next(iter(several)) if len(several) == 1 else list(several)
    live = fact.superseded_at is None and fact.forgotten_at is None
    return view.update(fact, metadata=marks) if live and marks != fact.metadata else fact


def _shown(fact: Fact) -> dict[str, Any]:
    """Return a memory as mem0 shows it."""
    user = Scope(fact.scope, fact.scope_target).user
    marks = {name: fact.metadata[name] for name in _IDS if name in fact.metadata}
    return {
        "id": fact.id, "memory": fact.text, "hash": fact.normalized_hash, "categories": [fact.category],
        "metadata": {name: value for name, value in fact.metadata.items() if name not in _IDS} or None,
        "created_at": _iso(fact.created_at), "updated_at": _iso(fact.last_confirmed_at or fact.created_at),
        **marks, **({"user_id": user} if user else {}),
    }  # fmt: skip


def _iso(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat()
