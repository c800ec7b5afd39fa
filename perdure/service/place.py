"""Where the helper of a data folder listens. Read by every hook, so it imports next to nothing."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROTOCOL = 1
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib takes as long to import as all the rest


def stamp() -> str:
    """Return what tells this installation of perdure from another: a helper of a former version must end."""
    state = os.stat(os.path.join(_PACKAGE, "__init__.py"))  # noqa: PTH116, PTH118 - as above
    return f"{PROTOCOL} {_PACKAGE} {state.st_mtime_ns} {state.st_size}"


def runtime_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder for sockets and locks, made if need be: for this user alone.

    Raises:
        OSError: it cannot be made, or belongs to somebody else.
    """
    base = environ.get("XDG_RUNTIME_DIR") or ""
    if not os.path.isdir(base):  # noqa: PTH112 - as above
        base = environ.get("TMPDIR") or "/tmp"  # noqa: S108 - the folder in it is checked
    folder = os.path.join(base, f"perdure-{os.getuid()}")  # noqa: PTH118 - as above
    try:
        os.mkdir(folder, 0o700)  # noqa: PTH102 - as above
    except FileExistsError:
        state = os.lstat(folder)
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o077:
            raise PermissionError(f"{folder} is not a folder of this user alone; remove it") from None
    return folder


def lock_of(endpoint: str) -> int | None:
    """Return the lock of a helper, which is the caller's until its handle is closed; None: somebody else holds it.

    Raises:
        OSError: it cannot be made.
    """
    # Windows has no helpers, nor this module.
    import fcntl

    lock = os.open(f"{endpoint}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def endpoint(home: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of the socket of a data folder's helper; beside it lie its lock and its log.

    The folder is made if it is not there: what tells it from others is its place on the disk, whatever it is called.

    Raises:
        OSError: it cannot be made; or see `runtime_folder`.
    """
    os.makedirs(home, 0o700, exist_ok=True)  # noqa: PTH103 - as above
    state = os.stat(home)  # noqa: PTH116 - as above
    return os.path.join(runtime_folder(environ), f"{state.st_dev:x}-{state.st_ino:x}")  # noqa: PTH118 - as above
