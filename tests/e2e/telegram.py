"""Telegram's Bot API on loopback: chats bring messages of several people, and what the bot says is kept.

Source of the form: https://core.telegram.org/bots/api.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "1:loopback"
BOT = {
    "id": 1, "is_bot": True, "first_name": "Bot", "username": "loopback_bot", "can_join_groups": True,
    "can_read_all_group_messages": True, "supports_inline_queries": False,
}  # fmt: skip
POLL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Person:
    """Who writes: an id and a first name."""

    id: int
    name: str


OWNER, GUEST = Person(111, "Olivia"), Person(222, "Gustav")
GROUP: Mapping[str, Any] = {"id": -100_777, "type": "supergroup", "title": "Friends"}


class Telegram:
    """The server, in a thread of this process.

    Attributes:
        sent: chat id and text of what the bot said, oldest first.
    """

    def __init__(self) -> None:
        self.sent: list[tuple[int, str]] = []
        self._updates: list[Mapping[str, Any]] = []
        self._news = threading.Condition()
        self._messages = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(size) if size else b""
                given = json.loads(body) if body.startswith(b"{") else dict(parse_qsl(urlsplit(self.path).query))
                method = urlsplit(self.path).path.rpartition("/")[2]
                data = json.dumps({"ok": True, "result": server._answer(method, given)}).encode()
                # A gateway that ends leaves its last poll.
                with suppress(BrokenPipeError):
                    self.send_response(200)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

            do_GET = do_POST

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def config(self, owner: Person = OWNER) -> Mapping[str, Any]:
        """Return OpenClaw's config of this channel: anybody may write in the group and to the bot."""
        telegram = {
            "enabled": True, "botToken": TOKEN, "apiRoot": f"http://127.0.0.1:{self._server.server_address[1]}",
            "dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open", "groups": {"*": {"requireMention": False}},
        }  # fmt: skip
        return {"channels": {"telegram": telegram}, "commands": {"ownerAllowFrom": [f"telegram:{owner.id}"]}}

    def say(self, text: str, sender: Person, chat: Mapping[str, Any] | None = None) -> None:
        """Let somebody write in a group, or to the bot if no chat is named."""
        person = {"id": sender.id, "is_bot": False, "first_name": sender.name}
        place = chat or {"id": sender.id, "type": "private", "first_name": sender.name}
        with self._news:
            self._messages += 1
            message = {"message_id": self._messages, "date": int(time.time()), "text": text}
            self._updates.append({
                "update_id": len(self._updates) + 1, "message": {**message, "from": person, "chat": place},
            })  # fmt: skip
            self._news.notify_all()

    def said(self, chat: int) -> list[str]:
        """Return what the bot has said in a chat."""
        return [text for place, text in self.sent if place == chat]

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, method: str, given: Mapping[str, Any]) -> Any:
        if method == "getMe":
            return BOT
        if method == "getUpdates":
            return self._newer(int(given.get("offset") or 0))
        if method == "getWebhookInfo":
            return {"url": "", "has_custom_certificate": False, "pending_update_count": 0}
        if method == "getChat":
            return GROUP if str(given.get("chat_id")) == str(GROUP["id"]) else {"id": 1, "type": "private"}
        if method in ("sendMessage", "editMessageText"):
            chat, text = int(given["chat_id"]), str(given.get("text", ""))
            self.sent.append((chat, text))
            self._messages += 1
            return {"message_id": self._messages, "date": int(time.time()), "chat": {"id": chat}, "text": text}
        return [] if method == "getMyCommands" else True

    def _newer(self, offset: int) -> list[Mapping[str, Any]]:
        with self._news:

            def fresh() -> list[Mapping[str, Any]]:
                return [update for update in self._updates if update["update_id"] >= offset]

            self._news.wait_for(lambda: bool(fresh()), POLL_SECONDS)
            return fresh()
