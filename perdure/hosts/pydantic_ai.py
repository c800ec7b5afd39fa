"""perdure as a capability of a Pydantic AI agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from perdure.api.memory import Memory
from perdure.api.tools import ALIKE, Tool
from perdure.extras import need
from perdure.hooks.types import Message, Recall
from perdure.hosts.carrier import Carrier, HostMemory, beside
from perdure.speech.tool_use import of_tools

need("pydantic_ai", "pydantic-ai")

from pydantic_ai import AgentRunResult, FunctionToolset, RunContext  # noqa: E402 - after the check that it is there
from pydantic_ai import Tool as AgentTool  # noqa: E402
from pydantic_ai.capabilities import AbstractCapability  # noqa: E402
from pydantic_ai.messages import (  # noqa: E402
    ModelMessage,
    ModelRequest,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext  # noqa: E402


class PerdureMemory(HostMemory, AbstractCapability[Any]):
    """Recalls before a run and captures after it. The block is added to the requests of the run, never to its history.

    Example:
        agent = Agent("openai:gpt-5", capabilities=[PerdureMemory()])
    """

    _host = "pydantic-ai"

    def __init__(
        self, memory: Memory | None = None, *, agent: str | None = None, user: str | None = None,
        tools: bool = False, **settings: Any,
    ) -> None:  # fmt: skip
        """Open the store, or use an open one, as `HostMemory` does.

        With `tools` the model also gets the memory tools: see docs/tools.md.
        """
        super().__init__(memory, agent=agent, user=user, **settings)
        self._carrier.has_tools = tools
        self._tools = FunctionToolset([_tool(self._carrier, tool) for tool in ALIKE]) if tools else None

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Return the memory tools, if enabled."""
        return self._tools

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Add the memories for the prompt to it."""
        recall = await self._carrier.a_before(_text(ctx.prompt), ctx.conversation_id, turn=ctx.run_id)
        return _with(recall, request_context)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Capture what the user said."""
        await self._carrier.a_after(list(_spoken(result.all_messages())), ctx.conversation_id)
        return result


def _tool(carrier: Carrier, tool: Tool) -> AgentTool[Any]:
    def call(ctx: RunContext[Any], **values: Any) -> str:
        return carrier.call(tool.name, values, _text(ctx.prompt), ctx.conversation_id).text

    return AgentTool.from_schema(call, tool.name, tool.description, dict(tool.parameters), takes_ctx=True)


def _with(recall: Recall, request: ModelRequestContext) -> ModelRequestContext:
    messages = list(request.messages)
    if recall.for_message:
        for at in range(len(messages) - 1, -1, -1):
            message = messages[at]
            if isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts):
                messages[at] = _beside(recall, message)
                break
    if recall.for_system:
        # Not among the instructions: Pydantic AI writes those into the history.
        messages.insert(0, ModelRequest(parts=[SystemPromptPart(recall.for_system)]))
    return replace(request, messages=messages)


def _beside(recall: Recall, message: ModelRequest) -> ModelRequest:
    parts = list(message.parts)
    at = max(index for index, part in enumerate(parts) if isinstance(part, UserPromptPart))
    part = parts[at]
    if isinstance(part, UserPromptPart):
        content = [part.content] if isinstance(part.content, str) else list(part.content)
        parts[at] = replace(part, content=beside(recall.for_message, recall, content))
    return replace(message, parts=parts)


def _spoken(messages: Sequence[ModelMessage]) -> Iterator[Message]:
    """Yield the messages of a run as hosts of perdure have them."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                yield {"role": "user", "content": _text(part.content), "timestamp": part.timestamp.timestamp() * 1000}
            elif isinstance(part, TextPart):
                yield {"role": "assistant", "content": part.content}
            elif isinstance(part, ToolCallPart | ToolReturnPart):
                yield of_tools(part)


def _text(content: str | Sequence[UserContent] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part for part in content if isinstance(part, str))
