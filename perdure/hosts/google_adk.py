"""perdure as a plugin of Google's Agent Development Kit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perdure.extras import need
from perdure.hooks.types import Message
from perdure.hosts.carrier import HostMemory, beside
from perdure.speech.tool_use import of_tools

need("google.adk", "google-adk")

from google.adk.agents.callback_context import CallbackContext  # noqa: E402 - after the check that it is there
from google.adk.agents.invocation_context import InvocationContext  # noqa: E402
from google.adk.events.event import Event  # noqa: E402
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse  # noqa: E402
from google.adk.memory.memory_entry import MemoryEntry  # noqa: E402
from google.adk.models.llm_request import LlmRequest  # noqa: E402
from google.adk.plugins.base_plugin import BasePlugin  # noqa: E402
from google.adk.sessions.session import Session  # noqa: E402
from google.genai import types  # noqa: E402

FOUND = 10
"""Memories that a search by ADK's tools brings at the most."""


class _AdkMemory(HostMemory):
    _host = "google-adk"

    async def close(self) -> None:
        """Close the store, if it was opened here."""
        self._carrier.close()


class PerdurePlugin(_AdkMemory, BasePlugin):
    """Recalls before a run and captures after it. The block is added to model calls, never to the session's events.

    Example:
        app = App(name="app", root_agent=agent, plugins=[PerdurePlugin()])
    """

    _theirs = ("perdure",)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Add the memories for the user's message to it."""
        asked = _text(callback_context.user_content)
        at = next(
            (place for place in reversed(range(len(llm_request.contents))) if _asks(llm_request, place, asked)), None
        )
        if not asked or at is None:
            return
        turn, session = callback_context.invocation_id, callback_context.session.id
        recall = await self._carrier.a_before(asked, session, callback_context.user_id, turn=turn)
        if recall.for_system:
            llm_request.append_instructions([recall.for_system])
        if recall.for_message:
            block = types.Part(text=recall.for_message)
            parts = beside(block, recall, list(llm_request.contents[at].parts or ()))
            # A new one: that of the request may be the one that the session keeps.
            llm_request.contents[at] = types.Content(role="user", parts=parts)

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Capture what the user said."""
        session = invocation_context.session
        await self._carrier.a_after(list(_spoken(session.events)), session.id, invocation_context.user_id)


class PerdureMemoryService(_AdkMemory, BaseMemoryService):
    """Memory for ADK's own tools, `load_memory` and `preload_memory`, and for programs that pass it sessions.

    Example:
        runner = Runner(app=app, session_service=sessions, memory_service=PerdureMemoryService())
    """

    async def add_session_to_memory(self, session: Session) -> None:
        """Capture what the user said in a session. Repeated messages count once."""
        await self._carrier.a_after(list(_spoken(session.events)), session.id, session.user_id)

    async def add_events_to_memory(
        self, *, app_name: str, user_id: str, events: Sequence[Event], session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        """Capture what the user said in some events."""
        await self._carrier.a_after(list(_spoken(events)), session_id, user_id)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the memories for a query: none if none match."""
        found = await asyncio.to_thread(self._carrier.found, query, FOUND, user_id)
        entries = [
            MemoryEntry(id=each["id"], content=types.Content(role="user", parts=[types.Part(text=each["text"])]))
            for each in found
        ]
        return SearchMemoryResponse(memories=entries)


def _asks(request: LlmRequest, place: int, asked: str) -> bool:
    content = request.contents[place]
    return bool(content.role == "user" and _text(content) == asked)


def _spoken(events: Any) -> Iterator[Message]:
    """Yield the events of a session as hosts of perdure have them."""
    for event in events:
        text = _text(event.content)
        if text:
            yield {"role": "user" if event.author == "user" else "assistant", "content": text}
        if not text or event.get_function_calls() or event.get_function_responses():
            yield of_tools(event.content)


def _text(content: types.Content | None) -> str:
    return "\n".join(part.text for part in (content and content.parts) or () if part.text and not part.thought)
