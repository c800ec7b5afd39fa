"""The library: a store, opened for one caller."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from perdure.capture.explicit import Given, explicit_fact
from perdure.capture.pipeline import stored
from perdure.clock import Clock
from perdure.errors import ModelError
from perdure.hooks.types import Channel, Messages, Recall, TurnContext
from perdure.plugin.engine import Engine, audience_of
from perdure.plugin.paths import data_folder
from perdure.plugin.settings import Settings
from perdure.plugin.status import Status, status_of
from perdure.store import journal, search
from perdure.store.fact import Fact
from perdure.store.journal import Change
from perdure.store.scope import Scope
from perdure.store.search import View
from perdure.store.slots import vector_text
from perdure.store.transaction import Author, StoredVector
from perdure.text.normalise import fingerprint

PATIENCE = 30.0


class Memory:
    """Long-term memory in one data folder.

    Example:
        with Memory.open() as memory:
            memory.store("The staging database is called heron.")
            print(memory.recall("Which database is staging?"))
    """

    def __init__(self, engine: Engine, context: TurnContext) -> None:
        self._engine = engine
        self._context = context

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        agent: str | None = None,
        user: str | None = None,
        clock: Clock | None = None,
        host_config: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Memory:
        """Open the store, creating it if need be. Without arguments it works in the user's own scope.

        Args:
            home: the data folder; None: PERDURE_HOME, else the installed host's, else the user's own.
            agent: act for this agent: also see its memories, and store new ones there.
            user: another user than the owner of this machine.
            clock: where the time comes from.
            host_config: the plugin's part of a host's config.
            settings: any setting by name.

        Raises:
            SettingsError: a setting is unknown or does not fit.
            StoreError: the folder cannot be used; nothing in it has been changed.
        """
        loaded = Settings.load(settings, host_config=host_config)
        engine = Engine(data_folder(home), loaded, clock=clock)
        return cls(engine, TurnContext(agent_id=agent, user_id=user, host="library"))

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
        tags: Iterable[str] | None = None,
        decay_class: str | None = None,
        scope: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        channel: Channel = Channel.LIBRARY,
    ) -> Fact:
        """Store a memory; it is on disk when this returns. What is left out is made out from the text.

        Returns:
            The fact as stored, or the one that said the same before, now confirmed.

        Raises:
            InputError: a value does not fit.
            ScopeError: the caller may not write to this scope.
            StoreError: it could not be written.
        """
        audience = audience_of(self._context)
        home = audience.writable(Scope.parse(scope) if scope else None)
        given = Given(category, importance, entity, key, value, why, tags, decay_class, metadata)
        fact = explicit_fact(text, given, home, channel)
        vector = self._vector(vector_text(fact.text, fact.entity, fact.key))
        engine = self._engine
        with engine.store.write(Author(channel, self._context.host)) as tx:
            view = replace(self._view(), audience=replace(audience, scopes=frozenset({home})))
            same = search.by_hash(tx.connection, fingerprint(fact.text), view)
            if same:
                return tx.reinforce(same[0].id)
            return tx.add(fact, vector)

    def recall(self, prompt: str) -> Recall | None:
        """Return the block for a prompt, as a host would get it, or None if nothing is relevant."""
        return self._engine.recall(prompt, self._context)

    def before_turn(self, prompt: str, context: TurnContext) -> Recall | None:
        """Recall for a host's turn; see `Recall`. None also when `auto_recall` is off."""
        if not self._engine.settings.auto_recall or context.trigger != "user":
            return None
        return self._engine.recall(prompt, context)

    def after_turn(self, messages: Messages, success: bool, context: TurnContext) -> int:
        """Take in a host's turn and return as soon as it is on disk.

        Returns:
            How many messages were taken in: none of failed turns, or when `auto_capture` is off.

        Raises:
            StoreError: they could not be written.
        """
        if not success or not self._engine.settings.auto_capture or context.trigger != "user":
            return 0
        return self._engine.capture(messages, context)

    def get(self, fact_id: str) -> Fact:
        """Return the fact with this id, or the only one whose id begins so (at least 8 digits).

        Raises:
            InputError, NotFoundError, AmbiguousIdError: see `perdure.errors`.
        """
        view = replace(self._view(), include_superseded=True)
        with self._engine.store.database.read() as connection:
            return search.by_prefix(connection, fact_id, view)

    def lookup(self, entity: str, key: str | None = None, *, tag: str | None = None) -> list[Fact]:
        """Return the facts in a slot, most confident first, then newest."""
        with self._engine.store.database.read() as connection:
            return search.lookup(connection, entity, key, replace(self._view(), tag=tag))

    def changes(self, since: int = 0, limit: int = 1000) -> list[Change]:
        """Return what was done to memories after change number `since`, oldest first."""
        with self._engine.store.database.read() as connection:
            return journal.changes(connection, audience_of(self._context), since, limit)

    def live_ids(self) -> set[str]:
        """Return the ids of all facts that the caller may read and that may be in an answer now."""
        with self._engine.store.database.read() as connection:
            return search.ids(connection, self._view())

    def status(self) -> Status:
        """Return how the store is."""
        return status_of(self._engine)

    def ready(self, timeout: float = PATIENCE) -> bool:
        """Wait until the model is loaded; return whether there is one. Nothing needs to wait for it."""
        return self._engine.model.wait(timeout)

    def settle(self, timeout: float = PATIENCE) -> bool:
        """Wait until all that turns have left behind is captured; return whether it is (seconds)."""
        return self._engine.settle(timeout)

    def sync_index(self, timeout: float = 120.0) -> bool:
        """Have the worker bring the derived index up to date; return whether it is, in time (seconds)."""
        if self._engine.store.space() is None:
            return False
        deadline = time.monotonic() + timeout
        while (self._engine.store.outbox_state().waiting) and time.monotonic() < deadline:
            self._engine.start_worker()
            time.sleep(0.05)
        return not self._engine.store.outbox_state().waiting

    def embed(self, text: str) -> list[float] | None:
        """Return the vector that a query of this text is searched with; None without a model.

        Raises:
            ModelError: the model failed.
        """
        embedder = self._engine.model.embedder()
        return None if embedder is None else [float(value) for value in embedder.embed([text], query=True)[0]]

    def close(self) -> None:
        """Finish what was begun and close all files. Closing twice is no error."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _view(self) -> View:
        return View(audience_of(self._context), self._engine.clock.now())

    def _vector(self, text: str) -> StoredVector | None:
        embedder = self._engine.model.embedder()
        if embedder is None:
            return None
        try:
            return stored(embedder.embed([text]), embedder.identity.id)[0]
        except ModelError:
            return None  # the worker gives it one later
