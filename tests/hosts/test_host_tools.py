"""The tools of memory in frameworks: a model calls one, and that is done in the caller's scope, on the user's word."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.api.tools import ALIKE
from perdure.hooks.types import Channel
from perdure.plugin.plugin import UNAVAILABLE
from tests.kit import OpenMemory, complaints

BOAT = "The boat is called Albatross."
Call = tuple[str, dict[str, Any]]
Host = Callable[..., tuple[list[str], list[str]]]
"""Runs an agent whose model makes calls; takes memory, prompt, calls; returns the tools it had, and their answers."""


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """Close the loop that `run_sync` would leave open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.run_until_complete(loop.shutdown_default_executor())
    asyncio.set_event_loop(None)
    loop.close()


def pydantic_ai(
    memory: Memory | None, prompt: str, calls: Sequence[Call] = (), **given: Any
) -> tuple[list[str], list[str]]:
    pytest.importorskip("pydantic_ai", reason="the extra `pydantic-ai` is not installed")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from perdure.hosts.pydantic_ai import PerdureMemory

    offered: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offered[:] = [tool.name for tool in info.function_tools]
        first = len(messages) == 1 and calls
        return ModelResponse(parts=[ToolCallPart(*call) for call in calls] if first else [TextPart("OK.")])

    agent: Agent[None, str] = Agent(FunctionModel(model), capabilities=[PerdureMemory(memory, **given)])
    parts = [part for message in agent.run_sync(prompt).all_messages() for part in message.parts]
    return offered, [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def langchain(
    memory: Memory | None, prompt: str, calls: Sequence[Call] = (), **given: Any
) -> tuple[list[str], list[str]]:
    pytest.importorskip("langchain", reason="the extra `langchain` is not installed")
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, ToolMessage

    from perdure.hosts.langchain import PerdureMiddleware

    offered: list[str] = []

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            offered[:] = [tool.name for tool in tools]
            return self

    wanted = [{"name": name, "args": values, "id": name} for name, values in calls]
    answers = [AIMessage("", tool_calls=wanted)] if calls else []
    model = Model(messages=iter([*answers, AIMessage("OK.")]))
    agent = create_agent(model, middleware=[PerdureMiddleware(memory, **given)])
    state = agent.invoke({"messages": [{"role": "user", "content": prompt}]})
    return offered, [str(message.content) for message in state["messages"] if isinstance(message, ToolMessage)]


HOSTS = pytest.mark.parametrize("host", [pydantic_ai, langchain])


@HOSTS
def test_a_model_has_the_tools_only_if_it_is_to(open_memory: OpenMemory, host: Host) -> None:
    memory = open_memory()
    assert host(memory, "Hello there!") == ([], [])
    assert host(memory, "Hello there!", tools=True) == ([tool.name for tool in ALIKE], [])


@HOSTS
@pytest.mark.parametrize(
    ("prompt", "channel"),
    [
        ("Please remember that the boat is called Albatross.", Channel.TOOL_ASKED),
        ("Please remember the name of my boat.", Channel.TOOL_UNASKED),
        ("What a day on the sea!", Channel.TOOL_UNASKED),
    ],
)
def test_what_a_model_stores_is_the_users_only_if_they_asked_for_it(
    open_memory: OpenMemory, home: Path, host: Host, prompt: str, channel: Channel
) -> None:
    memory = open_memory()
    _, [answer] = host(memory, prompt, [("memory_store", {"text": BOAT})], agent="main", tools=True)
    assert answer.startswith("Stored as ")
    with Memory.open(home, agent="main", embedder="none") as main:
        [fact] = main.lookup("boat")
        assert (fact.text, fact.channel, fact.scope_target) == (BOAT, channel, "main")
        assert {change.host for change in main.admin.changes() if change.fact.id == fact.id} == {
            host.__name__.replace("_", "-")
        }


@HOSTS
def test_a_model_finds_what_its_agent_may_see_and_nothing_else(open_memory: OpenMemory, home: Path, host: Host) -> None:
    memory = open_memory()
    with Memory.open(home, agent="main", embedder="none") as main:
        main.store(BOAT, entity="boat")
    calls = [("memory_recall", {"query": "What is the boat called?"}), ("memory_lookup", {"entity": "boat"})]
    _, found = host(memory, "Tell me about it.", calls, agent="main", tools=True)
    assert [BOAT in answer for answer in found] == [True, True]
    for other in ("second", ""):
        _, missed = host(memory, "Tell me about it.", calls, agent=other, tools=True)
        assert [BOAT in answer for answer in missed] == [False, False]


@HOSTS
def test_a_wrong_call_is_answered_and_the_run_goes_on(open_memory: OpenMemory, host: Host) -> None:
    calls = [("memory_store", {"txt": BOAT}), ("memory_get", {"path": "MEMORY.md", "from": 0})]
    _, answers = host(open_memory(), "Remember my boat.", calls, tools=True)
    assert [answer.startswith(f"{name} did nothing: ") for (name, _), answer in zip(calls, answers, strict=True)] == [
        True,
        True,
    ]


@HOSTS
def test_a_store_that_cannot_be_opened_is_told_to_the_model(
    home: Path, caplog: pytest.LogCaptureFixture, host: Host
) -> None:
    home.write_text("a file stands where the folder should be")
    _, answers = host(None, "Remember my boat.", [("memory_store", {"text": BOAT})], home=home, tools=True)
    assert answers == [UNAVAILABLE.text]
    assert complaints(caplog)
