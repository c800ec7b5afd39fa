"""perdure as a plugin of a Strands agent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from perdure.extras import need
from perdure.hooks.types import Message
from perdure.hosts.carrier import HostMemory, beside
from perdure.speech.tool_use import of_tools

need("strands.plugins", "strands")

from strands import Agent  # noqa: E402 - after the check that it is there
from strands.hooks import AfterInvocationEvent  # noqa: E402
from strands.memory import MemoryEntry, MemoryStore  # noqa: E402
from strands.middleware import InvokeModelStage  # noqa: E402
from strands.plugins import Plugin  # noqa: E402


class PerdurePlugin(HostMemory, Plugin):
    """Recalls before a run and captures after it; one for each conversation. The block is in no history.

    Example:
        agent = Agent(plugins=[PerdurePlugin()])
    """

    name = "perdure"
    _host = "strands"

    def init_agent(self, agent: Agent) -> None:
        """Wrap the agent's model calls and subscribe to the end of its runs."""
        agent.add_middleware(InvokeModelStage.Input, self._recall)
        agent.add_hook(self._capture, AfterInvocationEvent)

    async def _recall(self, context: Any) -> Any:
        places = [place for place, message in enumerate(context.messages) if _asks(message)]
        if not places:
            return context
        asked = context.messages[places[-1]]
        recall = await self._carrier.a_before(_text(asked), None, turn=f"{len(places)}\0{_text(asked)}")
        system, block = recall.for_system, recall.for_message
        if system and not isinstance(context.system_prompt, str | None):
            system, block = "", "\n\n".join(filter(None, (system, block)))
        if system:
            context = context.replace(system_prompt="\n\n".join(filter(None, (context.system_prompt, system))))
        if not block:
            return context
        changed = {**asked, "content": beside({"text": block}, recall, list(asked["content"]))}
        return context.replace(messages=[*context.messages[: places[-1]], changed, *context.messages[places[-1] + 1 :]])

    async def _capture(self, event: AfterInvocationEvent) -> None:
        if event.result is not None:
            await self._carrier.a_after(list(_spoken(event.agent.messages)), None)


class PerdureStore(HostMemory, MemoryStore):
    """Memory as a store of Strands' own `MemoryManager`, along with other stores; use it instead of the plugin.

    Example:
        agent = Agent(memory_manager=MemoryManager(stores=[PerdureStore()]))
    """

    name = "perdure"
    _host = "strands"
    description = "What the user has said in past conversations"
    max_search_results: int | None = 10
    writable = True
    extraction = True

    async def search(self, query: str, options: Any = None) -> list[MemoryEntry]:
        """Return the memories for a query: none if none match."""
        limit = (options or {}).get("max_search_results") or self.max_search_results or 1
        found = await asyncio.to_thread(self._carrier.found, query, limit)
        return [MemoryEntry(content=each["text"], metadata={"id": each["id"]}) for each in found]

    async def add_messages(self, messages: list[Any], context: Any = None) -> None:
        """Capture what the user said. What is worth storing is decided here, without a model."""
        await self._carrier.a_after(list(_spoken(messages)), None)


def _asks(message: Any) -> bool:
    # What tools bring comes back in the user's name.
    return message["role"] == "user" and not any("toolResult" in part for part in message["content"])


def _spoken(messages: Sequence[Any]) -> Iterator[Message]:
    """Yield the messages of an agent as hosts of perdure have them."""
    for message in messages:
        if message["role"] == "assistant" or _asks(message):
            yield {"role": message["role"], "content": _text(message)}
        if any("toolUse" in part or "toolResult" in part for part in message["content"]):
            yield of_tools(message)


def _text(message: Any) -> str:
    return "\n".join(part["text"] for part in message["content"] if "text" in part)
