"""perdure as a context provider of Microsoft's Agent Framework."""

from __future__ import annotations

from typing import Any

from perdure.extras import need
from perdure.hosts.carrier import NOTHING, HostMemory, exchange
from perdure.speech.tool_use import of_tools

need("agent_framework", "agent-framework")

from agent_framework import ContextProvider, Message, SessionContext  # noqa: E402 - after the check that it is there


class PerdureProvider(HostMemory, ContextProvider):
    """Recalls before a run and captures after it. The block is added to model calls, never to the session's history.

    Example:
        agent = Agent(client, context_providers=[PerdureProvider()])
    """

    _host, _theirs = "agent-framework", ("perdure",)

    async def before_run(self, *, agent: Any, session: Any, context: SessionContext, state: dict[str, Any]) -> None:
        """Add the memories for the user's message before it."""
        asked = _text(context.input_messages)
        recall = await self._carrier.a_before(asked, context.session_id) if asked else NOTHING
        if recall.for_system:
            context.extend_instructions(self.source_id, recall.for_system)
        if recall.for_message:
            context.extend_messages(self, [Message(role="user", contents=[recall.for_message])])

    async def after_run(self, *, agent: Any, session: Any, context: SessionContext, state: dict[str, Any]) -> None:
        """Capture what the user said."""
        if context.response is not None and (asked := _text(context.input_messages)):
            own = not any(of_tools(message)["content"] for message in context.response.messages)
            await self._carrier.a_after(exchange(asked, context.response.text, own=own), context.session_id)


def _text(messages: Any) -> str:
    return "\n".join(message.text for message in messages if message.role == "user" and message.text)
