"""Who has the store open: a lock file per open store, which the kernel frees at death."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from perdure.errors import StoreBusyError
from perdure.store.access import unavailable
from perdure.store.folder import FILE_MODE, prepare_folder

FOLDER = "presence"
PATIENCE = 60.0
"""Seconds that an opening waits while a purge works alone."""
_own: set[Path] = set()
_own_lock = threading.Lock()


class Presence:
    """Tells other processes that this one has the store open, until `close` or death."""

    def __init__(self, folder: Path, patience: float = PATIENCE) -> None:
        """Enter.

        Args:
            folder: the data folder.
            patience: seconds to wait for one who works alone in it.

        Raises:
            StoreBusyError: that one is still at work.
            StoreUnavailableError, StoreFullError: the folder cannot be written.
        """
        self._path = _room(folder) / f"{uuid.uuid4().hex}.lock"
        self._lock = _file_lock(self._path)
        try:
            with _file_lock(_door(folder)).acquire(timeout=patience):
                self._lock.acquire(timeout=0)
        except Timeout:
            raise StoreBusyError(
                f"{folder} has been purged of memories by another process for {patience:.0f} s; retry when it is done"
            ) from None
        except OSError as error:
            raise unavailable(self._path, error) from error
        with _own_lock:
            _own.add(self._path)

    def close(self) -> None:
        """Leave. Leaving twice is no error."""
        with _own_lock:
            if self._path not in _own:
                return
            _own.remove(self._path)
        self._path.unlink(missing_ok=True)
        self._lock.release()


@contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """Keep others from opening the store during the block; lends whether nobody else has it open already.

    Lends False also when another process works alone in it.
    """
    try:
        with _file_lock(_door(folder)).acquire(timeout=0):
            yield not _others(folder)
    except Timeout:
        yield False


def _others(folder: Path) -> int:
    # Beside the caller, in this process or another. The files of those who died are removed: nobody can be
    # about to lock them, as the caller stands in the door.
    with _own_lock:
        own = {path for path in _own if path.parent == _room(folder)}
    return sum(_held(path) for path in _room(folder).glob("*.lock") if path not in own) + max(0, len(own) - 1)


def _held(path: Path) -> bool:
    if path.name == "door.lock":
        return False
    lock = _file_lock(path)
    try:
        with lock.acquire(timeout=0):
            path.unlink(missing_ok=True)
            return False
    except Timeout:
        return True


def _room(folder: Path) -> Path:
    return prepare_folder(folder.resolve() / FOLDER)


def _door(folder: Path) -> Path:
    return _room(folder) / "door.lock"


def _file_lock(path: Path) -> FileLock:
    # Not thread-local: the thread that closes is seldom the one that opened.
    return FileLock(path, mode=FILE_MODE, thread_local=False)
