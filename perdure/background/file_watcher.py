"""Notices that files changed: by the system's events where they work, by looking again where they do not.

An event is only a hint. Whoever is called looks for itself what changed, and is also called at every poll,
so an event that is lost costs one poll interval and nothing else.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from perdure.errors import PerdureError

PATIENCE = 10
"""Under a constant stream of events the call comes after so many times the debounce."""
STOP_SECONDS = 1.0

# Reading a file makes events too. Were they heeded, each call would bring about the next.
_READING = frozenset({"opened", "closed_no_write"})
_HINTS = {
    errno.EMFILE: "; raise fs.inotify.max_user_instances or the limit on open files",
    errno.ENOSPC: "; raise fs.inotify.max_user_watches",
}

_log = logging.getLogger("perdure.background")


@dataclass(frozen=True, slots=True)
class WatcherState:
    """How changes are noticed."""

    # "events" and polling, "polling" alone for at least one root, or "stopped"
    mode: Literal["events", "polling", "stopped"]
    reason: str | None  # why there are no events
    roots: int  # how many files and folders are watched
    last_event: float | None  # when the last event came, by the watcher's clock


class Debounce:
    """Turns many events into one call: after some quiet, or when the first has waited long enough."""

    def __init__(self, quiet: float, patience: float) -> None:
        """Set the quiet after the last event, and the longest wait after the first, in seconds."""
        self._quiet = quiet
        self._patience = patience
        self._first: float | None = None
        self._last = 0.0

    @property
    def due_at(self) -> float | None:
        """When the call is due; None if there was no event."""
        if self._first is None:
            return None
        return min(self._last + self._quiet, self._first + self._patience)

    def note(self, now: float) -> None:
        """Count an event."""
        self._first = now if self._first is None else self._first
        self._last = now

    def take(self, now: float) -> bool:
        """Return whether the call is due; if so, all events are dealt with."""
        due = self.due_at is not None and now >= self.due_at
        if due:
            self._first = None
        return due


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder to watch: a root itself, with all below it, or just the one that a file or a missing root is in."""

    folder: str
    recursive: bool


_Identity = tuple[int, int, int]


def _system_observer() -> Any:
    from watchdog.observers import Observer

    # Without a handler, Python prints what it warns of on the terminal of whoever uses perdure.
    logging.getLogger("watchdog").addHandler(logging.NullHandler())
    return Observer()


@dataclass(eq=False)
class FileWatcher:
    """Calls `on_change` when something changes below the watched roots, and at every poll."""

    on_change: Callable[[], None]
    debounce: float = 1.5  # seconds of quiet after the last event before the call
    poll_seconds: float = 30.0  # time between two looks without an event
    monotonic: Callable[[], float] = time.monotonic  # a clock, in seconds
    observer: Callable[[], Any] = _system_observer  # makes the source of events, watchdog's for this system

    def __post_init__(self) -> None:
        """Prepare the watcher; nothing starts yet."""
        self._debounce = Debounce(self.debounce, PATIENCE * self.debounce)
        self._changed = threading.Condition()
        self._roots: frozenset[str] = frozenset()
        self._below: frozenset[str] = frozenset()
        self._rearrange = False
        self._stopping = False
        self._poll_at = 0.0
        self._last_event: float | None = None
        self._reason: str | None = None
        self._observer: Any = None
        self._watches: dict[_Place, tuple[Any, _Identity]] = {}
        self._thread: threading.Thread | None = None

    def watch(self, paths: Collection[Path]) -> None:
        """Set the roots: folders with all that is in them, and files. They need not exist yet.

        A call of `on_change` follows when the set is another one, since nobody saw what happened before.
        """
        roots = frozenset(str(path.parent.resolve() / path.name) for path in map(Path.absolute, paths))
        with self._changed:
            if roots != self._roots:
                self._roots = roots
                self._rearrange = True
                self._debounce.note(self.monotonic())
                self._changed.notify()

    def start(self) -> None:
        """Start watching; does nothing if it has been started."""
        # Under the lock: another thread may be stopping it, and can only join a thread that has been started.
        with self._changed:
            if self._thread is None:
                self._poll_at = self.monotonic() + self.poll_seconds
                self._thread = threading.Thread(target=self._run, name="perdure-files", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the watching for good; a call that takes longer than a second is not waited for."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)

    @property
    def state(self) -> WatcherState:
        """How changes are noticed at this moment."""
        with self._changed:
            running = self._thread is not None and self._thread.is_alive() and not self._stopping
            mode: Literal["events", "polling"] = "polling" if self._reason or not self._observer else "events"
            return WatcherState(mode if running else "stopped", self._reason, len(self._roots), self._last_event)

    def dispatch(self, event: Any) -> None:
        """Take an event of watchdog; called from its threads."""
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        with self._changed:
            if event.event_type not in _READING and any(map(self._concerns, paths)):
                self._last_event = self.monotonic()
                self._debounce.note(self._last_event)
                self._changed.notify()

    def _run(self) -> None:
        try:
            while (due := self._next()) is not None:
                self._arrange(look_again=due == "poll")
                if due != "roots":
                    self._call()
        finally:
            if self._observer is not None:
                self._observer.stop()
                self._observer.join(STOP_SECONDS)

    def _next(self) -> Literal["roots", "change", "poll"] | None:
        """Wait for what is to be done next; None: to end."""
        with self._changed:
            while not self._stopping:
                now = self.monotonic()
                if self._rearrange:
                    self._rearrange = False
                    return "roots"
                if now >= self._poll_at:
                    self._poll_at = now + self.poll_seconds
                    self._debounce.take(now)
                    return "poll"
                if self._debounce.take(now):
                    return "change"
                due_at = self._debounce.due_at
                until = self._poll_at if due_at is None else min(due_at, self._poll_at)
                self._changed.wait(until - now)
        return None

    def _call(self) -> None:
        try:
            self.on_change()
        except (PerdureError, OSError) as error:
            _log.warning("checking changed files failed: %s", type(error).__name__)

    def _arrange(self, look_again: bool) -> None:
        """Watch the folders that are to be watched now.

        With `look_again` a folder that looks different is watched anew: it may be another one of the same
        name, and the system goes on watching the one that is gone.
        """
        wanted = _wanted(self._roots)
        self._below = self._roots | {place.folder for place in wanted if place.recursive}
        try:
            observer = self._observer or self.observer()
            if self._observer is None:
                observer.start()
        except (ImportError, OSError, RuntimeError) as error:
            self._reason = self._why(error)
            return
        self._observer = observer
        for place, (watch, seen) in list(self._watches.items()):
            if place not in wanted or (look_again and wanted[place] != seen):
                del self._watches[place]
                observer.unschedule(watch)
        reason = None
        for place in wanted.keys() - self._watches.keys():
            try:
                watch = observer.schedule(self, place.folder, recursive=place.recursive)
                self._watches[place] = watch, wanted[place]
            except (OSError, RuntimeError) as error:
                reason = self._why(error)
        self._reason = reason

    def _why(self, error: Exception) -> str:
        number = error.errno if isinstance(error, OSError) else None
        cause = (os.strerror(number) if number else "") or type(error).__name__
        return f"no file events ({cause}); polling every {self.poll_seconds:g} s{_HINTS.get(number or 0, '')}"

    def _concerns(self, path: str) -> bool:
        return any(path == root or path.startswith(root + os.sep) for root in self._below)


def _wanted(roots: Collection[str]) -> dict[_Place, _Identity]:
    """Return the folders to watch and what they look like; those that cannot be looked at are left out."""
    wanted = {}
    for root in roots:
        with suppress(OSError):
            # A file is watched by its folder: editors put a new file in the place of the old one. A root
            # that is missing is too, so that its coming is seen.
            is_folder = Path(root).is_dir()
            place = _Place(os.path.realpath(root) if is_folder else str(Path(root).parent), recursive=is_folder)
            found = Path(place.folder).stat()
            # The number of a folder that was removed is often given to the next one, so its time counts too.
            wanted[place] = found.st_dev, found.st_ino, found.st_mtime_ns
    return wanted
