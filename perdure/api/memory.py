"""The library: a store, opened for one caller."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from perdure.api.facade import Facade
from perdure.api.files import Files
from perdure.api.turns import Turns
from perdure.clock import Clock
from perdure.engine.composing import in_search
from perdure.engine.engine import Engine, OwnersContext, audience_of
from perdure.engine.paths import data_folder
from perdure.engine.settings import Settings
from perdure.errors import AmbiguousIdError, InputError, NotFoundError, ScopeError, SettingsError, StoreClosedError
from perdure.hooks.types import Channel, Recall, TurnContext
from perdure.parts import part
from perdure.recall.pipeline import Asked
from perdure.recall.receipt import Receipt
from perdure.store import history, lifecycle, links, search
from perdure.store.aliases import Names, naming
from perdure.store.fact import Fact
from perdure.store.history import Change
from perdure.store.links import Link, Related
from perdure.store.safe import TEXTS, safe_fact
from perdure.store.scope import Scope

if TYPE_CHECKING:
    from perdure.api.admin import Admin
    from perdure.api.aliases import Aliases
    from perdure.api.evaluate import Evaluation
    from perdure.api.explain import Why
    from perdure.api.status import Status
    from perdure.api.stored import Stored
    from perdure.api.upkeep import Upkeep
    from perdure.store.undo import Undone
    from perdure.vault.vault import Vault

PATIENCE = 30.0
Named = str | Fact
"""A memory, or its id, or the beginning of it."""
_MEANT = {"user_id": "user", "agent_id": "agent", "path": "home", "folder": "home", "scope": "scopes"}
"""Arguments of `Memory.open` by other names."""


class Memory(Facade):
    """Long-term memory in one data folder.

    Example:
        with Memory.open() as memory:
            memory.store("The staging database is called heron.")
            print(memory.recall("Which database is staging?"))
    """

    def __init__(self, engine: Engine | None = None, context: TurnContext | None = None) -> None:
        if not isinstance(engine, Engine) or context is None:
            raise InputError("a memory is opened by Memory.open(), or by Memory.open(FOLDER)")
        super().__init__(engine, context)

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        agent: str | None = None,
        user: str | None = None,
        scopes: Sequence[str] = (),
        clock: Clock | None = None,
        host_config: Mapping[str, Any] | None = None,
        guest: bool = False,
        whole: bool = False,
        **settings: Any,
    ) -> Memory:
        """Open the store, creating it if need be. Without arguments it works in the user's own scope.

        One that cannot be written is opened to be read: `Status.read_only` says why.

        Args:
            home: the data folder; None: PERDURE_HOME, else the installed host's, else the user's own.
            agent: act for this agent: also see its memories, and store new ones there.
            user: another user than the owner of this machine; of an agent's memories only theirs and those for all.
            scopes: further ones to read, as "project:heron" or "custom:team".
            clock: where the time comes from.
            host_config: the plugin's part of a host's config.
            guest: only look in: no store is made, and what others left behind is left to them.
            whole: where nobody is named, see and change all that is the owner's: of every agent, session and project,
                but of no named user. For the owner's own tools, never for an agent.
            settings: any setting by name.

        Raises:
            SettingsError: a setting is unknown or does not fit.
            StoreError: the folder cannot be used; nothing in it has been changed.
        """
        for name in settings.keys() & _MEANT.keys():
            raise SettingsError(f"setting {name!r} is unknown; did you mean {_MEANT[name]}?")
        loaded = Settings.load(settings, host_config=host_config)
        engine = Engine(data_folder(home), loaded, clock=clock, guest=guest)
        kind = OwnersContext if whole and agent is None and user is None and not scopes else TurnContext
        context = kind(agent_id=agent, user_id=user, scopes=tuple(scopes), host="library")
        try:
            engine.files.start(audience_of(context))
        except BaseException:
            engine.close()
            raise
        return cls(engine, context)

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
        supersedes: str | None = None,
    ) -> Stored:
        """Store a memory; it is on disk when this returns. What is left out is made out from the text.

        Args:
            text: the memory.
            category: see `Fact`, as for the next ones.
            importance: 0 to 1.
            entity: of its slot.
            key: of its slot.
            value: of its slot.
            why: the reason.
            tags: instead of those that its words give.
            decay_class: how long it lives; None: for good, unless its own words say when it ends.
            metadata: JSON values.
            scope: to whom it belongs, as "agent:main user:*" to all users of an agent; None: the caller.
            channel: by which way it comes in.
            supersedes: id of the memory whose place it takes.

        Returns:
            The fact as stored; or the one that said the same before, now confirmed; or the one it withdraws. It says
            which, what it took the place of, and which secrets were left out.

        Raises:
            InputError: a value does not fit.
            ScopeError: the caller may not write to this scope.
            StoreError: it could not be written.
        """
        from perdure.api.stored import redacted, written
        from perdure.capture.explicit import Given, explicit_fact

        replaced = self._own(supersedes) if supersedes else None
        there = Scope(replaced.scope, replaced.scope_target) if replaced else None
        home = self._audience.writable(Scope.parse(scope) if scope else there)
        if replaced is not None and there != home:
            raise ScopeError(f"fact {replaced.id} belongs to {there}; what takes its place cannot go to {home}")
        given = Given(category, importance, entity, key, value, why, tags, decay_class, metadata)
        engine = self._engine
        now = engine.clock.now()
        clean = explicit_fact(text, given, home, channel, now, engine.store.zone, engine.categories)
        [prepared] = engine.writer.prepare([clean.fact], now)
        with engine.store.write(self._author(channel)) as tx:
            done = written(tx, engine.writer, prepared, channel, replaced.id if replaced else None)
        return redacted(engine.store, done, clean.redacted, channel)

    def update(self, fact_id: Named, **values: Any) -> Stored:
        """Change a memory. New words make a new version with a new id; the old one stays for `as_of` and undo.

        Args:
            fact_id: its id, or the beginning of it.
            values: new values: text, why, category, importance, entity, key, value, tags, decay_class, metadata...

        Raises:
            InputError: a value does not fit.
            NotFoundError, AmbiguousIdError: see `perdure.errors`.
        """
        from perdure.api.stored import Outcome, redacted, stored
        from perdure.capture.lifetimes import renewed

        old, values = self._own(fact_id), lifecycle.checked(values)
        engine = self._engine
        clean = safe_fact(replace(old, **{name: value for name, value in values.items() if name in TEXTS}))
        now = engine.clock.now()
        [prepared] = engine.writer.prepare([clean.fact], now)
        found = {"tags": prepared.fact.tags, **renewed(old, clean.fact, now, engine.store.zone)}
        author = self._author()
        with engine.store.write(author) as tx:
            fact = lifecycle.update(tx, old.id, values, prepared.vector, found)
            gone = [] if fact.id == old.id else [tx.fact(old.id)]
            done = stored(fact, Outcome.REPLACED if gone else Outcome.STORED, gone, tx.batch)
        return redacted(engine.store, done, clean.redacted, author.channel)

    def forget(self, fact_id: Named) -> Fact:
        """Leave a memory out of every answer from now on; `unforget` and `undo` bring it back."""
        old = self._own(fact_id)
        with self._engine.store.write(self._author()) as tx:
            return lifecycle.forget(tx, old.id)

    def unforget(self, fact_id: Named) -> Fact:
        """Bring a forgotten memory back."""
        old = self._own(fact_id)
        with self._engine.store.write(self._author()) as tx:
            return lifecycle.unforget(tx, old.id)

    def pin(self, fact_id: Named, pinned: bool = True) -> Fact:
        """Keep a memory from ever being evicted, or no longer."""
        old = self._own(fact_id)
        with self._engine.store.write(self._author()) as tx:
            return lifecycle.pin(tx, old.id, pinned)

    def link(
        self, source: str | Fact, target: str | Fact, link_type: str = "RELATED_TO", strength: float = 1.0
    ) -> Link:
        """Link two memories; see `perdure.store.links.TYPES`."""
        one, other = self._own(source), self._own(target)
        with self._engine.store.write(self._author()) as tx:
            return links.link(tx, one.id, other.id, link_type, strength)

    def unlink(
        self, source: str | Fact, target: str | Fact, link_type: str = "RELATED_TO", *, dry_run: bool = False
    ) -> None:
        """Remove a link; `dry_run` only sees whether that can be done."""
        one, other = self._own(source), self._own(target)
        with self._engine.store.write(self._author(), keep=not dry_run) as tx:
            links.unlink(tx, one.id, other.id, link_type)

    def related(self, fact_id: Named, depth: int = 2, *, as_of: float | None = None) -> list[Related]:
        """Return the memories that links lead to from one, in both directions, nearest first."""
        return self._engine.store.database.query(links.related, [self.get(fact_id).id], self._view(as_of=as_of), depth)

    def undo(self, batch: str | None = None, *, session: str | None = None, dry_run: bool = False) -> Undone:
        """Take back the last change, one by its batch, or all of a session; `dry_run` only returns what that would do.

        Raises:
            NotFoundError: there is nothing to undo.
        """
        from perdure.store.undo import undo_chosen

        with self._engine.store.write(self._author(), keep=not dry_run) as tx:
            return undo_chosen(tx, self._audience, batch, session)

    def recall(
        self,
        prompt: str,
        *,
        as_of: float | None = None,
        include_superseded: bool = False,
        tag: str | None = None,
        expand: bool | None = None,
        receipt_to: Callable[[Receipt], None] | None = None,
    ) -> Recall | None:
        """Return the block for a prompt, as a host would get it, or None if nothing is relevant.

        Args:
            prompt: what is asked.
            as_of: what was true at that time, epoch seconds.
            include_superseded: also former versions.
            tag: only memories with this tag, found by their words: nothing is embedded.
            expand: also ask in other words of the language model; None: as `recall_expansion` says.
            receipt_to: takes the receipt, for `why`; then nothing is counted or written to the store.
        """
        asked = Asked(as_of, include_superseded, tag, expand=in_search(self._engine.settings, expand))
        if not isinstance(prompt, str):
            raise InputError(f"a prompt is of type {type(prompt).__name__}; it must be a text")
        if self._engine.closed:
            raise StoreClosedError("this memory is closed; Memory.open() opens it anew")
        return self._engine.recall(prompt, self._context, asked, receipt_to)

    def evaluate(self, size: int = 50, seed: int = 0) -> Evaluation:
        """Ask for up to `size` memories in several ways and count what comes up; see `perdure.api.evaluate`."""
        from perdure.api.evaluate import evaluate

        return evaluate(self._engine, self._context, size, seed)

    def why(self, turn: str | Receipt | None = None) -> Why:
        """Return what was considered in a turn of the caller, what came up, and why the rest did not.

        Args:
            turn: id of the turn's recall (`Recall.receipt_id`) or its first eight digits; or a receipt; None: the last.

        Raises:
            NotFoundError: there is no such turn.
        """
        from perdure.api.explain import why

        return why(self._engine.store, self._view(), turn)

    def why_not(self, fact_id: str, turn: str | Receipt | None = None) -> str:
        """Return in a sentence why a memory did not come up in a turn, or that it did.

        Raises:
            NotFoundError, AmbiguousIdError: see `perdure.errors`.
        """
        from perdure.api.explain import why_not

        return why_not(self._engine.store, self._view(), fact_id, turn)

    def get(self, fact_id: Named) -> Fact:
        """Return the fact with this id, or the only one whose id begins so (at least 8 digits).

        Raises:
            InputError, NotFoundError, AmbiguousIdError: see `perdure.errors`.
        """
        return self._engine.store.database.query(search.by_prefix, fact_id, self._view(include_superseded=True))

    def has(self, fact_id: Named) -> bool:
        """Return whether there is a fact with this id, or exactly one whose id begins so."""
        try:
            return bool(self.get(fact_id))
        except (NotFoundError, AmbiguousIdError):
            return False

    def lookup(
        self, entity: str, key: str | None = None, *,
        tag: str | None = None, as_of: float | None = None, include_superseded: bool = False,
    ) -> list[Fact]:  # fmt: skip
        """Return the facts in a slot, also under other names of its entity, most confident first, then newest."""
        view = self._view(tag=tag, as_of=as_of, include_superseded=include_superseded)
        with self._engine.store.database.read() as connection:
            names = Names.of(naming(connection, view.audience, view.now))
            return search.lookup(connection, entity, key, view, others=names.beside(entity))

    def changes(self, since: int = 0, limit: int = 1000) -> list[Change]:
        """Return what was done to memories after change number `since`, oldest first."""
        return self._engine.store.database.query(history.changes, self._audience, since, limit)

    def live_ids(self) -> set[str]:
        """Return the ids of all facts that the caller may read and that may be in an answer now."""
        return self._engine.store.database.query(search.ids, self._view())

    def status(self) -> Status:
        """Return how the store is."""
        from perdure.api.status import status_of

        return status_of(self._engine, self._audience)

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
        while self._engine.feed.behind() and time.monotonic() < deadline:
            self._engine.start_worker()
            time.sleep(0.05)
        return not self._engine.feed.behind()

    def embed(self, text: str) -> list[float] | None:
        """Return the vector that a query of this text is searched with; None without a model.

        Raises:
            ModelError: the model failed.
        """
        embedder = self._engine.model.embedder()
        return None if embedder is None else [float(value) for value in embedder.embed([text], query=True)[0]]

    def vault(self, passphrase: str | None = None) -> Vault:
        """Open the vault of this store; close it after use.

        Args:
            passphrase: that its key is made from; None: PERDURE_VAULT_PASSPHRASE, else the key of the OS keyring.

        Raises:
            StoreError: one of its kinds.
        """
        vault: Vault = part("vault.vault").Vault(
            self._engine.store.folder, passphrase=passphrase, clock=self._engine.clock
        )
        return vault

    @property
    def turns(self) -> Turns:
        """What a host tells of its turns, and what became of them."""
        return Turns(self._engine, self._context)

    @property
    def files(self) -> Files:
        """Markdown memory and past conversations: search, reading, what is indexed."""
        return Files(self._engine, self._context)

    @property
    def aliases(self) -> Aliases:
        """Other names of one thing: "GHA" for "GitHub Actions"."""
        from perdure.api.aliases import Aliases

        return Aliases(self._engine, self._context, self.store)

    @property
    def upkeep(self) -> Upkeep:
        """What a memory does about itself: merging, reflecting, distilling, proposals, checkpoints."""
        from perdure.api.upkeep import Upkeep

        return Upkeep(self._engine, self._context)

    @property
    def admin(self) -> Admin:
        """What keeps a store in order: lists, counts, bulk changes."""
        from perdure.api.admin import Admin

        return Admin(self._engine, self._context)

    def close(self) -> None:
        """Finish what was begun and close all files. Closing twice is no error."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _own(self, fact_id: Named) -> Fact:
        """Return a fact that is to be changed, also if it is forgotten or superseded."""
        view = replace(self._view(), everything=True)
        fact = self._engine.store.database.query(search.by_prefix, fact_id, view)
        self._audience.writable(Scope(fact.scope, fact.scope_target))
        return fact
