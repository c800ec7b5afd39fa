"""One server of pages for each caller of a data folder: a second start finds the first and opens it again.

It is found by a Unix socket that only this user can connect to, never by its port, which anybody may take. For that
reason it is no part of the helper, either: other users reach its port, and nobody else is to reach a process on which
every session waits. Where there are no Unix sockets, each start has a server of its own.
"""

from __future__ import annotations

import hashlib
import html
import os
import secrets
import signal
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn

from perdure.api.memory import Memory
from perdure.engine.paths import data_folder
from perdure.errors import HostError, InputError
from perdure.service.client import OK, ask_at, endpoint, lock_of, runtime_folder
from perdure.service.helper import Helper
from perdure.ui.door import ENTER, TOKEN_SECONDS, Keys
from perdure.ui.pages import pages

SECONDS = 5.0
"""For which a server that runs already may take to answer."""
ENTERING = "enter"
UNIX = hasattr(socket, "AF_UNIX") and hasattr(os, "getuid")
_REDIRECT = "open-ui-"
Told = Callable[[str], None]


def serve(
    home: Path | None,
    *,
    agent: str | None = None,
    user: str | None = None,
    port: int = 0,
    browser: bool = True,
    told: Told = print,
) -> None:
    """Serve the pages of a store until Ctrl-C; or, if they are served already, open them and return.

    `home`: the data folder; None: the usual one. `port`: on which; 0: any that is free. `browser`: open them in a
    browser; otherwise the address is told.
    """
    place = f"{endpoint(str(data_folder(home)))}-ui-{_caller(agent, user)}" if UNIX else ""
    lock = lock_of(place) if UNIX else None
    if UNIX and lock is None:
        _opened(_asked(place), browser, told)
        return
    # A plain end of the process would leave the store as a power cut does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with (
            suppress(KeyboardInterrupt),
            Memory.open(home, agent=agent, user=user, whole=True) as memory,
            _listening(port) as listener,
        ):
            _serve(memory, listener, place, browser, told)
    finally:
        if lock is not None:
            os.close(lock)


def _serve(memory: Memory, listener: socket.socket, place: str, browser: bool, told: Told) -> None:
    keys, port = Keys(), listener.getsockname()[1]

    def address() -> str:
        return f"http://127.0.0.1:{port}{ENTER}?token={keys.token()}"

    # Long answers to a browser that went away must not hold up the end.
    config = uvicorn.Config(
        pages(memory, keys, port), log_level="warning", access_log=False, server_header=False,
        timeout_graceful_shutdown=1, ws="none", lifespan="off",
    )  # fmt: skip
    with _found(place, address):
        told("The page stays available until you press Ctrl-C here.")
        _opened(address(), browser, told)
        uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise InputError(f"port {port} cannot be used ({error.strerror}); omit --port to use a free one") from error
        listener.listen()
        yield listener


@contextmanager
def _found(place: str, address: Callable[[], str]) -> Iterator[None]:
    """Answer a second start with an address, until the end."""
    if not place:
        yield
        return
    helper = Helper(f"{place}.sock", {ENTERING: lambda _: address().encode()}, idle=float("inf"))
    thread = threading.Thread(target=helper.serve, name="perdure-ui-found", daemon=True)
    thread.start()
    try:
        yield
    finally:
        helper.stop()
        thread.join(SECONDS)


def _asked(place: str) -> str:
    problem = "the page is already open in a perdure ui process that does not respond; stop that process and try again"
    try:
        answer = ask_at(f"{place}.sock", ENTERING, b"", SECONDS)
    except OSError as error:
        raise HostError(f"{problem} ({error})") from error
    if answer is None or answer[0] != OK:
        raise HostError(problem)
    return answer[1].decode()


def _opened(address: str, browser: bool, told: Told) -> None:
    """Open an address, or tell it. Other users see a browser's command line: it names a file that they cannot read."""
    if not browser:
        told(f"Open this address within {TOKEN_SECONDS:.0f} seconds; it works once:")
        told(address)
        return
    folder = Path(runtime_folder() if UNIX else data_folder(None))
    for old in folder.glob(f"{_REDIRECT}*.html"):
        if time.time() - old.stat().st_mtime > TOKEN_SECONDS:
            old.unlink(missing_ok=True)
    path = folder / f"{_REDIRECT}{secrets.token_hex(8)}.html"
    link = html.escape(address)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={link}">')
    if not webbrowser.open(path.as_uri()):
        path.unlink(missing_ok=True)
        told("No browser could be opened. Run: perdure ui --no-browser")


def _caller(agent: str | None, user: str | None) -> str:
    return hashlib.sha256(repr((agent, user)).encode()).hexdigest()[:8]
