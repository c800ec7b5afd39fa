"""perdure in Pydantic AI: real agents, with a model that is a function."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the extra `pydantic-ai` is not installed")

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from perdure.api.memory import Memory
from perdure.hosts.pydantic_ai import PerdureMemory
from perdure.text.fence import TAG
from tests.hosts.frameworks.played import ASKED, WORK, Tools, check_work, worked
from tests.kit import OpenMemory, complaints, kept

FACT = "The staging database is called heron."
LATER = "The staging database called heron is in Linz."
QUESTION = "What is the staging database called?"


class Model:
    """A model that answers what it is told to, and remembers what it was sent."""

    def __init__(self, *answers: TextPart | ToolCallPart) -> None:
        self.seen: list[str] = []
        self._answers = list(answers)

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(f"{info.instructions}\n{messages}")
        return ModelResponse(parts=[self._answers.pop(0) if self._answers else TextPart("OK.")])


@pytest.fixture(autouse=True)
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Close the loop that `run_sync` would leave open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    loop.run_until_complete(loop.shutdown_default_executor())
    asyncio.set_event_loop(None)
    loop.close()


def agent_with(model: Model, capability: PerdureMemory) -> Agent[None, str]:
    return Agent(FunctionModel(model), capabilities=[capability])


def test_what_is_said_in_one_run_is_known_in_the_next(open_memory: OpenMemory, home: Path) -> None:
    memory, model = open_memory(), Model()
    agent = agent_with(model, PerdureMemory(memory))
    agent.run_sync(f"Hi! {FACT} Can you fix the tests?")
    assert TAG not in model.seen[0]
    assert memory.settle()
    result = agent.run_sync(QUESTION)
    assert FACT in model.seen[1]
    assert FACT not in str(result.all_messages())
    assert TAG not in str(result.all_messages())
    assert memory.settle()
    assert kept(home) == [FACT]


@pytest.mark.parametrize("placement", ["head", "tail", "system"])
def test_the_block_is_in_no_history_and_is_never_captured(open_memory: OpenMemory, home: Path, placement: str) -> None:
    memory, model = open_memory(recall_placement=placement), Model()
    memory.store(FACT)
    agent = agent_with(model, PerdureMemory(memory))
    first = agent.run_sync(QUESTION, conversation_id="c")
    agent.run_sync("My cat is called Tom.", message_history=first.all_messages(), conversation_id="c")
    assert FACT in model.seen[0]
    assert model.seen[1].count(FACT) <= 1
    assert TAG not in str(first.all_messages())
    assert memory.settle()
    assert kept(home) == [FACT, "My cat is called Tom."]


def test_every_request_of_a_run_has_the_same_block(open_memory: OpenMemory) -> None:
    memory, model = open_memory(), Model(ToolCallPart("shout", {"word": "heron"}), TextPart("heron"))
    memory.store(FACT)
    agent = agent_with(model, PerdureMemory(memory))

    @agent.tool_plain
    def shout(word: str) -> str:
        memory.store(LATER)
        return word.upper()

    agent.run_sync(QUESTION)
    assert [(seen.count(FACT), seen.count(LATER)) for seen in model.seen] == [(1, 0), (1, 0)]


def test_what_the_agent_did_is_kept_in_the_repository_that_it_works_in(open_memory: OpenMemory, tmp_path: Path) -> None:
    tools, calls = Tools(), [ToolCallPart(name, values) for name, values in WORK]
    memory, project = worked(open_memory, tmp_path / "work")
    agent = agent_with(Model(*calls), PerdureMemory(memory, folder=tmp_path / "work"))
    agent.tool_plain(tools.run)
    agent.tool_plain(tools.write_file)
    agent.run_sync(ASKED)
    check_work(memory, project)


def test_streams_and_images_beside_the_text_are_served(
    open_memory: OpenMemory, loop: asyncio.AbstractEventLoop
) -> None:
    from pydantic_ai import ImageUrl

    memory = open_memory()
    memory.store(FACT)
    seen: list[str] = []

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        seen.append(str(messages))
        yield "OK."

    agent: Agent[None, str] = Agent(FunctionModel(stream_function=stream), capabilities=[PerdureMemory(memory)])

    async def run() -> None:
        async with agent.run_stream([QUESTION, ImageUrl("https://example.org/a.png")]) as result:
            assert await result.get_output() == "OK."

    loop.run_until_complete(run())
    assert FACT in seen[0]
    assert "a.png" in seen[0]


def test_a_failed_run_is_not_captured(open_memory: OpenMemory, home: Path) -> None:
    def fails(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise RuntimeError("no model")

    memory = open_memory()
    agent: Agent[None, str] = Agent(FunctionModel(fails), capabilities=[PerdureMemory(memory)])
    with pytest.raises(RuntimeError, match="no model"):
        agent.run_sync(FACT)
    assert memory.settle()
    assert kept(home) == []


def broken_by_a_file(home: Path) -> PerdureMemory:
    home.write_text("a file stands where the folder should be")
    return PerdureMemory(home=home)


def broken_by_closing(home: Path) -> PerdureMemory:
    memory = Memory.open(home, embedder="none")
    memory.close()
    return PerdureMemory(memory)


@pytest.mark.parametrize("broken", [broken_by_a_file, broken_by_closing])
def test_a_store_that_fails_leaves_the_run_untouched(
    home: Path, caplog: pytest.LogCaptureFixture, broken: Callable[[Path], PerdureMemory]
) -> None:
    model = Model()
    capability = broken(home)
    result: Any = agent_with(model, capability).run_sync(QUESTION)
    assert result.output == "OK."
    assert len(model.seen) == 1
    assert complaints(caplog)
    capability.close()


def test_a_store_that_it_opened_is_closed_and_opened_again(home: Path) -> None:
    capability = PerdureMemory(home=home, embedder="hash")
    agent = agent_with(Model(), capability)
    agent.run_sync(FACT)
    capability.close()
    agent.run_sync("My cat is called Tom.")
    capability.close()
    assert kept(home) == [FACT, "My cat is called Tom."]
