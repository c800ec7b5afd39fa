"""The data folder: created private, and kept so; and who has the store in it open."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from perdure.errors import StoreBusyError, StoreUnavailableError
from perdure.store.access import unavailable

FOLDER_MODE = 0o700
FILE_MODE = 0o600
MACHINE = "machine"
"""The file with the name of this machine among those that share a store."""
LANCE_SUMS = "lancedb.sha256"
"""The file with the checksums of the LanceDB table beside it."""
STAGES = ("restoring", "recovering")
"""Folders in which a new facts.db is put together before it takes the place of the former one."""


def prepare_folder(path: Path) -> Path:
    """Create the folder if need be and make it readable by its owner only."""
    try:
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        # Windows has no owner modes; its user folders are private by their access lists. A folder that is in
        # use for something else keeps its mode: only our files in it are ours.
        if os.name == "posix" and path.stat().st_mode & 0o077 and _is_ours(path):
            path.chmod(FOLDER_MODE)
    except FileExistsError:
        raise StoreUnavailableError(f"{path} is a file; give a folder (argument or PERDURE_HOME)") from None
    except OSError as error:
        raise unavailable(path, error) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise StoreUnavailableError(f"folder {path} is not writable; change its owner or set PERDURE_HOME")
    return path


def private_file(path: Path) -> Path:
    """Create the file if it is absent, and make it readable by its owner only.

    SQLite gives its -wal and -shm files the mode of the database, so the mode must be right before they appear.
    """
    try:
        # An existing file is not opened: closing it again would drop every lock that this process holds on it.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, FILE_MODE))
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(FILE_MODE)
    except OSError as error:
        raise unavailable(path, error) from error
    return path


def was_opened(path: Path) -> bool:
    """Return whether a folder holds a store, or is one machine's folder of a store that several share."""
    return (path / "facts.db").exists() or (path / MACHINE).exists()


def machine_of(path: Path, of: str) -> str:
    """Return the name that a folder gives its machine, among those that share a store; it is made once.

    `of` names the store, and whose part of it: a folder has turns of one alone.
    """
    file = path / MACHINE
    if not file.exists():
        make_once(file, f"{secrets.token_hex(4)} {of}")
    name, _, theirs = file.read_text(encoding="ascii", errors="replace").partition(" ")
    if theirs != of:
        raise StoreUnavailableError(
            f"folder {path} has turns of another tenant or database; give each its own folder (--home)"
        )
    return name


def make_once(path: Path, content: str) -> None:
    """Make a private file, whole or not at all, unless another process is first."""
    made = private_file(path.with_name(f"{path.name}.{secrets.token_hex(4)}"))
    made.write_text(content, encoding="ascii")
    with suppress(FileExistsError):
        os.link(made, path)
    made.unlink()


def write_synced(path: Path, content: bytes) -> None:
    """Write a file, a new one for its owner alone, and wait until the disk has it."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, FILE_MODE), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(
    path: Path, content: bytes, *, private: bool = False, check: Callable[[], None] = lambda: None
) -> None:
    """Write a file so that it is whole at any moment; it keeps its mode, unless it is new or `private`.

    What `check` raises right before it takes its place leaves everything as it was.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    draft = Path(name)
    try:
        write_synced(draft, content)
        if path.exists() and not private:
            shutil.copymode(path, draft)
        check()
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Lend a private file that takes the place of the target when the block ends; if it raises, nothing has happened.

    What the block has open of it is closed by then.
    """
    prepare_folder(target.parent)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        yield private_file(part)
        with part.open("r+b") as file:
            os.fsync(file.fileno())
        part.replace(target)
        sync_folder(target.parent)
    finally:
        part.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Make new and removed names in the folder survive a power loss, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_ours(path: Path) -> bool:
    names = {entry.name for entry in path.iterdir()}
    return not names or "facts.db" in names or path.name in ("inbox", "lancedb", "backups", "exports")


def vault_file(folder: Path) -> Path:
    """Return where the vault of a data folder is, or would be."""
    return folder / "vault.db"


PRESENCE = "presence"
PATIENCE = 60.0
"""Seconds that an opening waits while a purge works alone."""
_own: set[Path] = set()
_own_lock = threading.Lock()


class Presence:
    """Tells other processes that this one has the store open, until `close` or death."""

    def __init__(self, folder: Path, patience: float = PATIENCE) -> None:
        """Enter.

        The `patience` for one who works alone in the folder is in seconds.
        """
        self._path = _room(folder) / f"{uuid.uuid4().hex}.lock"
        self._lock = file_lock(self._path)
        try:
            with file_lock(_door(folder)).acquire(timeout=patience):
                self._lock.acquire(timeout=0)
        except Timeout:
            raise StoreBusyError(
                f"another process has been purging memories from {folder} for {patience:.0f} s;"
                " retry when it has finished"
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
        _leave(self._lock, self._path)


@contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """Keep others from opening the store during the block; lends whether nobody else has it open already.

    Lends False also when another process works alone in it.
    """
    try:
        with file_lock(_door(folder)).acquire(timeout=0):
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
    lock = file_lock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    _leave(lock, path)
    return False


def _leave(lock: FileLock, path: Path) -> None:
    """Remove the file of a lock that is held, and release it; Windows removes no file that is open."""
    with suppress(PermissionError):
        path.unlink(missing_ok=True)
    lock.release()
    with suppress(PermissionError):
        path.unlink(missing_ok=True)


def _room(folder: Path) -> Path:
    return prepare_folder(folder.resolve() / PRESENCE)


def _door(folder: Path) -> Path:
    return _room(folder) / "door.lock"


def file_lock(path: Path, timeout: float = -1) -> FileLock:
    """Return a private lock: not thread-local, as the thread that closes is seldom the one that opened."""
    return FileLock(path, timeout=timeout, mode=FILE_MODE, thread_local=False)
