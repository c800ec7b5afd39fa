"""One SQLite file: a writer connection, readers, transactions, and errors in our own terms."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from weakref import WeakSet

import apsw

from perdure.errors import (
    StoreBusyError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLostError,
    StoreUnavailableError,
)
from perdure.failpoints import fail_point
from perdure.store.access import lockless, reader, unreadable
from perdure.store.folder import private_file
from perdure.store.sql import Backend, Dialect, run

BUSY_MS = 10_000
PAGE_BYTES = 8192
"""Of a new file. A row with a vector of 384 floats takes 1.6 kB: five fill such a page, two waste a fifth of a
smaller one."""
FREE_SHARE = 0.25
"""The file is written anew when so much of it is free."""
FREE_PAGES = 1_000
MERGE_PAGES = 500
CHECKPOINT_PAGES = 500
"""The write-ahead log is copied back when it has about so many pages: 4 MB."""
PROGRESS_STEPS = 2_000
"""SQLite's virtual machine steps between two looks at the clock: well under a millisecond."""
FORK_PATIENCE = 1.0
"""Seconds for which a fork waits until no thread is inside SQLite."""
_open: WeakSet[Database] = WeakSet()
_abandoned: list[apsw.Connection] = []
"""Connections of the parent that a forked child must neither use nor close."""


class Database(Backend):
    """Connections to one SQLite file in WAL mode. Usable from any thread."""

    shared = compares = False
    dialect = Dialect()

    def __init__(
        self,
        path: Path,
        *,
        busy_ms: int = BUSY_MS,
        check: Callable[[apsw.Connection], None] = lambda connection: None,
        stays: bool = False,
        refusal: str | None = None,
        memory: bool = False,
    ) -> None:
        """Open or create the file.

        `check` looks at it before anything in it is changed, and raises if it is not ours. One that `stays` is removed
        or replaced by nobody while it is open; should that happen all the same, nothing is written any more: it would
        be on no disk. With a `refusal` it is only read. With `memory`, a new database in memory stands in for the file,
        which is not made.
        """
        self.path = path
        self._busy_ms = busy_ms
        self._place: tuple[int, int] | None = None
        self.refusal = refusal
        self._stand_in = f"file:/{uuid.uuid4().hex}?vfs=memdb" if memory else None
        self._write_lock = threading.RLock()
        self._readers: list[apsw.Connection] = []
        self._reader_lock = threading.Lock()
        self._reading = threading.local()
        self._closed = self._forked = self._held = False
        self._lent = 0
        if refusal is None and not memory:
            if not path.exists() and (without := lockless(path.parent)):
                raise without
            private_file(path)
        with self._translated():
            first = self._opened()
            try:
                first.set_busy_timeout(busy_ms)
                check(first)
            finally:
                first.close()
            self._writer = self._connect()
        self._place = _place(path) if stays else None
        with _fork_lock:
            _open.add(self)

    @contextmanager
    def write(self, *, durable: bool = True, keep: bool = True) -> Iterator[apsw.Connection]:
        """Run a transaction; see `Backend.write`."""
        with self._write_lock, self._translated():
            self._check_open()
            if self.refusal is not None:
                raise StoreUnavailableError(self.refusal)
            self.check_place()
            run(self._writer, f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            try:
                # In the block: a Ctrl-C may come right after it, and what is open then would refuse all that follow.
                run(self._writer, "BEGIN IMMEDIATE")
                fail_point("transaction.begun")
                yield self._writer
                fail_point("commit.before")
                run(self._writer, "COMMIT" if keep else "ROLLBACK")
                fail_point("commit.after")
            except BaseException:
                if self._writer.in_transaction:
                    fail_point("rollback.before")
                    run(self._writer, "ROLLBACK")
                raise

    @contextmanager
    def read(self, *, deadline: float | None = None) -> Iterator[apsw.Connection]:
        """Lend a reader connection for the block; see `Backend.read`."""
        held: apsw.Connection | None = getattr(self._reading, "connection", None)
        with self._translated(), nullcontext(held) if held else self._reader() as connection:
            try:
                if deadline is not None:
                    connection.set_progress_handler(lambda: time.monotonic() > deadline, PROGRESS_STEPS)
                yield connection
            finally:
                if deadline is not None:
                    connection.set_progress_handler(None, PROGRESS_STEPS)

    @contextmanager
    def reading(self, *, deadline: float | None = None) -> Iterator[None]:
        """See `Backend.reading`. Here nobody has to be waited for, so that each read keeps to its own deadline."""
        if getattr(self._reading, "connection", None) is not None:
            yield
            return
        with self._translated(), self._reader() as connection:
            run(connection, "BEGIN")
            self._reading.connection = connection
            try:
                yield
            finally:
                del self._reading.connection
                run(connection, "ROLLBACK")

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        connection = self._take_reader()
        try:
            yield connection
        finally:
            with self._reader_lock:
                self._lent -= 1
                if self._forked:
                    _abandoned.append(connection)
                elif self._closed or self.refusal is not None:
                    connection.close()
                else:
                    self._readers.append(connection)

    def about(self) -> str:
        """Return SQLite's version."""
        return f"SQLite {apsw.sqlite_lib_version()}"

    def erase(self, now: float) -> tuple[dict[str, int], int]:
        """A file is removed as one."""
        raise StoreUnavailableError(f"{self.path} can only be removed as a whole: perdure uninstall")

    def tidy(self, pause: Callable[[], None]) -> str:
        """Let SQLite look after its statistics, merge the index of words, and give back much free room."""
        self.jot(run, "INSERT INTO facts_fts (facts_fts, rank) VALUES ('merge', ?)", (MERGE_PAGES,))
        pause()
        with self.read() as connection:
            run(connection, "PRAGMA optimize")
            pages: int = run(connection, "PRAGMA page_count")[0][0]
            free: int = run(connection, "PRAGMA freelist_count")[0][0]
            if free < max(FREE_PAGES, FREE_SHARE * pages):
                return f"{free} of {pages} pages are free: nothing to reclaim"
            pause()
            run(connection, "VACUUM")
        return f"{free} of {pages} pages reclaimed"

    def shed(self, *, rows: bool = True) -> str | None:
        """Leave nothing of what was deleted in the file, or in its log alone; see `Backend.shed`."""
        with self.read() as connection:
            if rows:
                # Deleted words stay in the full-text index until its segments are merged, and parts of rows in the
                # free room of pages until they are written anew.
                run(connection, "INSERT INTO facts_fts (facts_fts) VALUES ('optimize')")
                run(connection, "VACUUM")
            busy = run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
        return "the database is being read" if busy else None

    def close(self) -> None:
        """Close all connections; a reader that is lent out is closed when it comes back."""
        with self._write_lock, self._reader_lock:
            if self._closed:
                return
            self._closed = True
            for connection in [*self._readers, self._writer]:
                connection.close()
            self._readers.clear()

    def hold(self, deadline: float) -> None:
        """Let no other thread into SQLite until `resume` or `abandon`: this process is about to be forked.

        Those who are in it are waited for until the `deadline` (`time.monotonic()`).
        """
        mine = self._write_lock.acquire(timeout=max(0.0, deadline - time.monotonic()))
        quiet = mine and not self._closed and not self._writer.in_transaction
        self._reader_lock.acquire()
        while quiet and self._lent and time.monotonic() < deadline:
            self._reader_lock.release()
            time.sleep(0.001)
            self._reader_lock.acquire()
        self._held = quiet and not self._lent
        if mine and not self._held:
            self._write_lock.release()

    def resume(self) -> None:
        """Let others in again, after `hold`."""
        self._reader_lock.release()
        if self._held:
            self._held = False
            self._write_lock.release()

    def abandon(self) -> None:
        """Let go of the file in a forked child, after `hold`: SQLite's connections are the parent's.

        They are closed only if no thread was in them, as its locks would never be released here. Else they are kept
        as they are, unused.
        """
        connections = [] if self._closed else [*self._readers, self._writer]
        if not self._held:
            _abandoned.extend(connections)
        for connection in connections if self._held else ():
            connection.close()
        self._readers.clear()
        self._closed = self._forked = True
        self._write_lock, self._reader_lock = threading.RLock(), threading.Lock()

    def _check_open(self) -> None:
        if self._forked:
            raise StoreClosedError(f"{self.path.name} was opened before this process was forked; reopen it here")
        if self._closed:
            raise StoreClosedError(f"{self.path.name} is closed; open the store again")

    @property
    def displaced(self) -> bool:
        """Whether another file, or none, stands where the open one stood; it only stays so if it `stays`."""
        return self._place is not None and _place(self.path) != self._place

    def check_place(self) -> None:
        """See that the open file still stands where it did."""
        if self.displaced:
            raise StoreLostError(
                f"{self.path} was removed or replaced while it was open; close this program, then: perdure recover",
                "missing",
            )

    def _take_reader(self) -> apsw.Connection:
        with self._reader_lock:
            self._check_open()
            self._lent += 1
            if self._readers:
                return self._readers.pop()
        try:
            return self._connect()
        except BaseException:
            with self._reader_lock:
                self._lent -= 1
            raise

    def _connect(self) -> apsw.Connection:
        self.check_place()
        connection = self._opened()
        try:
            connection.set_busy_timeout(self._busy_ms)
            if self.refusal is not None:
                return connection
            run(connection, f"PRAGMA page_size = {PAGE_BYTES}")
            _enter_wal(connection, self._busy_ms / 1000)
            connection.wal_autocheckpoint(CHECKPOINT_PAGES)
            run(connection, "PRAGMA foreign_keys = ON")
            run(connection, "PRAGMA secure_delete = ON")
        except apsw.Error:
            connection.close()
            raise
        return connection

    def _opened(self) -> apsw.Connection:
        if self._stand_in is not None:
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
            return apsw.Connection(self._stand_in, flags=flags)
        if self.refusal is not None:
            return reader(self.path)
        return apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise _translate(error, self.path) from error


def _enter_wal(connection: apsw.Connection, patience: float) -> None:
    # Two processes may create the file at the same moment; SQLite does not call the busy handler
    # for a change of journal mode.
    deadline = time.monotonic() + patience
    while True:
        try:
            run(connection, "PRAGMA journal_mode = WAL")
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _place(path: Path) -> tuple[int, int] | None:
    """Return which file stands at a path; None if there is none, or an empty one."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_size else None


def _translate(error: apsw.Error, path: Path) -> StoreError:
    name = path.name
    match error:
        case apsw.FullError():
            return StoreFullError(f"the disk is full; {name} is unchanged. Free some space and retry")
        case apsw.InterruptError():
            return StoreBusyError(f"reading {name} took too long and was stopped; retry")
        case apsw.BusyError() | apsw.LockedError():
            busy = f"{name} is locked by another process; retry, or close that process"
            return lockless(path.parent) or StoreBusyError(busy)
        case apsw.NotADBError() | apsw.CorruptError():
            how = "Move it elsewhere or restore a backup over it"
            if name == "facts.db":
                how = "`perdure recover` shows what can be recovered"
            return StoreCorruptError(f"{path} is not an intact SQLite database; it was left untouched. {how}")
        case apsw.ConnectionClosedError():
            return StoreClosedError(f"{name} is closed; open the store again")
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.IOError() | apsw.PermissionsError():
            return unreadable(path, error)
        case _:
            return StoreError(f"{name}: {type(error).__name__}")


_at_fork: list[Database] = []
_fork_lock = threading.Lock()
"""Held from before a fork until after it, so that two threads do not fork at once."""


def _before_fork() -> None:
    _fork_lock.acquire()
    _at_fork[:] = list(_open)
    deadline = time.monotonic() + FORK_PATIENCE
    for database in _at_fork:
        database.hold(deadline)


def _in_parent() -> None:
    for database in _at_fork:
        database.resume()
    _at_fork.clear()
    _fork_lock.release()


def _in_child() -> None:
    for database in _at_fork:
        database.abandon()
    _at_fork.clear()
    _open.clear()
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
