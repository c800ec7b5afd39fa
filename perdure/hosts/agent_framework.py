"""perdure as a context provider of Microsoft's Agent Framework."""

from __future__ import annotations

from typing import Any

from perdure.api.memory import Memory
from perdure.extras import need
from perdure.hooks.types import Placement
from perdure.hosts.carrier import Carrier

need("agent_framework", "agent-framework")

from agent_framework import ContextProvider, Message, SessionContext  # noqa: E402 - after the check that it is there


class PerdureProvider(ContextProvider):
    """Recalls before a run and captures after it. The block is in the model's calls, never in the session's history.

    Example:
        agent = Agent(client, context_providers=[PerdureProvider()])
    """

    def __init__(
        self, memory: Memory | None = None, *, agent: str | None = None, user: str | None = None, **settings: Any
    ) -> None:
        """Open the store, or take an open one. A store that cannot be opened is logged; runs go on without it.

        Args:
            memory: an open store, which its owner closes; None: one is opened.
            agent: who answers, if memories are to belong to an agent.
            user: whom the agent serves; None: the owner of this machine.
            settings: arguments of `Memory.open`.
        """
        super().__init__("perdure")
        self._carrier = Carrier("agent-framework", memory, agent=agent, user=user, settings=settings)

    async def before_run(self, *, agent: Any, session: Any, context: SessionContext, state: dict[str, Any]) -> None:
        """Put what memory holds on the user's message in front of it."""
        asked = _text(context.input_messages)
        recall = await self._carrier.a_before(asked, context.session_id) if asked else None
        if recall is None:
            return
        if recall.placement is Placement.SYSTEM:
            context.extend_instructions(self.source_id, recall.block)
        else:
            context.extend_messages(self, [Message(role="user", contents=[recall.block])])

    async def after_run(self, *, agent: Any, session: Any, context: SessionContext, state: dict[str, Any]) -> None:
        """Take in what the user said."""
        if context.response is not None and (asked := _text(context.input_messages)):
            answer = {"role": "assistant", "content": context.response.text}
            await self._carrier.a_after([{"role": "user", "content": asked}, answer], context.session_id)

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._carrier.close()


def _text(messages: Any) -> str:
    return "\n".join(message.text for message in messages if message.role == "user" and message.text)
