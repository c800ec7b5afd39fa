"""perdure as a session of the OpenAI Agents SDK."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import Any

from perdure.api.memory import Memory
from perdure.extras import need
from perdure.hooks.types import Message
from perdure.hosts.carrier import HostMemory, beside
from perdure.speech.tool_use import of_tools

need("agents", "openai-agents")

from agents import RunConfig, SessionABC  # noqa: E402 - after the check that it is there
from agents.run import CallModelData, ModelInputData  # noqa: E402

LAST = 40
"""Items of a session that are read after a run; what is new in them is taken in."""


class PerdureSession(HostMemory, SessionABC):
    """Wraps another session, which keeps the history. The block is added to model calls, never to the history.

    Example:
        session = PerdureSession(SQLiteSession("thread-1"))
        await Runner.run(agent, "Hi!", session=session, run_config=session.run_config())
    """

    _host = "openai-agents"

    def __init__(
        self, session: Any, memory: Memory | None = None, *, agent: str | None = None, user: str | None = None,
        **settings: Any,
    ) -> None:  # fmt: skip
        """Open the store, or use an open one, as `HostMemory` does; a `session` of the SDK keeps the history."""
        super().__init__(memory, agent=agent, user=user, **settings)
        self.session_id: str = session.session_id
        self.session_settings = getattr(session, "session_settings", None)
        self._history = session

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """Return a run config that adds memories to model calls; a filter already in it runs first."""
        config = config or RunConfig()
        theirs = config.call_model_input_filter

        async def filled(data: CallModelData[Any]) -> ModelInputData:
            given = data.model_data
            if theirs is not None:
                changed = theirs(data)
                given = await changed if isawaitable(changed) else changed
            return await self._filled(given)

        return replace(config, call_model_input_filter=filled)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the history."""
        return list(await self._history.get_items(limit))

    async def add_items(self, items: list[Any]) -> None:
        """Add to the history; once the model has answered, capture what the user said."""
        await self._history.add_items(items)
        if any(message["role"] == "assistant" for message in _spoken(items)):
            await self._carrier.a_after(list(_spoken(await self._history.get_items(LAST))), self.session_id)

    async def pop_item(self) -> Any:
        """Remove the newest item of the history and return it."""
        return await self._history.pop_item()

    async def clear_session(self) -> None:
        """Clear the history; memories stay."""
        await self._history.clear_session()

    async def _filled(self, given: ModelInputData) -> ModelInputData:
        places = [place for place, item in enumerate(given.input) if item.get("role") == "user"]
        if not places:
            return given
        asked: dict[str, Any] = dict(given.input[places[-1]])
        turn = f"{len(places)}\0{_text(asked)}"
        recall = await self._carrier.a_before(_text(asked), self.session_id, turn=turn)
        if recall.for_system:
            given = replace(given, instructions="\n\n".join(filter(None, (given.instructions, recall.for_system))))
        if not recall.for_message:
            return given
        content = asked.get("content") or ""
        parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else list(content)
        asked["content"] = beside({"type": "input_text", "text": recall.for_message}, recall, parts)
        return replace(given, input=[*given.input[: places[-1]], asked, *given.input[places[-1] + 1 :]])


def _spoken(items: Sequence[Any]) -> Iterator[Message]:
    """Yield the items of a history as hosts of perdure have them."""
    for item in items:
        role = item.get("role")
        yield {"role": role, "content": _text(item)} if role in ("user", "assistant") else of_tools(item)


def _text(item: Any) -> str:
    content = item.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text") or "" for part in content)
