"""A model on loopback that speaks OpenAI's form: it answers as it is told and keeps what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REPLY = "Understood."
Body = Mapping[str, Any]


class Model:
    """The server, in a thread of this process.

    Attributes:
        requests: the bodies of what it was asked, oldest first.
        counts: whether it tells how many tokens it was sent, at four characters each, so that a host may compact.
        delay: seconds that it takes to answer.
    """

    def __init__(self) -> None:
        self.requests: list[Body] = []
        self.counts = False
        self.delay = 0.0
        self._call: tuple[str, Mapping[str, Any]] | None = None
        self._say, self._to = REPLY, ""
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                events = model._answer(self.path, body)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for event in events:
                    self.wfile.write(event)
                self.close_connection = True

            def do_GET(self) -> None:
                data = json.dumps({"object": "list", "data": [{"id": "mock-1", "object": "model"}]}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def will_call(self, tool: str, arguments: Mapping[str, Any], to: str = "") -> None:
        """Answer the next request, with `to` in it, with a call of a tool, and the one after that with words."""
        self._call, self._to = (tool, arguments), to

    def will_say(self, answer: str, to: str = "") -> None:
        """Answer the next request, with `to` in it, with these words."""
        self._say, self._to = answer, to

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path: str, body: Body) -> Sequence[bytes]:
        self.requests.append(body)
        time.sleep(self.delay)
        call, say = None, REPLY
        if self._to in json.dumps(body):
            call, say, self._call, self._say = self._call, self._say, None, REPLY
        base = {"id": f"c{len(self.requests)}", "object": "chat.completion.chunk", "created": 1, "model": "mock-1"}
        delta: dict[str, Any] = {"role": "assistant", "content": say}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            delta = {"role": "assistant", "content": None, "tool_calls": [
                {"index": 0, "id": f"call_{len(self.requests)}", "type": "function", "function": function}
            ]}  # fmt: skip
        end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}
        sent = len(json.dumps(body)) // 4 if self.counts else 10
        usage = {"prompt_tokens": sent, "completion_tokens": 5, "total_tokens": sent + 5}
        parts = [
            {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**base, "choices": [end]},
            {**base, "choices": [], "usage": usage},
        ]
        return [*(sent_event(part) for part in parts), b"data: [DONE]\n\n"]


def sent_event(data: Mapping[str, Any], name: str | None = None) -> bytes:
    """Return an event as a server sends it."""
    return (f"event: {name}\n" if name else "").encode() + f"data: {json.dumps(data)}\n\n".encode()


def words(content: object) -> str:
    """Return the text of a message's content, a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
