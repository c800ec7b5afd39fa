"""The library: a store, opened for one caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from perdure.api.files import Files
from perdure.api.turns import Turns
from perdure.api.view import PATIENCE, MemoryView, Named
from perdure.clock import Clock
from perdure.engine.engine import Engine, OwnersContext, audience_of
from perdure.engine.paths import data_folder
from perdure.engine.settings import Settings
from perdure.errors import InputError, SettingsError
from perdure.hooks.types import TurnContext
from perdure.recall.receipt import Receipt
from perdure.store import lifecycle, links, search
from perdure.store.aliases import Names, naming
from perdure.store.fact import Fact
from perdure.store.links import Link, Related
from perdure.store.scope import checked_id, named_user
from perdure.text.timestamps import Moment

if TYPE_CHECKING:
    from perdure.api.admin import Admin
    from perdure.api.aliases import Aliases
    from perdure.api.explain import Why
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

    def __init__(self, engine: Engine | None = None, context: TurnContext | None = None) -> None:
        """Open the store of this machine's user; `open` takes a folder, and all else that can be said of it."""
        if engine is None and context is None:
            engine, context = _opened(TurnContext(host="library"))
        if not isinstance(engine, Engine) or context is None:
            raise InputError("a memory is opened by Memory(), or by Memory.open(FOLDER)")
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
        kind = OwnersContext if whole and agent is None and user is None and not scopes else TurnContext
        context = kind(agent_id=agent, user_id=user, scopes=tuple(scopes), host="library")
        return cls(*_opened(context, home, settings, host_config, clock=clock, guest=guest))

    def for_user(
        self, user: str, *, agent: str | None = None, project: str | None = None, session: str | None = None
    ) -> MemoryView:
        """Return what one user has of this store; it costs nothing, and is closed with the store.

        Args:
            user: the user's id in your program.
            agent: what this agent has of the user; None: what all have.
            project: also what belongs to this project.
            session: also what belongs to this conversation.

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

    def related(self, fact_id: Named, depth: int = 2, *, as_of: Moment | None = None) -> list[Related]:
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

    def lookup(
        self, entity: str, key: str | None = None, *,
        tag: str | None = None, as_of: Moment | None = None, include_superseded: bool = False,
    ) -> list[Fact]:  # fmt: skip
        """Return the facts in a slot, also under other names of its entity, most confident first, then newest."""
        view = self._view(tag=tag, as_of=as_of, include_superseded=include_superseded)
        with self._engine.store.database.read() as connection:
            names = Names.of(naming(connection, view.audience, view.now))
            return search.lookup(connection, entity, key, view, others=names.beside(entity))

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
