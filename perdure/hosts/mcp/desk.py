"""The store behind the server: opened at the first request that needs it, asked from threads."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from perdure.api.memory import Memory
from perdure.api.tools import ALIKE, Tool, ToolResult, call_tool
from perdure.errors import NotFoundError
from perdure.hooks.types import TurnContext
from perdure.secrets.redact import redact
from perdure.store.fact import Fact

FACTS = "perdure://facts"
FILES = "perdure://files/"
NEWEST = 100
"""Memories in the resource that lists them."""


class Desk:
    """Answers what a client asks. Every method may block: for the disk, and at first for opening the store."""

    def __init__(self, home: Path | None, *, agent: str | None, user: str | None, workspace: Path | None) -> None:
        self._home = home
        # A session of its own for each connection: what one was shown is nothing to another.
        self._context = TurnContext(
            session_id=f"mcp-{uuid.uuid4().hex}",
            agent_id=agent,
            user_id=user,
            workspace=str(workspace) if workspace else None,
            host="mcp",
        )
        self._settings: dict[str, Any] = {"workspace": workspace} if workspace else {}
        self._memory: Memory | None = None
        self._lock = threading.Lock()

    def memory(self) -> Memory:
        """Return the open store.

        Raises:
            PerdureError: it cannot be opened; the next call tries again.
        """
        with self._lock:
            if self._memory is None:
                self._memory = Memory.open(
                    self._home, agent=self._context.agent_id, user=self._context.user_id, **self._settings
                )
            return self._memory

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools to offer."""
        return ALIKE

    def call(self, name: str, values: Mapping[str, Any]) -> ToolResult:
        """Call a tool. The client does not tell what its user said, so nothing counts as asked for by the user.

        Raises:
            PerdureError: the store cannot be opened.
        """
        return call_tool(self.memory(), name, values, self._context)

    def recalled(self, question: str) -> str:
        """Return a question as a model should see it: with what memory holds on it, if anything.

        Raises:
            PerdureError: the store cannot be opened.
        """
        found = self.memory().turns.before(question, self._context)
        return f"{found.block}\n\n{question}" if found and found.block else question

    def files(self) -> dict[str, str]:
        """Return the memory files that may be read: URI by path.

        Raises:
            PerdureError: the store cannot be opened.
        """
        return {path: FILES + quote(path) for path in self.memory().files.paths()}

    def read(self, uri: str) -> tuple[str, str]:
        """Return the MIME type and the text of a resource.

        Raises:
            PerdureError: there is no such resource, or it may not be read.
        """
        memory = self.memory()
        if uri == FACTS:
            return _json({"memories": [_values(fact) for fact in memory.admin.list(limit=NEWEST)]})
        if uri.startswith(f"{FACTS}/"):
            return _json(_values(memory.get(uri.removeprefix(f"{FACTS}/"))))
        if uri.startswith(FILES):
            found = memory.files.read(unquote(uri.removeprefix(FILES)))
            if not found.missing:
                return "text/markdown", redact(found.text).text
        raise NotFoundError(f"there is no resource {uri!r}; resources/list shows which there are")

    def close(self) -> None:
        """Close the store, if it was opened."""
        with self._lock:
            if self._memory is not None:
                self._memory.close()


def _json(value: object) -> tuple[str, str]:
    return "application/json", json.dumps(value, ensure_ascii=False, indent=2)


def _values(fact: Fact) -> dict[str, Any]:
    names = ("id", "text", "category", "entity", "key", "value", "why", "tags", "scope", "superseded_by")
    return {
        **{name: value for name in names if (value := getattr(fact, name))},
        "channel": fact.channel.value,
        "said_at": fact.effective_date,
    }
