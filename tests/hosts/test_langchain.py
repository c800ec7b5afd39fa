"""perdure in LangChain: real agents, with a chat model that repeats what it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain", reason="the extra `langchain` is not installed")

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from perdure.api.memory import Memory
from perdure.hosts.langchain import PerdureMiddleware
from perdure.text.fence import TAG
from tests.hosts.frameworks.played import ASKED, WORK, Tools, check_work, worked
from tests.kit import OpenMemory, complaints, kept

FACT = "The staging database is called heron."
LATER = "The staging database called heron is in Linz."
QUESTION = "What is the staging database called?"
Run = Callable[[Any, str], dict[str, Any]]
THREAD: Any = {"configurable": {"thread_id": "t"}}


class Model(GenericFakeChatModel):
    """LangChain's own fake model; it also remembers what it was sent."""

    seen: list[str]

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.seen.append(str(messages))
        return super()._generate(messages, *args, **kwargs)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def model_saying(*answers: AIMessage) -> Model:
    def messages() -> Iterator[AIMessage]:
        yield from answers
        while True:
            yield AIMessage("OK.")

    return Model(messages=messages(), seen=[])


def sync(agent: Any, text: str) -> dict[str, Any]:
    return dict(agent.invoke({"messages": [{"role": "user", "content": text}]}, THREAD))


def in_a_loop(agent: Any, text: str) -> dict[str, Any]:
    return dict(asyncio.run(agent.ainvoke({"messages": [{"role": "user", "content": text}]}, THREAD)))


@pytest.mark.parametrize("run", [sync, in_a_loop])
def test_what_is_said_in_one_run_is_known_in_the_next(open_memory: OpenMemory, home: Path, run: Run) -> None:
    memory, model = open_memory(), model_saying()
    agent = create_agent(model, middleware=[PerdureMiddleware(memory)])
    run(agent, f"Hi! {FACT} Can you fix the tests?")
    assert TAG not in model.seen[0]
    assert memory.settle()
    state = run(agent, QUESTION)
    assert FACT in model.seen[1]
    assert FACT not in str(state["messages"])
    assert TAG not in str(state["messages"])
    assert memory.settle()
    assert kept(home) == [FACT]


@pytest.mark.parametrize("placement", ["head", "tail", "system"])
def test_the_block_is_in_no_history_and_is_never_captured(open_memory: OpenMemory, home: Path, placement: str) -> None:
    memory, model = open_memory(recall_placement=placement), model_saying()
    memory.store(FACT)
    agent = create_agent(
        model, system_prompt="Be brief.", middleware=[PerdureMiddleware(memory)], checkpointer=InMemorySaver()
    )
    sync(agent, QUESTION)
    state = sync(agent, "My cat is called Tom.")
    assert FACT in model.seen[0]
    assert "Be brief." in model.seen[0]
    assert QUESTION in model.seen[1]
    assert model.seen[1].count(FACT) <= 1
    assert TAG not in str(state["messages"])
    assert memory.settle()
    assert kept(home) == [FACT, "My cat is called Tom."]


def test_every_call_of_a_run_has_the_same_block(open_memory: OpenMemory) -> None:
    def shout(word: str) -> str:
        """Say a word loudly."""
        memory.store(LATER)
        return word.upper()

    call = AIMessage("", tool_calls=[{"name": "shout", "args": {"word": "heron"}, "id": "1"}])
    memory, model = open_memory(), model_saying(call)
    memory.store(FACT)
    sync(create_agent(model, tools=[shout], middleware=[PerdureMiddleware(memory)]), QUESTION)
    assert [(seen.count(FACT), seen.count(LATER)) for seen in model.seen] == [(1, 0), (1, 0)]


def test_what_the_agent_did_is_kept_in_the_repository_that_it_works_in(open_memory: OpenMemory, tmp_path: Path) -> None:
    tools = Tools()

    @tool(response_format="content_and_artifact")
    def run(command: str) -> tuple[str, dict[str, Any]]:
        """Run a command."""
        done = tools.run(command)
        return done["stdout"], {"exit_code": done["exit_code"]}

    memory, project = worked(open_memory, tmp_path / "work")
    calls = [{"name": name, "args": values, "id": f"c{at}"} for at, (name, values) in enumerate(WORK)]
    model = model_saying(*(AIMessage("", tool_calls=[call]) for call in calls))
    middleware = PerdureMiddleware(memory, folder=tmp_path / "work")
    sync(create_agent(model, tools=[run, tools.write_file], middleware=[middleware]), ASKED)
    check_work(memory, project)


def test_a_summary_of_the_conversation_is_nobodys_word(open_memory: OpenMemory, home: Path) -> None:
    memory, model = open_memory(), model_saying()
    memory.store(FACT)
    summary = HumanMessage("The user's cat is called Tom.", additional_kwargs={"lc_source": "summarization"})
    agent = create_agent(model, middleware=[PerdureMiddleware(memory)])
    agent.invoke({"messages": [summary, HumanMessage(QUESTION)]})
    agent.invoke({"messages": [HumanMessage(QUESTION), summary]})
    assert [FACT in seen for seen in model.seen] == [True, True]
    assert memory.settle()
    assert kept(home) == [FACT]


def broken_by_a_file(home: Path) -> PerdureMiddleware:
    home.write_text("a file stands where the folder should be")
    return PerdureMiddleware(home=home)


def broken_by_closing(home: Path) -> PerdureMiddleware:
    memory = Memory.open(home, embedder="none")
    memory.close()
    return PerdureMiddleware(memory)


@pytest.mark.parametrize("run", [sync, in_a_loop])
@pytest.mark.parametrize("broken", [broken_by_a_file, broken_by_closing])
def test_a_store_that_fails_leaves_the_run_untouched(
    home: Path, caplog: pytest.LogCaptureFixture, broken: Callable[[Path], PerdureMiddleware], run: Run
) -> None:
    model = model_saying()
    middleware = broken(home)
    state = run(create_agent(model, middleware=[middleware]), QUESTION)
    assert state["messages"][-1].content == "OK."
    assert len(model.seen) == 1
    assert complaints(caplog)
    middleware.close()


def test_a_store_that_it_opened_is_closed_and_opened_again(home: Path) -> None:
    middleware = PerdureMiddleware(home=home, embedder="hash")
    agent = create_agent(model_saying(), middleware=[middleware])
    sync(agent, FACT)
    middleware.close()
    sync(agent, "My cat is called Tom.")
    middleware.close()
    assert kept(home) == [FACT, "My cat is called Tom."]


def test_a_message_of_the_same_id_in_another_thread_gets_a_block_of_its_own(open_memory: OpenMemory) -> None:
    memory, model = open_memory(opening_tokens=0), model_saying()
    memory.store(FACT)
    agent = create_agent(model, middleware=[PerdureMiddleware(memory)])
    for thread, text in (("one", QUESTION), ("two", "What is the weather like in Rome?")):
        config: Any = {"configurable": {"thread_id": thread}}
        agent.invoke({"messages": [HumanMessage(text, id="1")]}, config)
    assert [FACT in seen for seen in model.seen] == [True, False]
