"""The store behind the server: opened at the first request that needs it, asked from threads.

What goes in and comes out can be written as JSON, so a desk may be in another process than the server.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from perdure.api.memory import Memory
from perdure.api.proof import Heard
from perdure.api.tool_caller import acting
from perdure.api.tool_work import WAITING
from perdure.api.tools import call_tool
from perdure.errors import NotFoundError
from perdure.hooks.types import Consent, ToolResult, TurnContext
from perdure.hosts.mcp.client import McpClient
from perdure.hosts.mcp.tools import TOOLS, shown
from perdure.recent import Recent
from perdure.secrets.redact import redact
from perdure.store.listing import Filter
from perdure.text.quotes import is_quote

FACTS = "perdure://facts"
FILES = "perdure://files/"
NEWEST = 100
"""Memories in the resource that lists them."""
DESKS = 64
"""Connections whose desk is at hand, those that asked last; another is made anew."""
UNHEARD = "The quote is not in what the user recently said."
UNCLEAR = "The quote does not ask for this."


class Desk:
    """Answers what a client asks. Every method may block: for the disk, and at first for opening the store."""

    def __init__(
        self, home: Path | None, client: McpClient, *, said: Callable[[str], Heard | None] = lambda quote: None,
        shared: Callable[[], Memory] | None = None,
    ) -> None:  # fmt: skip
        """Prepare; nothing is opened yet.

        `said`: returns what the user has said to that client lately, if this is a quote of it; "" asks where they
        speak. `shared`: returns a store that is open for others as well; None: one is opened for this desk, in `home`
        or the usual data folder.
        """
        self._home, self._said, self._shared = home, said, shared
        self._context = TurnContext(
            session_id=client.session, agent_id=client.agent, user_id=client.user, workspace=client.workspace,
            scopes=(client.project,) if client.project else (), host=client.host,
            has_tools=True,
        )  # fmt: skip
        self._settings: dict[str, Any] = {"workspace": client.workspace} if client.workspace else {}
        self._memory: Memory | None = None
        self._lock = threading.Lock()

    def memory(self) -> Memory:
        """Return the open store. If it cannot be opened, the next call tries again."""
        with self._lock:
            context = self._context
            if self._memory is None and self._shared is not None:
                self._memory = acting(self._shared(), context)
            elif self._memory is None:
                self._memory = Memory.open(
                    self._home, agent=context.agent_id, user=context.user_id, scopes=context.scopes, **self._settings
                )
            return self._memory

    def call(self, name: str, values: Mapping[str, Any], *, consent: Consent = Consent.UNASKED) -> ToolResult:
        """Call a tool.

        `consent`: UNASKED: where the user's word is needed, `details["confirm"]` of the answer says what to ask them
        (`question`, `old`, `new`) and with which `arguments` to call again if they accept. GIVEN: they have accepted.
        UNAVAILABLE: they cannot be asked, so the change waits for their review.
        """
        given = values.get("quote")
        heard = self._said(given) if isinstance(given, str) and is_quote(given) else None
        spoken = heard or self._said("") or Heard("")
        result = call_tool(
            self.memory(), name, values, self._context, spoken.text, consent=consent, said_in=spoken.session,
            tools=TOOLS,
        )  # fmt: skip
        if not given or result.details.get("outcome") != WAITING:
            return result
        return replace(result, text=f"{result.text} {UNCLEAR if heard else UNHEARD}")

    def recalled(self, question: str) -> str:
        """Return a question as a model should see it: with what memory holds on it, if anything."""
        found = self.memory().turns.before(question, self._context)
        return f"{found.block}\n\n{question}" if found and found.block else question

    def files(self) -> dict[str, str]:
        """Return the memory files that may be read: URI by path."""
        return {path: FILES + quote(path) for path in self.memory().files.paths()}

    def read(self, uri: str) -> tuple[str, str]:
        """Return the MIME type and the text of a resource."""
        memory = self.memory()
        if uri == FACTS:
            newest = memory.admin.list(Filter(review_state="approved"), limit=NEWEST)
            return _json({"memories": [shown(fact) for fact in newest]})
        if uri.startswith(f"{FACTS}/"):
            return _json(shown(memory.get(uri.removeprefix(f"{FACTS}/"))))
        if uri.startswith(FILES):
            found = memory.files.read(unquote(uri.removeprefix(FILES)))
            if not found.missing:
                return "text/markdown", redact(found.text).text
        raise NotFoundError(f"there is no resource {uri!r}; resources/list shows them")

    def close(self) -> None:
        """Close the store, if it was opened."""
        with self._lock:
            if self._memory is not None and self._shared is None:
                self._memory.close()


def _json(value: object) -> tuple[str, str]:
    return "application/json", json.dumps(value, ensure_ascii=False, indent=2)


class SharedDesks:
    """Does what servers ask. Usable from any thread."""

    def __init__(self, store: Callable[[], Memory], said: Callable[[str, str], Heard | None]) -> None:
        """Prepare.

        `said`: returns what the user of a host, its name first, has said lately, if something is a quote of it.
        """
        self._store, self._said = store, said
        self._desks: Recent[McpClient, Desk] = Recent(DESKS)

    def answer(self, body: bytes) -> bytes:
        """Answer a request of `RemoteDesk`."""
        asked = json.loads(body)
        return json.dumps(done(self._desk(McpClient(**asked["who"])), asked["do"], asked["with"])).encode()

    def _desk(self, client: McpClient) -> Desk:
        known = self._desks.get(client)
        if known is not None:
            return known
        made = Desk(None, client, said=lambda quote: self._said(client.host, quote), shared=self._store)
        return self._desks.first(client, made)


def done(desk: Desk, what: str, values: Mapping[str, Any]) -> Any:
    """Do what was asked of a desk; return the result as JSON values."""
    if what == "call":
        return asdict(desk.call(values["name"], values["values"], consent=Consent(values["consent"])))
    if what in ("recalled", "files", "read"):
        return getattr(desk, what)(**values)
    desk.memory()
    return None
