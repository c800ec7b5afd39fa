"""mem0's `Memory`, over a store of perdure: `from perdure.compat.mem0 import Memory` in the place of mem0's import.

It needs no key and no model: of messages it keeps what perdure's own capture finds. A user's memories are those of
`Memory.for_user`; agents and runs are told apart by what was given for them, as mem0 does it.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

from perdure.api import memory as library
from perdure.api.view import MemoryView
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import Channel, TurnContext
from perdure.store import lifecycle, search
from perdure.store.fact import Fact
from perdure.store.listing import MAX_LIMIT
from perdure.store.scope import ALL_SCOPES, Scope, checked_id
from perdure.store.search import View
from perdure.store.transaction import Author

IDS = ("user_id", "agent_id", "run_id")


class Memory:
    """A store in mem0's words. What a call may not see is answered as if it were not there."""

    def __init__(self, config: Any = None) -> None:
        """Open the store of this machine's user; what mem0's config names, such as models, is not needed here."""
        if config is not None:
            warnings.warn("perdure needs no models and no databases: mem0's config is not used", stacklevel=2)
        self._store = library.Memory()

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any] | None = None) -> Self:
        """Open the store; see `Memory`."""
        return cls(config_dict)

    def add(
        self, messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]], *, user_id: str | None = None,
        agent_id: str | None = None, run_id: str | None = None, metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        """Store a text, or what is worth keeping of messages; without `infer` all that the messages say.

        Returns:
            `results`: the id, the text and the event of each memory that was added.

        Raises:
            InputError: none of the ids is given, or a value does not fit.
            ScopeError: an id is empty or malformed.
        """
        view, given = self._for(user_id, agent_id, run_id)
        kept = {**(metadata or {}), **given}
        messages = [messages] if isinstance(messages, Mapping) else messages
        if isinstance(messages, str) or not infer:
            texts = [messages] if isinstance(messages, str) else [str(each.get("content") or "") for each in messages]
            added = [fact for text in texts if text.strip() for fact in view.add(text, metadata=kept)]
        else:
            added = [view.update(fact, metadata={**fact.metadata, **kept}) for fact in view.add(messages)]
        return {"results": [{"id": fact.id, "memory": fact.text, "event": "ADD"} for fact in added]}

    def search(
        self, query: str, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None,
        limit: int = 100, top_k: int | None = None, filters: Mapping[str, Any] | None = None,
        threshold: float | None = None, rerank: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the memories that are nearest to a query as `results`, best first, each with its score.

        Args:
            query: what is looked for.
            user_id: whose.
            agent_id: of this agent.
            run_id: of this run.
            limit: so many at the most.
            top_k: the newer name of `limit`.
            filters: ids and metadata that a memory must have, as `{"user_id": "ada", "topic": "tea"}`.
            threshold: the least score.
            rerank: has no effect: perdure ranks by meaning and words in one.

        Raises:
            InputError: none of the ids is given, the query is empty, or a filter is none that is understood.
        """
        view, given = self._for(user_id, agent_id, run_id, filters)
        hits = [
            hit for hit in view.search(query, limit=MAX_LIMIT if given else top_k or limit) if _has(hit.fact, given)
        ]
        found = [_shown(hit.fact) | {"score": hit.score} for hit in hits if threshold is None or hit.score >= threshold]
        return {"results": found[: top_k or limit]}

    def get_all(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None,
        limit: int = 100, top_k: int | None = None, filters: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return memories as `results`, newest first; see `search`."""
        view, given = self._for(user_id, agent_id, run_id, filters)
        found = [_shown(fact) for fact in _all(view) if _has(fact, given)]
        return {"results": found[: top_k or limit]}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory by its id; None: there is none."""
        try:
            view, fact = self._of(memory_id)
            return _shown(view.get(fact.id))
        except NotFoundError:
            return None

    def update(self, memory_id: str, data: str, metadata: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Give a memory other words. What it said before stays in its history; its former id leads to it.

        Raises:
            NotFoundError: there is no such memory.
        """
        view, fact = self._of(memory_id)
        view.update(fact.id, text=data, **({} if metadata is None else {"metadata": {**fact.metadata, **metadata}}))
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Forget a memory; `perdure unforget` brings it back.

        Raises:
            NotFoundError: there is no such memory.
        """
        view, fact = self._of(memory_id)
        view.forget(fact.id)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Forget all memories of a user, agent or run.

        Raises:
            InputError: none of the ids is given.
        """
        view, given = self._for(user_id, agent_id, run_id)
        for fact in [fact for fact in _all(view) if _has(fact, given)]:
            view.forget(fact.id)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return what was done to a memory, oldest first.

        Raises:
            NotFoundError: there is no such memory.
        """
        view, fact = self._of(memory_id)
        versions = view.history(fact.id).versions
        told: list[tuple[str, Fact | None, Fact | None, float]] = [
            ("ADD" if old is None else "UPDATE", old, new, new.created_at)
            for old, new in pairwise([None, *versions]) if new is not None
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
        """Forget all memories of all users; `perdure unforget` brings each back."""
        engine = self._store._engine
        with engine.store.write(Author(Channel.LIBRARY, "mem0")) as tx:
            view = View(ALL_SCOPES, tx.now)
            for fact_id in search.ids(tx.connection, view):
                lifecycle.forget(tx, fact_id)

    def close(self) -> None:
        """Finish what was begun and close all files."""
        self._store.close()

    def _for(
        self, user: str | None, agent: str | None, run: str | None, filters: Mapping[str, Any] | None = None
    ) -> tuple[MemoryView, dict[str, Any]]:
        """Return what a user, or an agent, has, and what its memories are to have in their metadata."""
        given = {"user_id": user, "agent_id": agent, "run_id": run}
        wanted = {**dict(_flat(filters or {})), **{name: value for name, value in given.items() if value is not None}}
        ids = {name: checked_id(wanted[name], name.removesuffix("_id")) for name in IDS if name in wanted}
        if not ids:
            raise InputError(f"whose memories are meant is not said; give one of {', '.join(IDS)}")
        user = ids.get("user_id")
        # Of a user the agent is only a mark: who asks for the user alone is to find it, too.
        context = TurnContext(
            user_id=user, agent_id=None if user else ids.get("agent_id"), session_id=ids.get("run_id"), host="mem0"
        )
        return MemoryView(self._store._engine, context), {k: v for k, v in {**wanted, **ids}.items() if k != "user_id"}

    def _of(self, memory_id: str) -> tuple[MemoryView, Fact]:
        """Return a memory in its newest version, as its owner has it: mem0's ids need no name beside them."""
        engine = self._store._engine
        whole = View(ALL_SCOPES, engine.clock.now(), everything=True)
        found = engine.store.database.query(search.by_prefix, memory_id, whole)
        scope = Scope(found.scope, found.scope_target)
        view = MemoryView(engine, TurnContext(user_id=scope.user, agent_id=scope.agent, host="mem0"))
        return view, view.history(found.id).versions[-1]


def _flat(filters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and values that a memory must have.

    Raises:
        InputError: a filter is something else.
    """
    for name, value in filters.items():
        if name == "AND":
            for each in value:
                yield from _flat(each)
        elif name in ("OR", "NOT") or isinstance(value, Mapping | list) or value == "*":
            raise InputError(f"filter {name!r} is not understood; give names and plain values, joined by AND")
        else:
            yield name, value


def _all(view: MemoryView) -> Iterator[Fact]:
    offset = 0
    while page := view.get_all(limit=MAX_LIMIT, offset=offset):
        yield from page
        offset += len(page)


def _has(fact: Fact, given: Mapping[str, Any]) -> bool:
    return all(fact.metadata.get(name) == value for name, value in given.items())


def _shown(fact: Fact) -> dict[str, Any]:
    """Return a memory as mem0 shows it."""
    user = Scope(fact.scope, fact.scope_target).user
    given = {name: fact.metadata[name] for name in IDS if name in fact.metadata}
    return {
        "id": fact.id, "memory": fact.text, "hash": fact.normalized_hash, "categories": [fact.category],
        "metadata": {name: value for name, value in fact.metadata.items() if name not in IDS} or None,
        "created_at": _iso(fact.created_at), "updated_at": _iso(fact.last_confirmed_at or fact.created_at),
        **({"user_id": user} if user else {}), **given,
    }  # fmt: skip


def _iso(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat()
