"""What a host runs at each event: it asks the helper, and says what that answers.

It always ends with exit code 0 and within a second, and writes to stdout what the host's schema allows or nothing.
Nothing is imported that a hook does not need, since the host waits for it in every turn: neither `json` nor `socket`,
which take longer than the helper. A request is a line, `method TAB stamp`, and a body to the end of what is sent; an
answer is a line, "ok" or the name of an error, and a body, the result or what is wrong.
"""

from __future__ import annotations

import _socket
import os
import select
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from socket import socket as Socket
    from typing import Any

PROTOCOL = 3
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib takes as long to import as all the rest
SECONDS = 0.95
"""After these the hook ends, whatever it waits for."""
PATIENCE = 0.6
"""Seconds that the helper is waited for."""
LEAVING, PAUSE = 5.0, 0.02
"""Seconds that a helper has to end in, and between two looks."""
MAX_INPUT = 8_000_000
MAX_LOG = 1_000_000
CHUNK = 262_144
OK, STALE = "ok", "stale"
OPENED = ("cursor", "vscode")
"""Hosts that are shown something when a session begins, and not later."""
STOP = "stop"
"""Asked of a helper that is to end."""
_PASSED = (
    "ANTHROPIC_BASE_URL", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CONFIG_DIR", "HOME", "LANG",
    "LOGNAME", "PATH", "SHELL", "SYSTEMROOT", "TMPDIR", "TZ", "USER",
)  # fmt: skip
_FAMILIES = ("LC_", "PERDURE_", "XDG_")
"""What of its environment the helper gets. A host's holds keys and tokens, which are no concern of a process that
outlives it; where a host's model is it must know, as nothing that was said there may go elsewhere."""


def main(arguments: list[str]) -> None:
    """Run a hook and end the process. The arguments are the event, `--host NAME` and, if unusual, `--home FOLDER`."""
    ends = time.monotonic() + SECONDS
    try:
        event, host, home = _read(arguments)
        # Where a session began, and by which way; what the event names may be a folder that a tool has gone to.
        began = (os.environ.get(name, "") for name in ("CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT"))
        body = b"\0".join((event.encode(), host.encode(), *map(os.fsencode, began), _until(0, ends)))
        said = _handled(home, event, host, body, ends)
        if said:
            os.write(1, said)
    except Exception as error:  # noqa: BLE001 - the border to the host, which must not be troubled
        _log(f"{type(error).__name__} in hook {' '.join(arguments)[:200]}")
    # The interpreter takes longer to end than to do all this.
    os._exit(0)


def stamp() -> str:
    """Return what tells this installation of perdure from another: a helper of a former version must end."""
    state = os.stat(os.path.join(_PACKAGE, "__init__.py"))  # noqa: PTH116, PTH118 - as above
    return f"{PROTOCOL} {_PACKAGE} {state.st_mtime_ns} {state.st_size}"


def runtime_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder for sockets and locks, created for this user alone; OSError if it is somebody else's."""
    base = environ.get("XDG_RUNTIME_DIR") or ""
    if not os.path.isdir(base):  # noqa: PTH112 - as above
        base = environ.get("TMPDIR") or "/tmp"  # noqa: S108 - the folder in it is checked
    folder = os.path.join(base, f"perdure-{os.getuid()}")  # noqa: PTH118 - as above
    try:
        os.mkdir(folder, 0o700)  # noqa: PTH102 - as above
    except FileExistsError:
        state = os.lstat(folder)
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o077:
            raise PermissionError(f"{folder} is not private to this user; remove it") from None
    return folder


def lock_of(endpoint: str) -> int | None:
    """Return a helper's lock, the caller's until its handle is closed; None if somebody else holds it."""
    # Windows has no helpers, nor this module.
    import fcntl

    lock = os.open(f"{endpoint}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def endpoint(home: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of the socket of a data folder's helper; beside it lie its lock and its log.

    The folder is created if it is absent: what tells it from others is its place on the disk, whatever it is called.
    """
    os.makedirs(home, 0o700, exist_ok=True)  # noqa: PTH103 - as above
    state = os.stat(home)  # noqa: PTH116 - as above
    return os.path.join(runtime_folder(environ), f"{state.st_dev:x}-{state.st_ino:x}")  # noqa: PTH118 - as above


def ask(home: str, method: str, body: bytes, seconds: float, *, begin: bool = True) -> tuple[str, bytes] | None:
    """Ask the helper of a data folder; return "ok" or the name of an error, and the answer.

    None means that there is no helper (with `begin` one is started for later requests), or that it died. After a
    TimeoutError the helper is still at work on the request; any other OSError means that there can be no helper here.
    """
    if not possible():
        raise OSError("helpers are not supported on this machine")
    path = endpoint(home)
    try:
        return ask_at(f"{path}.sock", method, body, seconds)
    except (FileNotFoundError, ConnectionRefusedError):
        if begin:
            start(home, path)
        return None


def dismiss(home: Path) -> None:
    """Have the helper of a data folder end, for who must be alone there, and wait some seconds until it has."""
    try:
        if not home.exists() or ask(str(home), STOP, b"", LEAVING, begin=False) is None:
            return
        until = time.monotonic() + LEAVING
        # The helper holds its lock to its end.
        while (lock := lock_of(endpoint(str(home)))) is None and time.monotonic() < until:
            time.sleep(PAUSE)
        if lock is not None:
            os.close(lock)
    except OSError:
        return


def ask_at(path: str, method: str, body: bytes, seconds: float) -> tuple[str, bytes] | None:
    """Ask this user's listener on a socket; return "ok" or the name of an error, and the answer, or None if it died.

    FileNotFoundError or ConnectionRefusedError means that nobody listens there. After a TimeoutError the listener is
    still at work on the request; any other OSError means that it belongs to another user.
    """
    to = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        to.settimeout(seconds)
        to.connect(path)
        if peer(to) != os.getuid():
            raise PermissionError(f"{path} belongs to another user")
        try:
            to.sendall(f"{method}\t{stamp()}\n".encode() + body)
            to.shutdown(_socket.SHUT_WR)
            head, ended, answer = received(to).partition(b"\n")
        except ConnectionError:
            return None
        return (head.decode(), answer) if ended else None
    finally:
        to.close()


def possible() -> bool:
    """Return whether there can be helpers: not on Windows, nor where PERDURE_HELPER is 0."""
    return hasattr(_socket, "AF_UNIX") and os.environ.get("PERDURE_HELPER") != "0"


def received(of: Socket | _socket.socket) -> bytes:
    """Return all that comes through a socket; OSError if it breaks, sends too much or takes too long."""
    held = bytearray()
    while chunk := of.recv(CHUNK):
        held += chunk
        if len(held) > MAX_INPUT:
            raise OSError("the request exceeds the limit for a host")
    return bytes(held)


def peer(to: Socket | _socket.socket) -> int:
    """Return the user id of who is at the other end of a Unix socket."""
    if hasattr(_socket, "SO_PEERCRED"):
        # struct ucred: process, user, group.
        return int.from_bytes(to.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
    # macOS: LOCAL_PEERCRED at the level of local sockets gives struct xucred: a version, the user.
    return int.from_bytes(to.getsockopt(0, 1, 8)[4:8], sys.byteorder)


def start(home: str, path: str) -> None:
    """Start the helper of a data folder. One that finds another at work ends by itself.

    A host may read a hook's stdout to its end, so the helper has none of its descriptors.
    """
    lock = lock_of(path)
    if lock is None:
        return  # one is on its way
    os.close(lock)
    environ = {name: value for name, value in os.environ.items() if name in _PASSED or name.startswith(_FAMILIES)}
    log = os.open(f"{path}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    if os.fstat(log).st_size > MAX_LOG:
        os.ftruncate(log, 0)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, log, 2),
    ]
    command = [sys.executable, "-I", "-m", "perdure.service.helper", home]
    os.posix_spawn(sys.executable, command, environ, file_actions=actions)
    os.close(log)


def _handled(home: str, event: str, host: str, body: bytes, ends: float) -> bytes:
    answer = None
    try:
        if possible():
            answer = ask(home, "hook", body, PATIENCE)
    except TimeoutError:
        # It has the event, and comes to it.
        return b""
    except OSError as error:
        _log(f"no helper: {type(error).__name__}")
    if answer is not None and answer[0] == OK:
        return answer[1]
    # No helper, or one of another version: words alone.
    needed = event in ("prompt", "stop") or (event == "session-start" and host in OPENED)
    return _alone(home, body, ends) if needed else b""


def _alone(home: str, body: bytes, ends: float) -> bytes:
    """Do without a helper, in a process that goes on to keep what was said when the host waits no longer."""
    if not hasattr(os, "fork"):
        return _in_this_process(home, body)
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for handle in (0, 1, 2):
                os.dup2(nothing, handle)
            # The hooks of other sessions wait for the same processor.
            os.nice(10)
            import gc

            from perdure import kept

            # What lives for a second makes no garbage that would have to be collected.
            gc.disable()
            kept.begin()
            os.write(writing, _in_this_process(home, body))
            os.close(writing)
            kept.keep()
        except BaseException as error:  # noqa: BLE001 - nobody else is there to be told
            _log(f"{type(error).__name__} without a helper")
        finally:
            os._exit(0)
    os.close(writing)
    return _until(reading, ends)


def _in_this_process(home: str, body: bytes) -> bytes:
    from perdure.parts import part

    handled: bytes = part("hosts.command.hooks").handled(home, body)
    return handled


def _read(arguments: list[str]) -> tuple[str, str, str]:
    event, *rest = arguments
    given: dict[str, Any] = dict(zip(rest[::2], rest[1::2], strict=True))
    home = given.get("--home") or os.environ.get("PERDURE_HOME")
    if not home:
        from perdure.engine.paths import data_folder

        home = str(data_folder())
    return event, given["--host"], os.path.abspath(os.path.expanduser(home))  # noqa: PTH100, PTH111 - as above


def _until(handle: int, ends: float) -> bytes:
    """Return what comes through a pipe to its end, or until it is too late: then nothing."""
    if sys.platform == "win32":
        return _until_read(handle, ends)
    held = bytearray()
    while (left := ends - time.monotonic()) > 0 and len(held) <= MAX_INPUT:
        if select.select([handle], [], [], left)[0]:
            chunk = os.read(handle, CHUNK)
            if not chunk:
                return bytes(held)
            held += chunk
    return b""


def _until_read(handle: int, ends: float) -> bytes:
    """Do the same on Windows, where `select` takes nothing but sockets."""
    import threading

    held = bytearray()

    def read() -> None:
        while len(held) <= MAX_INPUT and (chunk := os.read(handle, CHUNK)):
            held.extend(chunk)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(max(0.0, ends - time.monotonic()))
    return b"" if reading.is_alive() else bytes(held)


def _log(what: str) -> None:
    """Write a line to the log of all hooks: never what was said, only what kind of thing went wrong."""
    try:
        with open(f"{runtime_folder()}/hooks.log", "a", encoding="utf-8") as log:  # noqa: PTH123 - as above
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {what!r}\n")
    except (OSError, AttributeError):
        pass
