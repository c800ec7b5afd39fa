"""A server on this machine that answers as a test says, and counts who connects."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Request:
    """What came in."""

    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """What goes out: JSON, or bytes as they are."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    """After so many bytes of the body the connection is closed."""

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Answer = Callable[[Request], Reply]


class Loopback:
    """A running server.

    Attributes:
        requests: all that came, in their order.
        connections: how many connections were opened.
        hang: while set, a request is read and not answered until `release` is set.
        trickle: send a byte of the answer every so often, until `release` is set.
    """

    def __init__(self, answer: Answer, certificate: Path | None = None) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.connections = 0
        self.hang = False
        self.trickle = False
        self.arrived = threading.Event()
        self.release = threading.Event()
        loopback = self

        class Handler(BaseHTTPRequestHandler):
            def setup(self) -> None:
                loopback.connections += 1
                super().setup()

            def do_POST(self) -> None:
                loopback._serve(self)

            def do_GET(self) -> None:
                loopback._serve(self)

            def log_message(self, *values: object) -> None:
                """Keep quiet."""

        self._scheme = "http"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate is not None:
            self._scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self._scheme == "http" else "localhost"
        return f"{self._scheme}://{host}:{self._server.server_address[1]}"

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length", "0"))
        body = json.loads(handler.rfile.read(length)) if length else None
        request = Request(handler.path, dict(handler.headers), body)
        self.requests.append(request)
        self.arrived.set()
        if self.hang:
            self.release.wait(30)
            return
        reply = self.answer(request)
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(reply.data) + (100 if self.trickle else 0)))
        handler.end_headers()
        try:
            handler.wfile.write(reply.data if reply.cut is None else reply.data[: reply.cut])
            while self.trickle and not self.release.wait(0.02):
                handler.wfile.write(b" ")
        except OSError:
            return


@contextmanager
def loopback(answer: Answer, certificate: Path | None = None) -> Iterator[Loopback]:
    """Run a server for a block, by https if it is given a file with a certificate and its key."""
    server = Loopback(answer, certificate)
    try:
        yield server
    finally:
        server.close()


def served(content: bytes, request: Request) -> Reply:
    """Return a file, or the part of it that a Range header asks for."""
    asked = request.headers.get("Range")
    if asked is None:
        return Reply(content)
    start = int(asked.removeprefix("bytes=").removesuffix("-"))
    return Reply(content[start:], 206, {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"})


def chat(text: str, tokens: int | None = None) -> Reply:
    """Return a chat completion as OpenAI's API gives it."""
    usage = {} if tokens is None else {"usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": tokens}}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Reply({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], **usage})
