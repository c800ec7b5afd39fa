"""A store as one caller has it, in the words of the field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from perdure.api.facade import Facade
from perdure.engine.composing import in_search
from perdure.errors import InputError, ScopeError, StoreClosedError, expect, refused
from perdure.hooks.types import Channel, Messages, Recall
from perdure.recall.pipeline import Asked
from perdure.recall.receipt import Receipt
from perdure.store import history, lifecycle, listing, search
from perdure.store.fact import Fact, tags_of
from perdure.store.safe import TEXTS, safe_fact
from perdure.store.scope import Scope
from perdure.store.sql import newest
from perdure.store.transaction import Author, StoredVector, Transaction
from perdure.store.triggers import checked, origin_of
from perdure.text.clean import clean
from perdure.text.timestamps import Moment, moment

if TYPE_CHECKING:
    from perdure.api.explain import Why
    from perdure.api.fact_search import Hit
    from perdure.api.stored import Stored
    from perdure.store.history import History

PATIENCE = 30.0
_Aimed = tuple[tuple[str, ...], str, Mapping[str, StoredVector]]
"""Triggers, their origin, and their vectors by text."""


class _Identified(Protocol):
    @property
    def id(self) -> str:
        """The id of a memory."""


Named = str | _Identified
"""A memory, a search hit, an id, or an id prefix."""


class MemoryView(Facade):
    """One caller's view of a store: it reads, searches and changes only that. Obtained from `Memory.for_user`.

    The id of another user's memory is treated as if it did not exist.

    Example:
        with Memory() as memory:
            ada = memory.for_user("ada")
            ada.add("I take my tea without milk.")
            print([hit.fact.text for hit in ada.search("How do I take my tea?")])
    """

    _looks = True
    """Whether `why` also explains a look; an agent asks for its turns."""

    def add(self, said: str | Messages, **given: Any) -> Sequence[Fact]:
        """Store a text as it is, or what capture finds in messages. The first call waits until the model is loaded.

        Args:
            said: a text, or a list of messages, such as `[{"role": "user", "content": "I own a boat."}]`, in the form
                of OpenAI, Anthropic, Google or LangChain, whose own objects are accepted. Only what a person said is
                read; tool calls, their results, images and system messages are ignored.
            given: for a text, the arguments of `store`; for messages `metadata`, for all memories made of them.

        Returns:
            What was added. For messages, the memories captured so far: the messages are safe on disk, and
            anything that takes longer than half a minute is added later.

        Raises:
            InputError: a message has an unknown role or shape, or see `store`, as for the errors below.
            ScopeError, StoreError: see `store`.
        """
        # What is stored before the model has loaded can be found by its words alone, for a while.
        self._engine.model.wait(PATIENCE)
        if isinstance(said, str):
            return [self.store(said, **given)]
        from perdure.api.turns import Turns, understood

        messages, metadata = understood(said), given.pop("metadata", None) or {}
        if given:
            raise InputError(f"{', '.join(given)} cannot be given for messages; store each text separately")
        lifecycle.checked({"metadata": metadata})
        store, session = self._engine.store, self._context.session_id
        since = store.database.query(newest)
        Turns(self._engine, self._context).after(messages, True, replace(self._context, metadata=metadata))
        self._engine.settle(PATIENCE)
        found = store.database.query(history.changes, self._audience, since, -1)
        added = [each.fact for each in found if each.action == "add" and each.session == session]
        # A later message may have taken the place of what an earlier one said.
        return [fact for fact in added if fact.superseded_at is None and fact.forgotten_at is None]

    def store(
        self,
        text: str,
        *,
        category: str | None = None,
        importance: float = 0.5,
        entity: str | None = None,
        key: str | None = None,
        value: str | None = None,
        why: str | None = None,
        tags: str | Iterable[str] | None = None,
        decay_class: str | None = None,
        scope: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        channel: Channel = Channel.LIBRARY,
        supersedes: str | None = None,
        triggers: Sequence[str] | None = None,
    ) -> Stored:
        """Store a memory; it is on disk when this returns. Omitted values are derived from the text.

        Args:
            text: the memory.
            category: see `Fact`, as for the arguments below.
            importance: 0 to 1.
            entity: what the memory is about.
            key: the attribute of the entity.
            value: the attribute's value.
            why: the reason.
            tags: in place of detected ones: a list of strings, or one comma-separated string.
            decay_class: how long it is kept; None: permanently, unless its text says when it ends.
            metadata: JSON values.
            scope: whom it belongs to, such as "agent:main user:*" for all users of an agent, or "global" for
                everybody who uses this store; None: the caller.
            channel: where it comes from.
            supersedes: id of the memory it replaces.
            triggers: up to eight prompts, of up to 200 characters each, for which it matters.

        Returns:
            The memory as stored; or an existing one that says the same, now confirmed; or the one it withdraws. It says
            which, what it replaced, and which secrets were left out.

        Raises:
            InputError: a value is invalid.
            ScopeError: the caller may not write to this scope.
            StoreError: it could not be written.
        """
        from perdure.api.stored import redacted, written
        from perdure.capture.explicit import Given, explicit_fact

        replaced = self._own(supersedes) if supersedes else None
        home = self._place(replaced, scope)
        given = Given(category, importance, entity, key, value, why, tags, decay_class, metadata)
        author, engine, now = self._author(channel), self._engine, self._engine.clock.now()
        aimed = self._aimed(triggers, author)
        clean = explicit_fact(text, given, home, author.channel, now, engine.store.zone, engine.categories)
        [prepared] = engine.writer.prepare([clean.fact], now)
        with engine.store.write(author) as tx:
            done = written(tx, engine.writer, prepared, author.channel, replaced.id if replaced else None)
            _aim(tx, done, aimed)
        return redacted(engine.store, done, clean.redacted, author.channel)

    def update(self, fact_id: Named, **values: Any) -> Stored:
        """Change a memory. A new text creates a new version with a new id; the old one stays for `as_of` and undo.

        When it was stored and said (`created_at`, `source_date`) stays as it was.

        Args:
            fact_id: its id, or the beginning of it.
            values: new values: text, why, category, importance, entity, key, value, tags, decay_class, metadata... Also
                `triggers` (see `store`): these replace the ones this caller gave before, but not those of
                others. An empty list removes them.

        Raises:
            InputError: a value is invalid.
            NotFoundError, AmbiguousIdError: see `perdure.errors`.
        """
        from perdure.api.stored import Outcome, redacted, stored
        from perdure.capture.describe import check_category
        from perdure.capture.lifetimes import renewed

        author, engine = self._author(), self._engine
        old, aimed = self._own(fact_id), self._aimed(values.pop("triggers", None), author)
        values = lifecycle.checked(values)
        if "category" in values:
            check_category(values["category"], engine.categories)
        clean = safe_fact(replace(old, **{name: value for name, value in values.items() if name in TEXTS}))
        now = engine.clock.now()
        [prepared] = engine.writer.prepare([clean.fact], now)
        found = {"tags": prepared.fact.tags, **renewed(old, clean.fact, now, engine.store.zone)}
        with engine.store.write(author) as tx:
            fact = lifecycle.update(tx, old.id, values, prepared.vector, found)
            gone = [] if fact.id == old.id else [tx.fact(old.id)]
            done = stored(fact, Outcome.REPLACED if gone else Outcome.STORED, gone, tx.batch)
            _aim(tx, done, aimed)
        return redacted(engine.store, done, clean.redacted, author.channel)

    def forget(self, fact_id: Named) -> Fact:
        """Leave a memory out of every answer from now on; `unforget` and `undo` restore it."""
        old = self._own(fact_id)
        with self._engine.store.write(self._author()) as tx:
            return lifecycle.forget(tx, old.id)

    def search(
        self, query: str, *, limit: int = 10, category: str | None = None, tag: str | None = None,
        as_of: Moment | None = None, scope: str | None = None, metadata: Mapping[str, Any] | None = None,
    ) -> Sequence[Hit]:  # fmt: skip
        """Return the memories nearest to a query, best first, each with its score; there is no minimum score.

        The first call waits until the model is loaded.

        Args:
            query: what to search for.
            limit: maximum number of results.
            category: only this category.
            tag: only memories with this tag.
            as_of: as of this time: a date, ISO 8601 or epoch seconds.
            scope: only this scope, such as "user:ada"; None: all that the caller may read.
            metadata: only memories with these plain values in their metadata, each alone or in a list.

        Raises:
            InputError: the query is empty, the limit out of range, or a value invalid.
            ScopeError: the scope is malformed.
        """
        from perdure.api.fact_search import search_facts

        expect(query, str, "a text", "query")
        self._engine.model.wait(PATIENCE)
        chosen = _chosen(category, scope, metadata)
        return search_facts(self._engine, self._view(tag=tag, as_of=as_of), query, chosen, limit)

    def get_all(
        self, *, limit: int = 100, offset: int = 0, category: str | None = None, tag: str | None = None,
        scope: str | None = None, metadata: Mapping[str, Any] | None = None,
    ) -> Sequence[Fact]:  # fmt: skip
        """Return memories, newest first.

        Args:
            limit: maximum number of results.
            offset: number of results to skip.
            category: only this category.
            tag: only memories with this tag.
            scope: only this scope; see `search`, as for `metadata`.
            metadata: only memories with these values.

        Raises:
            InputError: limit or offset are out of range, or a value is invalid.
            ScopeError: the scope is malformed.
        """
        chosen = _chosen(category, scope, metadata)
        return self._engine.store.database.query(listing.list_facts, self._view(tag=tag), chosen, limit, offset)

    def delete(self, fact_id: Named) -> Fact:
        """Forget a memory; see `forget`."""
        return self.forget(fact_id)

    def history(self, fact_id: Named) -> History:
        """Return all versions of a memory, even if it is forgotten, and the changes made to them.

        Raises:
            InputError, NotFoundError, AmbiguousIdError: see `perdure.errors`.
        """
        return self._engine.store.database.query(history.history, fact_id, self._view())

    def recall(
        self,
        prompt: str,
        *,
        as_of: Moment | None = None,
        include_superseded: bool = False,
        tag: str | None = None,
        expand: bool | None = None,
        receipt_to: Callable[[Receipt], None] | None = None,
    ) -> Recall | None:
        """Return the block for a prompt, as a host would get it, or None if nothing is relevant.

        Args:
            prompt: the user's prompt.
            as_of: recall as of this time: a date, ISO 8601 or epoch seconds.
            include_superseded: include previous versions.
            tag: only memories with this tag, found by keyword: nothing is embedded.
            expand: also search rewordings by the language model; None: as `llm.expansion` says.
            receipt_to: receives the receipt, for `why`; then nothing is counted or written to the store.
        """
        wanted = None if tag is None else tags_of(tag)
        asked = Asked(moment(as_of), include_superseded, wanted, expand=in_search(self._engine.settings, expand))
        expect(prompt, str, "a text", "prompt")
        if receipt_to is not None and not callable(receipt_to):
            raise refused(receipt_to, "a function that takes a Receipt", "receipt_to")
        if self._engine.closed:
            raise StoreClosedError("this Memory is closed; reopen it with Memory.open()")
        return self._engine.recall(prompt, self._context, asked, receipt_to)

    def why(self, turn: str | Receipt | None = None) -> Why:
        """Return what a turn of the caller considered, what came up, and why the rest did not.

        Args:
            turn: id of the turn's recall (`Recall.receipt_id`) or its first eight digits; or a receipt; None: the last
                turn, or look that `perdure recall` took since.

        Raises:
            NotFoundError: there is no such turn.
        """
        from perdure.api.explain import why

        # A receipt is written behind the turn.
        self._engine.keeper.settle(PATIENCE)
        return why(self._engine.store, self._view(), turn, looks=self._looks)

    def why_not(self, fact_id: str, turn: str | Receipt | None = None) -> str:
        """Return in a sentence why a memory did not come up in a turn, or that it did.

        Raises:
            NotFoundError, AmbiguousIdError: see `perdure.errors`.
        """
        from perdure.api.explain import why_not

        self._engine.keeper.settle(PATIENCE)
        return why_not(self._engine.store, self._view(), fact_id, turn, looks=self._looks)

    def get(self, fact_id: Named) -> Fact:
        """Return the memory with this id, or the only one whose id begins with it (at least 8 digits).

        Raises:
            InputError, NotFoundError, AmbiguousIdError: see `perdure.errors`.
        """
        return self._engine.store.database.query(search.by_prefix, fact_id, self._view(include_superseded=True))

    def _place(self, replaced: Fact | None, scope: str | None) -> Scope:
        """Return where a memory is stored: what it replaces has to be there."""
        there = Scope(replaced.scope, replaced.scope_target) if replaced else None
        home = self._audience.writable(there if scope is None else Scope.parse(scope))
        if replaced is not None and there != home:
            raise ScopeError(f"memory {replaced.id} belongs to {there}; its replacement cannot go to {home}")
        return home

    def _aimed(self, texts: Sequence[str] | None, author: Author) -> _Aimed | None:
        """Return triggers as `Transaction.put_triggers` takes them; None: the caller says nothing of them."""
        if texts is None:
            return None
        from perdure.index.aiming import aimed

        found = checked(texts)
        return found, origin_of(author.channel), aimed(self._engine.model.embedder(), self._engine.model.scale(), found)

    def _own(self, fact_id: Named) -> Fact:
        """Return a fact that is to be changed, also if it is forgotten or superseded."""
        view = replace(self._view(), everything=True)
        fact = self._engine.store.database.query(search.by_prefix, fact_id, view)
        self._audience.writable(Scope(fact.scope, fact.scope_target))
        return fact


def _aim(tx: Transaction, done: Stored, aimed: _Aimed | None) -> None:
    if aimed is not None and done.id not in {fact.id for fact in done.gone}:
        tx.put_triggers(done.id, *aimed)


def _chosen(category: str | None, scope: str | None, metadata: Mapping[str, Any] | None) -> listing.Filter:
    """Return the filter for these memories."""
    expect(metadata, Mapping | None, "names and plain values", "metadata")
    marks = tuple(
        (clean(name), clean(value) if isinstance(value, str) else value) for name, value in (metadata or {}).items()
    )
    if strange := [name for name, value in marks if not isinstance(value, str | int | float | None)]:
        raise InputError(f"metadata {strange[0]!r} can only be searched by a string, a number, True, False or None")
    return listing.Filter(category=category, scope=None if scope is None else Scope.parse(scope), marks=marks)
