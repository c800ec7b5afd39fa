"""perdure as LangChain agent middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from perdure.api.memory import Memory
from perdure.api.tools import ALIKE, Tool
from perdure.extras import need
from perdure.hooks.types import Message, Recall
from perdure.hosts.carrier import Carrier, HostMemory, beside
from perdure.speech.tool_use import of_tools

need("langchain.agents", "langchain")

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse  # noqa: E402
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage  # noqa: E402
from langchain_core.tools import BaseTool, StructuredTool  # noqa: E402
from langgraph.prebuilt import ToolRuntime  # noqa: E402
from langgraph.runtime import Runtime  # noqa: E402


class PerdureMiddleware(HostMemory, AgentMiddleware[AgentState[Any], Any, Any]):
    """Recalls before a run and captures after it. The block is added to model calls, never to the agent's state.

    Example:
        agent = create_agent("openai:gpt-5", middleware=[PerdureMiddleware()])
    """

    _host = "langchain"

    def __init__(
        self, memory: Memory | None = None, *, agent: str | None = None, user: str | None = None,
        tools: bool = False, **settings: Any,
    ) -> None:  # fmt: skip
        """Open the store, or use an open one, as `HostMemory` does.

        With `tools` the model also gets the memory tools: see docs/tools.md.
        """
        super().__init__(memory, agent=agent, user=user, **settings)
        self._carrier.has_tools = tools
        self.tools = [_tool(self._carrier, tool) for tool in ALIKE] if tools else []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the memories for the newest user message."""
        at = _newest(request.messages)
        if at is None:
            return handler(request)
        asked, session = request.messages[at], _session(request.runtime)
        return handler(_with(self._carrier.before(_text(asked), session, turn=_key(asked, session)), request, at))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Call the model with the memories for the newest user message."""
        at = _newest(request.messages)
        if at is None:
            return await handler(request)
        asked, session = request.messages[at], _session(request.runtime)
        recall = await self._carrier.a_before(_text(asked), session, turn=_key(asked, session))
        return await handler(_with(recall, request, at))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Capture what the user said."""
        self._carrier.after(list(_spoken(state["messages"])), _session(runtime))

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Capture what the user said."""
        await self._carrier.a_after(list(_spoken(state["messages"])), _session(runtime))


def _tool(carrier: Carrier, tool: Tool) -> BaseTool:
    def call(runtime: ToolRuntime[Any, Any], **values: Any) -> str:
        messages = runtime.state["messages"]
        at = _newest(messages)
        return carrier.call(tool.name, values, "" if at is None else _text(messages[at]), _session(runtime)).text

    return StructuredTool.from_function(
        call, name=tool.name, description=tool.description, args_schema=dict(tool.parameters)
    )


def _newest(messages: Sequence[AnyMessage]) -> int | None:
    return next((at for at in range(len(messages) - 1, -1, -1) if _by_user(messages[at])), None)


def _by_user(message: AnyMessage) -> bool:
    # LangChain's own notes, such as a summary of the conversation, are human messages that name their source.
    return isinstance(message, HumanMessage) and "lc_source" not in message.additional_kwargs


def _key(message: AnyMessage, session: str | None) -> str:
    # LangGraph gives every message of a state an id; those that a caller gives need not differ between threads.
    return f"{session}\0{message.id or id(message)}"


def _with(recall: Recall, request: ModelRequest[Any], at: int) -> ModelRequest[Any]:
    if recall.for_system:
        system = _parts(request.system_message) if request.system_message else []
        more = {"type": "text", "text": recall.for_system}
        request = request.override(system_message=SystemMessage(content=[*system, more]))
    if not recall.for_message:
        return request
    asked, block = request.messages[at], {"type": "text", "text": recall.for_message}
    changed = asked.model_copy(update={"content": beside(block, recall, _parts(asked))})
    return request.override(messages=[*request.messages[:at], changed, *request.messages[at + 1 :]])


def _parts(message: AnyMessage) -> list[Any]:
    return [{"type": "text", "text": message.content}] if isinstance(message.content, str) else list(message.content)


def _session(runtime: Runtime[Any] | ToolRuntime[Any, Any] | None) -> str | None:
    info = runtime.execution_info if runtime else None
    return info.thread_id if info else None


def _spoken(messages: Sequence[AnyMessage]) -> Iterator[Message]:
    """Yield the messages of a state as hosts of perdure have them."""
    for message in messages:
        if _by_user(message):
            yield {"role": "user", "content": _text(message)}
        elif isinstance(message, AIMessage) and not message.tool_calls:
            yield {"role": "assistant", "content": _text(message)}
        elif not isinstance(message, SystemMessage | HumanMessage):
            yield of_tools(message)


def _text(message: AnyMessage) -> str:
    return str(message.text)
