"""perdure as the memory provider of Hermes, installed in Hermes's own environment.

`perdure connect hermes` installs a plugin that loads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perdure.api.memory import Memory
from perdure.errors import ExtensionError
from perdure.hooks.types import Message
from perdure.hosts.carrier import Carrier, exchange
from perdure.speech.typed import typed

try:
    from agent.memory_provider import MemoryProvider
except ImportError as error:
    raise ExtensionError(
        f"Hermes is not installed in this environment ({error}); install perdure in Hermes's environment"
    ) from error

USUAL = ("", "default")
"""The names of the profile that everybody has: what is said there belongs to the user alone."""


class PerdureProvider(MemoryProvider):
    """Recalls before a turn and captures after it. Hermes keeps the block out of its history."""

    name = "perdure"

    def __init__(self, memory: Memory | None = None, **settings: Any) -> None:
        """Prepare; nothing is opened yet.

        Args:
            memory: an open store, which its owner closes; None: one is opened.
            settings: arguments of `Memory.open`.
        """
        self._memory, self._settings = memory, settings
        self._carrier: Carrier | None = None
        self._session, self._writes = "", False

    def is_available(self) -> bool:
        """Return True: no setup is needed."""
        return True

    def initialize(self, session_id: str, **given: Any) -> None:
        """Begin a session. Each profile has its own memory; a sub-agent or a timer recalls, but is not captured."""
        profile = given.get("agent_identity") or ""
        agent = None if profile in USUAL else profile
        self._session, self._writes = session_id, given.get("agent_context", "primary") == "primary"
        self._carrier = Carrier(
            "hermes", self._memory, agent=agent, user=given.get("user_id"), settings=self._settings, opens=self._writes
        )

    def system_prompt_block(self) -> str:
        """Return the opening of the session; Hermes rebuilds its system prompt only after a compaction."""
        found = self._carrier.opening(self._session) if self._carrier else None
        return found.block if found else ""

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return the memories for the user's message."""
        asked = typed(query)
        return self._carrier.before(asked, session_id or self._session).block if self._carrier and asked else ""

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "", **given: Any) -> None:
        """Capture what the user said."""
        asked = typed(user_content)
        if self._carrier and self._writes and asked:
            self._carrier.after(exchange(asked, assistant_content), session_id or self._session)

    def on_pre_compress(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Capture what is about to leave the conversation; memories shown in it may come up again."""
        if self._carrier and self._writes:
            self._carrier.before_compaction(list(_spoken(messages)), self._session)
        return ""

    def on_session_switch(self, new_session_id: str, **given: Any) -> None:
        """Switch to another session."""
        self._session = new_session_id

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return no tools: memory works without them."""
        return []

    def shutdown(self) -> None:
        """Close the store, if it was opened here."""
        if self._carrier:
            self._carrier.close()


def register(ctx: Any) -> None:
    """Register the provider with Hermes; the entry point."""
    ctx.register_memory_provider(PerdureProvider())


def _spoken(messages: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    for message in messages:
        text = message.get("content")
        if message.get("role") in ("user", "assistant") and isinstance(text, str):
            words = typed(text) if message["role"] == "user" else text
            yield {"role": message["role"], "content": words}
