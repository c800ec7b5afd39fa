"""perdure as a context provider of Microsoft's Agent Framework."""

from __future__ import annotations

from typing import Any

from perdure.extras import need
from perdure.hooks.types import Placement
from perdure.hosts.carrier import NOTHING, HostMemory, exchange

need("agent_framework", "agent-framework")

from agent_framework import ContextProvider, Message, SessionContext  # noqa: E402 - after the check that it is there


class PerdureProvider(HostMemory, ContextProvider):
    """Recalls before a run and captures after it. The block is in the model's calls, never in the session's history.

    Example:
        agent = Agent(client, context_providers=[PerdureProvider()])
    """

    _host, _theirs = "agent-framework", ("perdure",)

    async def before_run(self, *, agent: Any, session: Any, context: SessionContext, state: dict[str, Any]) -> None:
        """Put what memory holds on the user's message in front of it."""
        asked = _text(context.input_messages)
        recall = await self._carrier.a_before(asked, context.session_id) if asked else NOTHING
        if not recall.block:
            return
        if recall.placement is Placement.SYSTEM:
            context.extend_instructions(self.source_id, recall.block)
        else:
            context.extend_messages(self, [Message(role="user", contents=[recall.block])])

    async def after_run(self, *, agent: Any, session: Any, context: SessionContext, state: dict[str, Any]) -> None:
        """Take in what the user said."""
        if context.response is not None and (asked := _text(context.input_messages)):
            await self._carrier.a_after(exchange(asked, context.response.text), context.session_id)


def _text(messages: Any) -> str:
    return "\n".join(message.text for message in messages if message.role == "user" and message.text)
