"""JSON-RPC 2.0 over pipes, a message a line: read strictly, answered in whole lines and in any order."""

from __future__ import annotations

import json
import math
import os
import select
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from perdure.service.service import Refusal, Service

MAX_LINE = 8_000_000
"""Bytes of a line at the most, its newline not counted."""
MAX_ID = 128
MAX_WHY = 500
"""Characters of what the host says of a request that it could not answer."""
CHUNK = 262_144

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CANCELLED = -32800

Id = str | int | None

QUEUED = 256
"""Requests that may wait; a host that sends more is refused, so that memory stays bounded."""
SLOTS = {"foresee": "recall", "before_prompt_build": "recall", "tool": "tools"}
THREADS = {"recall": 1, "turns": 1, "tools": 2}
CANCEL = "$/cancel"


class RpcError(Refusal):
    """What a request is answered with instead of a result, with the protocol's code for it."""

    def __init__(self, code: int, message: str, request_id: Id = None) -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id


@dataclass(frozen=True, slots=True)
class Request:
    """A request, or a notification, which is not answered."""

    method: str  # what is asked
    params: Mapping[str, Any]  # with these values
    id: Id  # under which the answer goes back
    answered: bool  # False for a notification


@dataclass(frozen=True, slots=True)
class Answer:
    """What the host answers to a request of ours."""

    id: str  # of the request
    result: Any = None
    error: str = ""  # why there is no result


def lines(handle: int, stop: int) -> Iterator[bytes | RpcError]:
    """Yield the lines that come through a pipe until it is closed; an error in place of one that is too long.

    Ends as well once something can be read from `stop`: a signal that arrives just before a read would not end it.

    No more than `MAX_LINE` bytes and a chunk are held at any time. A last line without its newline was cut off by the
    other side's end and is dropped.
    """
    held: list[bytes] = []
    size = 0
    while stop not in select.select([handle, stop], [], [])[0] and (chunk := os.read(handle, CHUNK)):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            size += len(part)
            if size > MAX_LINE:
                yield RpcError(INVALID_REQUEST, f"a line exceeds {MAX_LINE} bytes; send less at a time")
            else:
                yield b"".join([*held, part])
            held, size = [], 0
        size += len(rest)
        held = [*held, rest] if size <= MAX_LINE else []


def parse(line: bytes) -> Request | Answer:
    """Read one message: JSON as RFC 8259 has it, so without NaN, and without keys that come twice."""
    try:
        value = json.loads(
            line.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant, parse_float=_float
        )
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise RpcError(PARSE_ERROR, f"not JSON: {what}") from None
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "a message must be one object; batches are not supported")
    request_id = _checked_id(value)
    if value.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'jsonrpc must be "2.0"', request_id)
    if isinstance(request_id, str) and value.keys() in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}):
        refused = value.get("error", {})
        why = str(refused.get("message") or "") if isinstance(refused, dict) else ""
        return Answer(request_id, value.get("result"), why[:MAX_WHY])
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str) or not method:
        raise RpcError(INVALID_REQUEST, "method must be a string", request_id)
    if unknown := value.keys() - {"jsonrpc", "id", "method", "params"}:
        raise RpcError(INVALID_REQUEST, f"unknown member {min(unknown)[:40]!r}", request_id)
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object", request_id)
    return Request(method, params, request_id, "id" in value)


class Writer:
    """Writes messages to one pipe, each as a whole line, from any thread."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._lock = threading.Lock()

    def result(self, request_id: Id, value: Any) -> None:
        """Answer a request."""
        self._put(request_id, result=value)

    def error(self, error: RpcError) -> None:
        """Refuse a request."""
        self._put(error.request_id, error={"code": error.code, "message": str(error)})

    def request(self, request_id: str, method: str, params: Mapping[str, Any]) -> None:
        """Ask something."""
        self._put(request_id, method=method, params=params)

    def _put(self, request_id: Id, **members: Any) -> None:
        message = {"jsonrpc": "2.0", "id": request_id, **members}
        # In ASCII: half a surrogate pair that came in must not break the way out.
        line = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
        with self._lock:
            view = memoryview(line)
            while view:
                view = view[os.write(self._handle, view) :]


class Server(Service):
    """Answers requests: recall in a slot of its own, the events of turns one after the other, tools two at a time."""

    def __init__(
        self, do: Callable[[str, Mapping[str, Any]], Any], writer: Writer, answered: Callable[[Answer], None]
    ) -> None:
        """Prepare; `do` is that of `Service`, `answered` takes what the host answers."""
        super().__init__(do, THREADS)
        self._writer = writer
        self._answered = answered
        self._pending: dict[object, Future[None]] = {}

    def serve(self, handle: int) -> None:
        """Answer what comes through a pipe until the other side closes it, or `stop`."""
        with suppress(BrokenPipeError):
            for line in lines(handle, self.stopped):
                try:
                    if isinstance(line, RpcError):
                        raise line
                    if line.strip():
                        message = parse(line)
                        self._answered(message) if isinstance(message, Answer) else self._take(message)
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
                raise RpcError(INVALID_REQUEST, "a request with this id is already running")
            if len(self._pending) >= QUEUED:
                raise RpcError(INVALID_REQUEST, f"{QUEUED} requests are running; wait for answers", request.id)
            future = self._pools[SLOTS.get(request.method, "turns")].submit(self._answer, request)
            self._pending[key] = future
        future.add_done_callback(lambda done: self._done(key))

    def _answer(self, request: Request) -> None:
        try:
            result = self.done(request.method, request.params)
        except Refusal as error:
            code = error.code if isinstance(error, RpcError) else INTERNAL_ERROR
            if request.answered:
                self._writer.error(RpcError(code, str(error), request.id))
        else:
            if request.answered:
                self._writer.result(request.id, result)

    def _cancel(self, request_id: Any) -> None:
        with self._lock:
            future = self._pending.get(request_id) if isinstance(request_id, str | int) else None
        # One that runs already ends by its own deadline.
        if future is not None and future.cancel():
            self._writer.error(RpcError(CANCELLED, "cancelled before it started", request_id))

    def _done(self, key: object) -> None:
        with self._lock:
            self._pending.pop(key, None)


def _checked_id(value: Mapping[str, Any]) -> Id:
    request_id = value.get("id")
    good = request_id is None or (isinstance(request_id, str) and len(request_id) <= MAX_ID)
    if not good and (isinstance(request_id, bool) or not isinstance(request_id, int) or abs(request_id) > 2**53):
        raise RpcError(INVALID_REQUEST, f"id must be a whole number, null, or a string of at most {MAX_ID} characters")
    return request_id


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object has a duplicate key")
    return value


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is out of range")
    return value
