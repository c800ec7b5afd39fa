"""perdure as the store of a LangGraph graph: `graph.compile(store=PerdureStore())`."""

from __future__ import annotations

import asyncio
import datetime as dt
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from perdure.api.facade import Facade
from perdure.api.memory import Memory
from perdure.api.view import PATIENCE, MemoryView
from perdure.errors import InputError, ModelError, refused
from perdure.extras import need
from perdure.hooks.types import Channel
from perdure.index.vector_index import scan
from perdure.store import lifecycle, notices
from perdure.store.fact import Fact
from perdure.store.listing import MAX_LIMIT, Chosen, Filter, every, list_facts
from perdure.store.safe import safe_fact
from perdure.store.scope import Audience, bound
from perdure.store.sql import Connection, run
from perdure.store.transaction import MAX_TEXT

need("langgraph.store.base", "langchain")

from langgraph.store import base  # noqa: E402

_Namespace = tuple[str, ...]
_Name = tuple[_Namespace, str]
_ITEM = "langgraph item"
"""The category of the facts that hold items."""
_SESSION = "langgraph"
"""The session whose facts they are, so that no turn recalls them and nothing that is said takes their place."""
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq, "$ne": operator.ne, "$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt,
    "$lte": operator.le,
}  # fmt: skip


class PerdureStore(Facade, base.BaseStore):
    """Stores a graph's items on disk, for the caller of its memory only.

    Example:
        with Memory() as memory:
            store: BaseStore = PerdureStore(memory.for_user("ada"))  # builder.compile(store=store)
    """

    supports_ttl = True

    def __init__(
        self, memory: MemoryView | None = None, *, fields: Sequence[str] = ("$",), ttl: base.TTLConfig | None = None,
        **settings: Any,
    ) -> None:  # fmt: skip
        """Use an open memory, which its owner closes, or open one.

        Args:
            memory: the owner of the items: a `Memory`, or the view of one user; None: one is opened.
            fields: JSON paths of the parts of a value to search, where `put` names none; "$" is all of it.
            ttl: LangGraph's settings for items that expire: `default_ttl` in minutes, `refresh_on_read`.
            settings: arguments of `Memory.open`.

        Raises:
            InputError: settings are given for a memory that is already open.
            SettingsError, StoreError: see `Memory.open`.
        """
        if memory is not None and settings:
            raise InputError(
                f"{', '.join(settings)} cannot be set on a Memory that is already open; pass them to Memory.open"
            )
        self._owned = Memory.open(**settings) if memory is None else None
        opened = memory or self._owned
        if not isinstance(opened, MemoryView):
            raise InputError(f"a store takes an open Memory or a view of one, not {memory!r}")
        super().__init__(opened._engine, replace(opened._context, host=_SESSION))
        self._fields, self.ttl_config = tuple(fields), ttl

    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Run operations in one transaction; reads see the state before any put.

        Raises:
            InputError: a value is not a JSON object, or a namespace or key cannot be stored.
            InvalidNamespaceError: a label of a namespace is empty or contains a full stop.
            ScopeError, StoreError: the caller has no write access, or writing failed.
        """
        results: list[base.Result] = []
        puts: dict[_Name, base.PutOp] = {}
        for op in ops:
            match op:
                case base.GetOp():
                    results.append(self._got(op))
                case base.SearchOp():
                    results.append(self._searched(op))
                case base.ListNamespacesOp():
                    results.append(self._listed(op))
                case base.PutOp():
                    puts[op.namespace, op.key] = op
                    results.append(None)
        if puts:
            self._put(puts)
        return results

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Run `batch` in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def close(self) -> None:
        """Close the memory, if it was opened here."""
        if self._owned is not None:
            self._owned.close()

    @property
    def _audience(self) -> Audience:
        # Who may write nothing has no items either.
        super()._audience.writable()
        home = bound("session", _SESSION, self._context.agent_id, self._context.user_id)
        return Audience(frozenset({home}), home)

    def _got(self, op: base.GetOp) -> base.Item | None:
        fact = self._engine.store.database.query(self._item, op.namespace, op.key)
        if fact is None:
            return None
        self._refresh([fact], op.refresh_ttl)
        return base.Item(**_values(fact))

    def _searched(self, op: base.SearchOp) -> list[base.SearchItem]:
        found: Iterator[Fact] | list[Fact] = (
            fact for fact in every(self._engine.store, self._below(op.namespace_prefix))
            if _fits(fact.metadata["value"], op.filter or {})
        )  # fmt: skip
        scores: Mapping[str, float] = {}
        if op.query:
            facts = list(found)
            scores = self._scores(op.query, [fact.id for fact in facts if fact.metadata["searched"]])
            # What is not searched comes last, without a score.
            found = iter(sorted(facts, key=lambda fact: -scores.get(fact.id, -2.0)))
        page = list(islice(found, op.offset, op.offset + op.limit))
        self._refresh(page, op.refresh_ttl)
        return [base.SearchItem(**_values(fact), score=scores.get(fact.id)) for fact in page]

    def _listed(self, op: base.ListNamespacesOp) -> list[_Namespace]:
        database = self._engine.store.database
        condition, values = self._below(()).sql(database.dialect)
        sql = f"SELECT DISTINCT facts.entity FROM facts WHERE {condition}"
        known = [tuple(row[0].split(".")) for row in database.query(run, sql, values)]
        wanted = (name for name in known if all(_is_like(name, *each) for each in op.match_conditions or ()))
        return sorted({name[: op.max_depth] for name in wanted})[op.offset : op.offset + op.limit]

    def _put(self, puts: Mapping[_Name, base.PutOp]) -> None:
        store, now = self._engine.store, self._engine.clock.now()
        # What is put before the model has loaded gets its vector later.
        self._engine.model.wait(PATIENCE)
        drafts = {name: self._draft(op, op.value, now) for name, op in puts.items() if op.value is not None}
        prepared = dict(
            zip(drafts, self._engine.writer.prepare([fact for fact, _ in drafts.values()], now), strict=True)
        )
        with store.write(self._author()) as tx:
            for name in puts:
                old, new = self._item(tx.connection, *name), prepared.get(name)
                if new is None:
                    _ = old and lifecycle.forget(tx, old.id)
                elif old is None:
                    tx.add(new.fact, new.vector)
                else:
                    kept = {**new.fact.metadata, "since": old.metadata["since"]}
                    lifecycle.succeed(tx, old.id, replace(new.fact, metadata=kept), new.vector, "put again")
        if kinds := [kind for _, redacted in drafts.values() for kind in redacted]:
            notices.tell_left_out(store, kinds)

    def _draft(self, op: base.PutOp, value: object, now: float) -> tuple[Fact, Sequence[str]]:
        """Return the fact that is to hold an item, and the kinds of secrets that were left out of it."""
        if not isinstance(value, Mapping):
            raise refused(value, "a dict of JSON values", "value")
        fields = self._fields if op.index is None else op.index or ()
        try:
            texts = [text for path in fields for text in base.get_text_at_path(value, path)]
        except (TypeError, ValueError) as error:
            raise InputError(f"the value of {op.key[:80]!r} is not a JSON object: {error}") from None
        name, home = ".".join(op.namespace), self._home()
        clean = safe_fact(Fact(
            "\n".join(texts)[:MAX_TEXT] if any(text.strip() for text in texts) else f"{name}.{op.key}",
            category=_ITEM, entity=name, source=_SESSION, channel=Channel.LIBRARY, decay_class="permanent",
            created_at=now, expires_at=None if op.ttl is None else now + 60 * op.ttl, preserve_tags=True,
            scope=home.kind, scope_target=home.target, extraction_method="explicit",
            # Two items are no one's conversation: forgetting one takes nothing that quotes it along.
            provenance_session=f"{name}.{op.key}",
            metadata={"key": op.key, "value": dict(value), "since": now, "ttl": op.ttl, "searched": bool(texts)},
        ))  # fmt: skip
        if _name(clean.fact) != (_checked(op.namespace), op.key):
            raise InputError(
                f"key {clean.fact.metadata['key']!r} or its namespace, {clean.fact.entity!r}, holds a secret or a"
                " character that cannot be stored; use another"
            )
        return clean.fact, clean.redacted

    def _item(self, connection: Connection, namespace: _Namespace, key: str) -> Fact | None:
        chosen = Filter(entity=".".join(_checked(namespace)), marks=(("key", key),))
        facts = list_facts(connection, self._view(), chosen, MAX_LIMIT)
        return next((fact for fact in facts if fact.category == _ITEM and _name(fact) == (namespace, key)), None)

    def _below(self, prefix: _Namespace) -> Chosen:
        chosen = Filter(category=_ITEM, within=".".join(_checked(prefix)) or None)
        return Chosen(self._audience, self._engine.clock.now(), chosen=chosen)

    def _scores(self, query: str, ids: Collection[str]) -> Mapping[str, float]:
        """Return how near items are to a query, -1 to 1; nothing without a model."""
        self._engine.model.wait(PATIENCE)
        leg = self._engine.model.leg()
        if leg is None or not ids:
            return {}
        try:
            [vector] = leg.embedder.embed([query], query=True)
        except ModelError:
            return {}
        space, view = leg.embedder.identity.id, self._view()
        hits = scan(self._engine.store.database, space, vector, view, len(ids), among=ids)
        return {hit.id: hit.cosine for hit in hits}

    def _refresh(self, facts: Sequence[Fact], asked: bool) -> None:
        """Let the lifetimes of items that were read begin anew."""
        store = self._engine.store
        mortal = [fact for fact in facts if fact.metadata["ttl"] is not None] if asked and not store.refusal else []
        if not mortal:
            return
        with store.write(self._author()) as tx:
            for fact in mortal:
                tx.change(fact.id, "use", {"expires_at": tx.now + 60 * fact.metadata["ttl"], "last_accessed": tx.now})


def _checked(namespace: _Namespace) -> _Namespace:
    """Return a namespace if its labels can be joined by full stops."""
    for label in namespace:
        if not isinstance(label, str) or not label or "." in label:
            raise base.InvalidNamespaceError(f"label {label!r} of a namespace must be a string without dots")
    return namespace


def _name(fact: Fact) -> _Name:
    return tuple((fact.entity or "").split(".")), fact.metadata["key"]


def _values(fact: Fact) -> dict[str, Any]:
    namespace, key = _name(fact)
    since, at = (dt.datetime.fromtimestamp(each, dt.UTC) for each in (fact.metadata["since"], fact.created_at))
    return {"namespace": namespace, "key": key, "value": fact.metadata["value"], "created_at": since, "updated_at": at}


def _fits(value: Any, wanted: Any) -> bool:
    """Return whether a value is as a filter wants it, as LangGraph's own stores compare."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compared(value, name, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(_fits(value.get(name), other) for name, other in wanted.items())
    if isinstance(wanted, list | tuple):
        several = isinstance(value, list | tuple) and len(value) == len(wanted)
        return several and all(map(_fits, value, wanted))
    return bool(value == wanted)


def _compared(value: Any, name: str, other: Any) -> bool:
    if name not in _OPERATORS:
        raise InputError(f"operator {name!r} is unknown; use one of {', '.join(_OPERATORS)}")
    if name in ("$eq", "$ne"):
        return _OPERATORS[name](value, other)
    try:
        return _OPERATORS[name](float(value), float(other))
    except (TypeError, ValueError):
        # What is no number is neither more nor less than one.
        return False


def _is_like(namespace: _Namespace, end: str, path: Sequence[str]) -> bool:
    """Return whether a namespace begins with a path, or ends with it; "*" stands for any label."""
    part = namespace[: len(path)] if end == "prefix" else namespace[-len(path) :] if path else ()
    return len(part) == len(path) and all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))
