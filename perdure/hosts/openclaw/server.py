"""The child process of the gateway: requests come in by stdin, answers go out by stdout, in any order."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Any, Protocol

from perdure.cli.log_lines import line_handler
from perdure.errors import PerdureError
from perdure.hosts.openclaw.hooks import OpenClawHooks
from perdure.hosts.openclaw.rpc import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Request,
    RpcError,
    Writer,
    lines,
    parse,
)

PARENT_SECONDS = 1.0
"""How often is looked whether the host is still there."""
LAST_SECONDS = 4.0
"""After this the process ends, whatever still holds it."""
QUEUED = 256
"""Requests that may wait; a host that sends more is refused, so that memory stays bounded."""
SLOTS = {"foresee": "recall", "before_prompt_build": "recall", "tool": "tools"}
THREADS = {"recall": 1, "turns": 1, "tools": 2}
CANCEL = "$/cancel"
_log = logging.getLogger("perdure.openclaw")


class Handler(Protocol):
    """What requests are handed to."""

    def handle(self, method: str, params: Mapping[str, Any]) -> Any:
        """Return a request's result, as JSON values; raises RpcError."""


class Server:
    """Answers requests: recall in a slot of its own, the events of turns one after the other, tools two at a time."""

    def __init__(self, handler: Handler, writer: Writer) -> None:
        self._handler = handler
        self._writer = writer
        self._pools = {name: ThreadPoolExecutor(count, f"perdure-{name}") for name, count in THREADS.items()}
        self._lock = threading.Lock()
        self._pending: dict[object, Future[None]] = {}

    def serve(self, handle: int, stop: int) -> None:
        """Answer what comes through a pipe until the other side closes it, or something comes through `stop`."""
        for line in lines(handle, stop):
            try:
                if isinstance(line, RpcError):
                    raise line
                if line.strip():
                    self._take(parse(line))
            except RpcError as error:
                self._writer.error(error)

    def close(self) -> None:
        """Drop what waits; what runs goes on to its end."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    def _take(self, request: Request) -> None:
        if request.method == CANCEL:
            self._cancel(request.params.get("id"))
            return
        if request.method in ("initialize", "ping"):
            # Answered by the reader itself: that shows the host that this process is alive.
            self._answer(request)
            return
        key: object = request.id if request.answered else object()
        with self._lock:
            if key in self._pending:
                raise RpcError(INVALID_REQUEST, "a request with this id is under way")
            if len(self._pending) >= QUEUED:
                raise RpcError(INVALID_REQUEST, f"{QUEUED} requests are under way; wait for answers", request.id)
            future = self._pools[SLOTS.get(request.method, "turns")].submit(self._answer, request)
            self._pending[key] = future
        future.add_done_callback(lambda done: self._done(key))

    def _answer(self, request: Request) -> None:
        try:
            result = self._handler.handle(request.method, request.params)
        except RpcError as error:
            self._refuse(request, error.code, error.message)
        except PerdureError as error:
            self._refuse(request, INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - the border of the process: one request must not end it
            _log.exception("request %s failed", request.method[:40])
            self._refuse(request, INTERNAL_ERROR, f"unexpected {type(error).__name__}; please report it")
        else:
            if request.answered:
                self._writer.result(request.id, result)

    def _refuse(self, request: Request, code: int, message: str) -> None:
        if request.answered:
            self._writer.error(RpcError(code, message, request.id))

    def _cancel(self, request_id: Any) -> None:
        with self._lock:
            future = self._pending.get(request_id) if isinstance(request_id, str | int) else None
        # One that runs already ends by its own deadline.
        if future is not None and future.cancel():
            self._writer.error(RpcError(CANCELLED, "cancelled before it began", request_id))

    def _done(self, key: object) -> None:
        with self._lock:
            self._pending.pop(key, None)


def main() -> None:
    """Run the child: until stdin closes, the host is gone, or SIGTERM."""
    out = _reserve_stdout()
    stop = _wake_on_signals()
    logging.basicConfig(level=logging.INFO, handlers=[line_handler("%(levelname)s %(name)s: %(message)s")])
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True, name="perdure-parent").start()
    hooks = OpenClawHooks()
    server = Server(hooks, Writer(out))
    try:
        server.serve(0, stop)
    except (SystemExit, BrokenPipeError):
        pass
    finally:
        _end_in_time()
        server.close()
        hooks.close()
    # Threads of the pools that hang would keep the interpreter waiting at its end.
    sys.stderr.flush()
    os._exit(0)


def _reserve_stdout() -> int:
    """Keep stdout for the protocol: whatever else is printed goes to stderr."""
    out = os.dup(1)
    os.set_inheritable(out, False)
    os.dup2(2, 1)
    return out


def _wake_on_signals() -> int:
    """Return a pipe in which every signal leaves a byte."""
    stop, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    return stop


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def _watch_parent(parent: int) -> None:
    # The end of stdin tells the same, unless another process has inherited its other side.
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _end_in_time() -> None:
    timer = threading.Timer(LAST_SECONDS, lambda: os._exit(1))
    timer.daemon = True
    timer.start()
