"""The folders of a store: those that are registered, and those that a host has just named and the keeper registers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from perdure.background.keeper import Keeper
from perdure.errors import StoreError
from perdure.files import registry
from perdure.files.roots import Kind, Root, root_of
from perdure.files.transcript_log import TranscriptLog
from perdure.recent import Recent
from perdure.store.scope import Audience, Scope
from perdure.store.store import Store

KNOWN = 1024
"""Folders that are known to be registered, those named last: of others it is found out once more."""
_log = logging.getLogger("perdure.background")
Name = tuple[Scope, str, Kind]


class Folders:
    """Where the files of a store are. No turn waits for a writer: what it names counts at once. Usable from any thread.

    Attributes:
        on_new: called on the keeper's thread when there is another folder.
    """

    def __init__(self, store: Store, log: TranscriptLog, keeper: Keeper, on_new: Callable[[], None]) -> None:
        self._store = store
        self._log = log
        self._keeper = keeper
        self.on_new = on_new
        self._known: Recent[Name, bool] = Recent(KNOWN)
        self._waiting: dict[Name, Root] = {}
        self._writing = threading.Lock()

    def roots(self, audience: Audience | None = None) -> list[Root]:
        """Return the roots that an audience may read; without one those of every scope."""
        # First: what leaves these after this look is in the registry by then.
        waiting = list(self._waiting.values())
        found = registry.roots(self._store, self._log, audience)
        there = {(root.scope, root.kind, root.path) for root in found}
        return found + [
            root
            for root in waiting
            if (root.scope, root.kind, root.path) not in there and (audience is None or audience.may_read(root.scope))
        ]

    def name(self, scope: Scope, path: str, kind: Kind) -> None:
        """Search a folder from now on; it is registered soon. Whoever names it again has it tried again, if need be.

        Raises:
            InputError: the path cannot be searched. That is said once.
        """
        name = (scope, path, kind)
        if self._known.get(name):
            return
        # Before it is looked at: one that cannot be used is no news the next time.
        self._known.put(name, True)
        self._waiting[name] = self._waiting.get(name) or root_of(scope, path, kind)
        self._keeper.submit("folder", lambda: self._register(name))

    def drop(self, root: Root) -> None:
        """Search a folder no longer.

        Raises:
            StoreError: it could not be written.
        """
        with self._writing:
            for name in [name for name, other in self._waiting.items() if other == root]:
                del self._waiting[name]
            registry.drop_root(self._store, root)

    def _register(self, name: Name) -> None:
        with self._writing:
            root = self._waiting.get(name)
            if root is None or self._store.refusal is not None:
                return
            try:
                registry.add_root(self._store, root.scope, root.path, root.kind)
            except StoreError as error:
                _log.warning("the %s folder is not registered yet: %s", root.kind, type(error).__name__)
                self._known.drop(name)
                return
            del self._waiting[name]
        self.on_new()
