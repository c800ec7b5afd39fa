"""Where a turn is acknowledged: one append-only file per process, synced before the host goes on.

A file and not a table, because a table would wait behind any writer. Each line is one entry. An entry
leaves the file only after the database holds what became of it; the file of a process that died is
adopted by the next one, told from a living one by the lock that the kernel frees at death. What was damaged
in it is kept aside first: see `perdure.store.inbox_lines`.
"""

from __future__ import annotations

import errno
import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from perdure.errors import StoreClosedError, StoreFullError, StoreUnavailableError
from perdure.failpoints import fail_point
from perdure.store.folder import FILE_MODE, file_lock, prepare_folder, sync_folder
from perdure.store.inbox_lines import Entry, keep_aside, line_of, read

CHUNK = 65_536


class Inbox:
    """The inbox folder of a store, and this process's file in it. Usable from any thread."""

    def __init__(self, folder: Path, refusal: str | None = None, machine: str = "") -> None:
        """Open the folder; the file appears with the first entry.

        With a `refusal` entries are only looked at. `machine` begins the names of entries where several machines share
        a store.
        """
        self._folder = folder if refusal is not None else prepare_folder(folder)
        self._refusal = refusal
        self._path = folder / f"{machine}{uuid.uuid4().hex}.jsonl"
        self._lock = threading.Lock()
        self._handle: int | None = None
        self._owner: FileLock | None = None
        self._closed = False
        self._count = self._used = self._size = 0
        self._waiting: set[str] = set()

    def append(self, entry: Entry) -> Entry:
        """Add an entry and wait until the disk has it.

        Return it with its `id`: the name of its file and its number in it. Whatever fails, it was not added.
        """
        with self._lock:
            if self._closed:
                raise StoreClosedError("the inbox is closed; open the store again")
            if self._refusal is not None:
                raise StoreUnavailableError(self._refusal)
            self._count += 1
            entry = {**entry, "id": f"{self._path.stem}:{self._count}"}
            try:
                self._write(line_of(entry))
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    raise StoreFullError(
                        f"the disk is full; this turn was not written to inbox {self._path.name}. Free some space"
                    ) from error
                raise StoreUnavailableError(
                    f"inbox {self._path.name} cannot be written ({error.strerror}); check the folder"
                ) from error
            self._waiting.add(entry["id"])
            return entry

    def finish(self, entry_id: str) -> None:
        """Note that the database holds what became of an entry."""
        with self._lock:
            self._waiting.discard(entry_id)

    def empty(self) -> None:
        """Empty the file if all in it is dealt with.

        For quiet moments. The blocks are kept, zeroed: no text of a turn stays behind.
        """
        with self._lock:
            if self._waiting or self._handle is None or not self._used:
                return
            _put(self._handle, 0, bytes(self._used))
            fail_point("inbox.emptied")
            _sync(self._handle)
            self._used = 0

    @property
    def waiting(self) -> int:
        """How many entries of this process are still to be dealt with."""
        return len(self._waiting)

    def files(self) -> frozenset[str]:
        """Return the names that entry ids of existing files begin with."""
        return frozenset(path.stem for path in self._folder.glob("*.jsonl"))

    def entries(self) -> Iterator[Entry]:
        """Yield what is in the files of all processes, also what is dealt with and not removed yet."""
        for path in sorted(self._folder.glob("*.jsonl")):
            yield from read(path).entries

    def adopt(self) -> Iterator[list[Entry]]:
        """Yield the entries of each file whose process is gone; the file is removed when the caller comes back."""
        for path in sorted(self._folder.glob("*.jsonl")):
            if path == self._path:
                continue
            owner = file_lock(_lock_path(path))
            try:
                owner.acquire(timeout=0)
            except Timeout:
                continue
            try:
                found = read(path)
                keep_aside(path, found.damaged)
                yield list(found.entries)
                fail_point("inbox.adopted")
                path.unlink(missing_ok=True)
                fail_point("inbox.removed")
                _lock_path(path).unlink(missing_ok=True)
            finally:
                owner.release()

    def close(self) -> None:
        """Close the file; it goes away if all in it is dealt with, else the next process adopts it."""
        with self._lock:
            self._closed = True
            if self._handle is None or self._owner is None:
                return
            os.close(self._handle)
            self._handle = None
            if not self._waiting:
                self._path.unlink(missing_ok=True)
                _lock_path(self._path).unlink(missing_ok=True)
            self._owner.release()

    def abandon(self) -> None:
        """Let go of the file in a forked child: what is in it is the parent's."""
        self._closed = True
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _opened(self) -> int:
        if self._handle is None:
            self._owner = file_lock(_lock_path(self._path))
            self._owner.acquire()
            self._handle = os.open(self._path, os.O_CREAT | os.O_WRONLY | getattr(os, "O_BINARY", 0), FILE_MODE)
            sync_folder(self._folder)
        return self._handle

    def _write(self, line: bytes) -> None:
        # Zeros are written ahead in chunks: a sync of blocks that are there already need not wait for the
        # file system's journal, which is where an append that lets the file grow spends its time.
        handle = self._opened()
        if self._used + len(line) > self._size:
            grown = self._used + len(line) + CHUNK
            _put(handle, self._size, bytes(grown - self._size))
            os.fsync(handle)
            fail_point("inbox.grown")
            self._size = grown
        _put(handle, self._used, line)
        fail_point("inbox.written")
        _sync(handle)
        fail_point("inbox.synced")
        self._used += len(line)


def waiting_in(folder: Path) -> int:
    """Return how many turns an inbox folder holds, of whatever process."""
    return sum(len(read(path).entries) for path in sorted(folder.glob("*.jsonl")))


def _put(handle: int, start: int, content: bytes) -> None:
    os.lseek(handle, start, os.SEEK_SET)
    if os.write(handle, content) != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _sync(handle: int) -> None:
    # fdatasync spares the write of the file's times; macOS and Windows have only fsync.
    getattr(os, "fdatasync", os.fsync)(handle)


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")
