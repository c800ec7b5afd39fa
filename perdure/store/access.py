"""A store in a folder that cannot be written, and databases in it that can still be read.

Why something cannot be written, or read, is said in words.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from perdure.errors import StoreBusyError, StoreCorruptError, StoreError, StoreFullError, StoreUnavailableError

CLOSE = "close every program that uses this memory, and retry"
FULL = 65_536
"""Bytes. With less free room a disk is full: what SQLite needs to open a database does not fit on it."""
_LOCKLESS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_UNREADABLE = (apsw.CantOpenError, apsw.IOError, apsw.ReadOnlyError, apsw.FullError, apsw.PermissionsError)
_WORDS = {
    apsw.CantOpenError: "it cannot be opened",
    apsw.ReadOnlyError: "it is read-only",
    apsw.PermissionsError: "permission denied by the system",
}


def refusal(folder: Path, *, full: bool = False) -> str | None:
    """Return why nothing can be written in a folder with a store, or None: it can, or there is no store.

    With `full`, a full disk counts, too.
    """
    if not (folder / "facts.db").is_file():
        return None
    if not os.access(folder, os.W_OK | os.X_OK):
        return _told(f"the folder {folder}", _reason(folder))
    if not os.access(folder / "facts.db", os.W_OK):
        return _told(f"the file {folder / 'facts.db'}", _reason(folder))
    return _told(f"the folder {folder}", "the disk is full") if full and is_full(folder) else None


def is_full(folder: Path) -> bool:
    """Return whether the disk of a folder has no room left."""
    try:
        return shutil.disk_usage(folder).free < FULL
    except OSError:
        return False


def unavailable(path: Path, error: OSError) -> StoreError:
    """Return the error that says in our terms why a file or folder cannot be used."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFullError(f"the disk is full; {path} was not written. Free some space and retry")
    why = error.strerror or type(error).__name__
    if error.errno in _LOCKLESS:
        return StoreUnavailableError(
            f"the file system of {path} does not support locks ({why}), which perdure needs; choose another folder with"
            " PERDURE_HOME or --home"
        )
    return StoreUnavailableError(
        f"{path} cannot be used ({why}); choose a writable path; for the store, set PERDURE_HOME"
    )


def lockless(folder: Path) -> StoreError | None:
    """Return the error that says that the drive of a folder knows no locks, as NFS without its lock service, or None.

    SQLite tells nobody: to it each lock is one that another process holds.
    """
    try:
        import fcntl
    except ImportError:
        return None  # on Windows every drive knows them
    with suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
        for lock in (fcntl.lockf, fcntl.flock):
            try:
                lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                lock(file, fcntl.LOCK_UN)
            except OSError as error:
                return unavailable(folder, error) if error.errno in _LOCKLESS else None
    return None


def unreadable(path: Path, error: apsw.Error) -> StoreError:
    """Return the error that says in our terms why SQLite cannot read or write a file."""
    if is_full(path.parent):
        return StoreFullError(f"the disk is full; {path.name} is unchanged. Free some space and retry")
    code = apsw.mapping_extended_result_codes.get(getattr(error, "extendedresult", 0), "")
    why = _WORDS.get(type(error), "the disk or file system reports an error")
    return StoreUnavailableError(f"{path} cannot be read or written: {why} ({code or type(error).__name__})")


def reader(path: Path, *, leaves_nothing: bool = False) -> apsw.Connection:
    """Open a database that this process cannot write; another one may, as from outside of a container.

    To be used for one moment: what lies beside the file decides how it must be opened. With `leaves_nothing`, no file
    is created beside it.
    """
    failed: apsw.Error | None = None
    for options, exclusive in _ways(path, leaves_nothing):
        connection = apsw.Connection(
            f"{path.absolute().as_uri()}?{options}", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        try:
            # Who opens or closes it at this moment holds it for a moment only.
            connection.set_busy_timeout(1_000)
            if exclusive:
                list(connection.execute("PRAGMA locking_mode = EXCLUSIVE"))
            list(connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1"))
            return connection
        except _UNREADABLE as error:
            connection.close()
            failed = error
        except BaseException:
            connection.close()
            raise
    raise failed or apsw.CantOpenError(str(path))


def _ways(path: Path, leaves_nothing: bool) -> Iterator[tuple[str, bool]]:
    # With the log's index beside it, as while somebody has it open, and after a kill. SQLite creates a missing one.
    if not leaves_nothing or path.with_name(f"{path.name}-shm").exists():
        yield "mode=ro", False
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        # A log without its index: the index is made in memory. Nobody has it open, so there is nobody to lock out.
        vfs = next(name for name in apsw.vfs_names() if name.endswith("-none"))
        yield f"mode=ro&vfs={vfs}", True
    else:
        # Closed in order: all is in the file, and nobody writes it.
        yield "immutable=1", False


def _told(what: str, reason: str) -> str:
    return f"{what} cannot be written ({reason}); memories can be read but not changed"


def _reason(folder: Path) -> str:
    read_only = getattr(os, "ST_RDONLY", 0)
    if read_only and os.statvfs(folder).f_flag & read_only:
        return "read-only file system"
    return "permission denied"


@contextmanager
def opened(path: Path, *, looks: bool = False, leaves_nothing: bool = False) -> Iterator[apsw.Connection]:
    """Lend one connection to a file that is there already, for a look or a copy beside any `Database`.

    With `looks`, nothing is written; with `leaves_nothing`, no file is created beside it either. Whatever fails, the
    file is as it was.
    """
    try:
        if looks:
            connection = reader(path, leaves_nothing=leaves_nothing)
        else:
            connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(1_000)
            yield connection
        finally:
            connection.close()
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusyError(f"{path} is in use; {CLOSE}") from error
    except apsw.FullError as error:
        raise StoreFullError(f"the disk is full; {path.name} is unchanged. Free some space and retry") from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise StoreCorruptError(f"{path} is not an intact SQLite database; it was left untouched") from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.PermissionsError) as error:
        raise unreadable(path, error) from error
    except apsw.Error as error:
        raise StoreError(f"{path.name}: {type(error).__name__}") from error
