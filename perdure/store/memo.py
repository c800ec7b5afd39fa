"""Writing down what a data folder remembers of its store: behind the commits, seldom, by several processes."""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from perdure.clock import Clock
from perdure.errors import StoreBusyError, StoreError, StoreFullError, StoreLostError, StoreUnavailableError
from perdure.store.folder import FILE_MODE
from perdure.store.rollback_guard import FILE, Place, Remembered, refuse_lost
from perdure.store.sql import Backend, Connection, run

EVERY = 5.0
"""Seconds between two writes, each of which waits for the disk once."""
PATIENCE = 1.0
"""Seconds for which what must be written now waits for another process that writes."""
_log = logging.getLogger("perdure.store")


class Memo:
    """Keeps the file of an open store up to date. Usable from any thread."""

    def __init__(self, folder: Path, database: Backend, clock: Clock) -> None:
        """Write the file if it does not tell of this store yet."""
        self._folder = folder
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._written: tuple[int, int] | None = None
        self._due = 0.0
        self._told = ""
        remembered = Remembered.read(folder)
        if remembered is not None and len(remembered.places) == 1:
            self._written = (remembered.places[0].seq, len(remembered.tombstones))
            return
        if remembered is not None and not remembered.places:
            _log.warning("what %s remembered of its store cannot be read; it is written anew", folder)
        self.write(at_once=True)

    def write(self, *, at_once: bool = False, durable: bool = False) -> None:
        """Write down how the store is now, if that has changed. What cannot be written is written the next time.

        Args:
            at_once: do not wait until `EVERY` seconds have passed since the last time.
            durable: see that not even a power cut brings the former state back; also at once.
        """
        with self._lock:
            if not (at_once or durable) and time.monotonic() < self._due:
                return
            try:
                self._database.check_place()
                with self._database.read() as connection:
                    present = _changes(connection)
                if present == self._written:
                    return
                self._due = time.monotonic() + EVERY
                with _writing(self._folder, PATIENCE if at_once or durable else 0):
                    self._written = self._write(durable=durable)
            except StoreLostError as error:
                if self._told != str(error):
                    self._told = str(error)
                    _log.error("memory is halted, what is said is kept: %s", error)
            except StoreError as error:
                _log.debug("what the folder remembers was not written: %s", type(error).__name__)

    def _write(self, *, durable: bool) -> tuple[int, int]:
        # Among all processes one at a time, and each writes what stands in the database then: nothing older ever
        # takes the place of something newer. All that journals waits for the disk before anybody sees it.
        former = Remembered.read(self._folder)
        with self._database.read() as connection, connection:
            refuse_lost(self._folder, connection)
            present, changes = Remembered.of(connection, self._clock.now(), former), _changes(connection)
        present.write(self._folder, durable=durable)
        return changes


def going_to(folder: Path, place: Place) -> None:
    """Note that facts.db is about to be brought to another place on purpose. `arrived` ends this.

    Killed in between, the folder takes the former place for right as well as the new one.

    Raises:
        StoreError: it cannot be written.
    """
    with _writing(folder, PATIENCE):
        former = Remembered.read(folder)
        if former is not None and former.places:
            replace(former, places=(former.places[0], place)).write(folder, durable=True)


def arrived(folder: Path, connection: Connection, now: float) -> None:
    """Note that facts.db, as it is now, is what it should be.

    Raises:
        StoreError: it cannot be written, or the database has lost its key.
    """
    with _writing(folder, PATIENCE):
        Remembered.of(connection, now, Remembered.read(folder)).write(folder, durable=True)


@contextmanager
def _writing(folder: Path, patience: float) -> Iterator[None]:
    try:
        # Not thread-local: of a store that one thread opens and another closes.
        with FileLock(folder / "remembered.lock", timeout=patience, mode=FILE_MODE, thread_local=False):
            yield
    except Timeout:
        raise StoreBusyError(f"{FILE} in {folder} is being written by another process; retry") from None
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFullError(f"the disk is full; {FILE} in {folder} is as it was. Free some space") from error
        raise StoreUnavailableError(f"{FILE} in {folder} cannot be written ({error.strerror})") from error


def _changes(connection: Connection) -> tuple[int, int]:
    sql = "SELECT (SELECT coalesce(max(seq), 0) FROM journal), (SELECT count(*) FROM tombstones)"
    [(newest, tombstones)] = run(connection, sql)
    return newest, tombstones
