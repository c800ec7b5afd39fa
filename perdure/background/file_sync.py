"""Keeps the index of files and conversations fresh while a host runs, and before each search."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from perdure.background.file_watcher import FileWatcher, WatcherState
from perdure.background.keeper import Keeper, TurnGate
from perdure.clock import Clock
from perdure.embed.base import Embedder
from perdure.errors import ModelError, StoreError
from perdure.files import registry
from perdure.files.index import Difference, FileIndex, Synced
from perdure.files.roots import Kind, Root, root_of
from perdure.files.transcript_log import TranscriptLog, safe_name
from perdure.hooks.types import Messages
from perdure.recent import Recent
from perdure.store.listing import Progress
from perdure.store.scope import Audience, Scope
from perdure.store.store import Store

KNOWN = 1024
"""Folders that are known to be registered, those named last: of others it is found out once more."""
_log = logging.getLogger("perdure.background")
Name = tuple[Scope, str, Kind]
BY_HAND = 200
"""So many changed files are brought up to date before a search is answered; more are left to the background."""
FEW = 32
"""So many texts are embedded in this process; more are left to the worker."""
SHARE = 20
"""While there are events, a scan is not repeated before the next one, for so many times as long as it took."""
PATIENCE = 0.2
"""Seconds for which a synchronisation under way is waited for; after that the index is taken as it is."""
RUNNING = 1024
"""Conversations that are known to go on, those that did so last: many hosts never say that one has ended."""


class Folders:
    """Where the files of a store are. No turn waits for a writer: what it names counts at once. Usable from any thread.

    `on_new`: called on the keeper's thread when there is another folder.
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
        if not waiting:
            return found
        there = {(root.scope, root.kind, root.path) for root in found}
        return found + [
            root
            for root in waiting
            if (root.scope, root.kind, root.path) not in there and (audience is None or audience.may_read(root.scope))
        ]

    def name(self, scope: Scope, path: str, kind: Kind) -> None:
        """Search a folder from now on; it is registered soon. Whoever names it again has it tried again, if need be."""
        name = (scope, path, kind)
        if self._known.get(name):
            return
        # Before it is looked at: one that cannot be used is no news the next time.
        self._known.put(name, True)
        self._waiting[name] = self._waiting.get(name) or root_of(scope, path, kind)
        self._keeper.submit("folder", lambda: self._register(name))

    def drop(self, root: Root) -> None:
        """Search a folder no longer."""
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


@dataclass(eq=False)
class FileSync:
    """Brings the index up to date: told by the watcher, by hooks, and before each search. Usable from any thread."""

    store: Store
    index: FileIndex
    log: TranscriptLog
    keeper: Keeper
    gate: TurnGate
    clock: Clock
    _: KW_ONLY
    embedder: Callable[[], Embedder | None]  # returns it, or None while there is none
    start_worker: Callable[[], None]
    watch: bool  # whether to watch at all; without, files are looked at before each search
    debounce: float = 1.5  # seconds of quiet before a change is looked at

    def __post_init__(self) -> None:
        """Prepare; `start` begins to watch."""
        self.folders = Folders(self.store, self.log, self.keeper, self.start)
        self.last_synced: float | None = None  # when the index was brought up to date last, epoch seconds
        self._watcher = FileWatcher(lambda: self.keeper.submit("files", self._sync), self.debounce)
        self._running: Recent[str, bool] = Recent(RUNNING)
        self._lock = threading.Lock()
        self._last = -float("inf")
        self._took = 0.0
        self._left = 0

    def start(self) -> None:
        """Begin to watch, if there is anything to watch. To be called again when there are other roots."""
        self._last = -float("inf")
        if self.store.refusal is not None:
            return
        roots = self.roots()
        if self.watch and roots:
            self._watcher.watch([root.path for root in roots])
            self._watcher.start()

    def close(self) -> None:
        """Stop watching."""
        self._watcher.stop()

    def roots(self, audience: Audience | None = None) -> list[Root]:
        """Return where the files are that an audience may read; without one those of every scope."""
        return self.folders.roots(audience)

    @property
    def watcher(self) -> WatcherState:
        """How changes are noticed."""
        return self._watcher.state

    @property
    def running(self) -> frozenset[str]:
        """Stems of the files of conversations that go on."""
        return self._running.keys()

    def note(self, scope: Scope, session: str, messages: Messages, at: float) -> None:
        """Add what was said in a session, at a time, to perdure's own record; the index follows by its threshold."""
        self._running.put(safe_name(session), True)
        if self.log.append(scope, session, messages, at):
            registry.add_log(self.store, scope)
            self.start()

    def ended(self, session: str) -> None:
        """Take note that a session is over: all of it is indexed now."""
        for stem in (safe_name(session), session):
            self._running.drop(stem)
        self.keeper.submit("files", self._sync)

    def begun(self, session: str) -> None:
        """Take note that a session is going on."""
        for stem in (safe_name(session), session):
            self._running.put(stem, True)

    def fresh(self) -> int:
        """Bring the index up to date unless it has just been; return how many changed files are left for later."""
        if not self._lock.acquire(timeout=PATIENCE):
            return max(1, self._left)
        try:
            began = time.monotonic()
            watcher = self.watcher
            recent = began - self._last < SHARE * self._took
            if recent and watcher.mode == "events" and (watcher.last_event or 0.0) < self._last:
                return 0
            roots = self.roots()
            seen = self.index.difference(roots, self.running)
            self._took = time.monotonic() - began
            dirty = seen.dirty
            if self.store.refusal is not None:
                self._last = began
                return dirty
            if dirty > BY_HAND:
                self.keeper.submit("files", self._sync)
                return dirty
            if dirty or seen.unsettled or not seen.built:
                dirty = dirty if self._bring(roots).busy else 0
            # What changes during the scan may have been looked at before.
            self._last = began
            return dirty
        finally:
            self._lock.release()

    def sync(self, force: bool = False, progress: Progress = lambda done, total: None) -> Synced:
        """Bring the index up to date, however long it takes; see `FileIndex.sync`."""
        with self._lock:
            synced = self.index.sync(self.roots(), force=force, patience=-1, progress=self._counted(progress))
            self.last_synced = self.clock.now()
        self.keeper.submit("embed files", self._embed)
        return synced

    def rebuild(self, number: int) -> None:
        """Have a damaged generation replaced in the background, unless that has been done."""

        def work() -> None:
            generation = self.index.generations.live()
            if generation is not None and generation.number == number:
                self.sync(force=True, progress=lambda done, total: self.gate.pause())

        self.keeper.submit("damaged index", work)

    def difference(self) -> Difference:
        """Compare the disk with the index."""
        return self.index.difference(self.roots(), self.running)

    def _sync(self) -> None:
        # Who holds the lock is doing the same.
        if self._lock.acquire(timeout=PATIENCE):
            try:
                self._bring(self.roots(), lambda done, total: self.gate.pause())
            finally:
                self._lock.release()

    def _bring(self, roots: list[Root], progress: Progress = lambda done, total: None) -> Synced:
        synced = self.index.sync(roots, running=self.running, patience=PATIENCE, progress=self._counted(progress))
        if not synced.busy:
            self.last_synced = self.clock.now()
        if synced.chunks:
            self.keeper.submit("embed files", self._embed)
        return synced

    def _counted(self, progress: Progress) -> Progress:
        def advance(done: int, total: int) -> None:
            self._left = total - done
            progress(done, total)

        return advance

    def _embed(self) -> None:
        embedder = self.embedder()
        if embedder is None:
            return
        try:
            done = self.index.embed(embedder, FEW, self.gate.pause)
        except ModelError as error:
            _log.warning("files are searched by keyword only for now: %s", type(error).__name__)
            return
        if done == FEW:
            self.start_worker()
