"""The library: a store, opened for one caller."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from perdure.api.files import Files
from perdure.api.turns import Turns
from perdure.api.view import PATIENCE, MemoryView, Named
from perdure.clock import Clock
from perdure.engine.audiences import OwnersContext, audience_of
from perdure.engine.composing import lent_by
from perdure.engine.engine import Engine
from perdure.engine.paths import data_folder
from perdure.engine.settings import Settings
from perdure.errors import InputError, SettingsError, expect
from perdure.hooks.types import TurnContext
from perdure.llm import LanguageModel, Lent
from perdure.store import lifecycle, links, search
from perdure.store.aliases import Names, naming
from perdure.store.fact import Fact
from perdure.store.links import Link, Related
from perdure.store.scope import checked_id, named_user, shared
from perdure.text.timestamps import Moment

if TYPE_CHECKING:
    from perdure.api.admin import Admin
    from perdure.api.aliases import Aliases
    from perdure.api.status import Status
    from perdure.api.upkeep import Upkeep
    from perdure.store.undo import Undone

_MEANT = {"user_id": "user", "agent_id": "agent", "path": "home", "folder": "home", "scope": "scopes"}
"""Arguments of `Memory.open` by other names."""


class Memory(MemoryView):
    """Long-term memory in one data folder.

    Example:
        with Memory() as memory:
            memory.store("The staging database is called heron.")
            print(memory.recall("Which database is staging?"))
    """

    def __init__(
        self, engine: Engine | None = None, context: TurnContext | None = None, *, llm: LanguageModel | None = None
    ) -> None:
        """Open the store of this machine's user; `open` takes a folder and all other options."""
        if engine is None and context is None:
            engine, context = _opened(TurnContext(host="library"), lent=_lent(llm))
        if not isinstance(engine, Engine) or context is None:
            raise InputError("open a memory with Memory() or Memory.open(FOLDER)")
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
        load_model: bool = True,
        llm: LanguageModel | Mapping[str, Any] | None = None,
        lent: Mapping[str, Lent] | None = None,
        **settings: Any,
    ) -> Memory:
        """Open the store, creating it if need be. Without arguments it works in the user's own scope.

        A store that cannot be written is opened read-only: `Status.read_only` says why.

        Args:
            home: the data folder; None: PERDURE_HOME, else the connected host's, else the user's own.
            agent: act for this agent: also read its memories, and store new ones with it.
            user: act for this user instead of the machine's owner, and read only their own memories and those shared
                by an agent.
            scopes: additional scopes to read, such as "project:heron" or "custom:team".
            clock: the source of the current time.
            host_config: the plugin's section of a host's config.
            guest: open without side effects: no store is created, and other processes' inboxes are left alone.
            whole: without `agent` or `user`, read and change the owner's memories of every agent, session and project,
                but no named user's. For the owner's own tools, never for an agent.
            load_model: False for a process that exits before the model would be loaded. Keyword search then recalls
                only what the model would almost certainly recall too, and the receipt says so.
            llm: your program's language model, a function or a LangChain chat model; or the setting of this name. With
                `librarian=True` it reads idle conversations that go through this memory; alone it changes nothing.
            lent: language models that hosts lend to the librarian, by the host's name.
            settings: any setting by name.

        Raises:
            InputError, SettingsError: `llm` is no such model; a setting is unknown or invalid.
            ScopeError: an agent, a user or a scope is empty or malformed.
            StoreError: the folder cannot be used; nothing in it has been changed.
        """
        for name in settings.keys() & _MEANT.keys():
            raise SettingsError(f"setting {name!r} is unknown; did you mean {_MEANT[name]}?")
        for name, value in {"agent": agent, "user": user}.items():
            if value is not None:
                checked_id(value, name)
        expect(scopes, list | tuple | Set, 'a list of scopes, such as ["project:heron"]', "scopes")
        for scope in scopes:
            shared(scope)
        expect(home, str | Path | None, "a folder", "home")
        expect(host_config, Mapping | None, "names with their values", "host_config")
        expect(clock, Clock | None, "a Clock", "clock")
        kind = OwnersContext if whole and agent is None and user is None and not scopes else TurnContext
        context = kind(agent_id=agent, user_id=user, scopes=tuple(scopes), host="library")
        if isinstance(llm, Mapping):
            settings["llm"], llm = llm, None
        given = {"clock": clock, "guest": guest, "load_model": load_model, "lent": {**(lent or {}), **_lent(llm)}}
        return cls(*_opened(context, home, settings, host_config, **given))

    def for_user(
        self, user: str, *, agent: str | None = None, project: str | None = None, session: str | None = None
    ) -> MemoryView:
        """Return a view of one user's memories; it is cheap, and closed with the store.

        Args:
            user: the user's id in your program.
            agent: only the memories this agent has of the user; None: those of all agents.
            project: also include the memories of this project.
            session: also include the memories of this conversation.

        Raises:
            ScopeError: an id is empty, malformed or None where there must be one; or it is the owner's own.
        """
        given = {"agent": agent, "project": project, "session": session}
        ids = {kind: checked_id(name, kind) for kind, name in given.items() if name is not None}
        context = TurnContext(
            user_id=named_user(user), agent_id=ids.get("agent"), session_id=ids.get("session"), host="library",
            project=f"project:{ids['project']}" if "project" in ids else None,
        )  # fmt: skip
        return MemoryView(self._engine, context)

    def unforget(self, fact_id: Named) -> Fact:
        """Restore a forgotten memory."""
        old = self._own(fact_id)
        with self._engine.store.write(self._author()) as tx:
            return lifecycle.unforget(tx, old.id)

    def pin(self, fact_id: Named, pinned: bool = True) -> Fact:
        """Pin a memory, so that it never expires, or unpin it."""
        expect(pinned, bool, "True or False", "pinned")
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
        """Remove a link; `dry_run` only checks that this is possible."""
        one, other = self._own(source), self._own(target)
        with self._engine.store.write(self._author(), keep=not dry_run) as tx:
            links.unlink(tx, one.id, other.id, link_type)

    def related(self, fact_id: Named, depth: int = 2, *, as_of: Moment | None = None) -> list[Related]:
        """Return the memories linked to this one, in both directions, nearest first."""
        return self._engine.store.database.query(links.related, [self.get(fact_id).id], self._view(as_of=as_of), depth)

    def undo(self, batch: str | None = None, *, session: str | None = None, dry_run: bool = False) -> Undone:
        """Undo the last change, one batch, or all changes of a session; `dry_run` only returns what that would do.

        Raises:
            NotFoundError: there is nothing to undo.
        """
        from perdure.store.undo import undo_chosen

        expect(session, str | None, "the id of a session", "session")
        with self._engine.store.write(self._author(), keep=not dry_run) as tx:
            return undo_chosen(tx, self._audience, batch, session)

    def lookup(
        self, entity: str, key: str | None = None, *,
        tag: str | None = None, as_of: Moment | None = None, include_superseded: bool = False,
    ) -> list[Fact]:  # fmt: skip
        """Return the memories in a slot, also under aliases of its entity, most confident first, then newest."""
        view = self._view(tag=tag, as_of=as_of, include_superseded=include_superseded)
        with self._engine.store.database.read() as connection:
            names = Names.of(naming(connection, view.audience, view.now))
            return search.lookup(connection, entity, key, view, others=names.beside(entity))

    def status(self) -> Status:
        """Return the state of the store."""
        from perdure.api.status import status_of

        return status_of(self._engine, self._audience)

    def ready(self, timeout: float = PATIENCE) -> bool:
        """Wait until the model is loaded; return whether there is one. Calling this is optional."""
        expect(timeout, int | float, "seconds", "timeout")
        return self._engine.model.wait(timeout)

    def settle(self, timeout: float = PATIENCE) -> bool:
        """Wait up to `timeout` seconds until all acknowledged turns are captured; return whether they are."""
        expect(timeout, int | float, "seconds", "timeout")
        return self._engine.settle(timeout)

    @property
    def turns(self) -> Turns:
        """The turns of a host: recall, capture, and past turns."""
        return Turns(self._engine, self._context)

    @property
    def files(self) -> Files:
        """Markdown memory and past conversations: search, read, index status."""
        return Files(self._engine, self._context)

    @property
    def aliases(self) -> Aliases:
        """Aliases, such as "GHA" for "GitHub Actions"."""
        from perdure.api.aliases import Aliases

        return Aliases(self._engine, self._context, self.store)

    @property
    def upkeep(self) -> Upkeep:
        """Consolidation: merging, reflecting, distilling, proposals, checkpoints."""
        from perdure.api.upkeep import Upkeep

        return Upkeep(self._engine, self._context)

    @property
    def admin(self) -> Admin:
        """Administration: lists, counts, bulk changes."""
        from perdure.api.admin import Admin

        return Admin(self._engine, self._context)

    def close(self) -> None:
        """Finish pending work and close all files. Closing twice is not an error."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _lent(llm: LanguageModel | None) -> Mapping[str, Lent]:
    if llm is not None and not callable(llm) and not hasattr(llm, "invoke"):
        raise InputError(f"llm is {type(llm).__name__}; pass a function (system, prompt, schema), or a LangChain model")
    if inspect.iscoroutinefunction(llm):
        raise InputError("llm is an async function; pass a plain one")
    return lent_by(llm)


def _opened(
    context: TurnContext, home: str | Path | None = None, settings: Mapping[str, Any] | None = None,
    host_config: Mapping[str, Any] | None = None, **given: Any,
) -> tuple[Engine, TurnContext]:  # fmt: skip
    engine = Engine(data_folder(home), Settings.load(settings or {}, host_config=host_config), **given)
    try:
        engine.files.start(audience_of(context))
    except BaseException:
        engine.close()
        raise
    return engine, context
