"""The OpenAI Agents SDK with its own scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from perdure.hosts.openai_agents import PerdureSession
from tests.hosts.frameworks.played import ASKED, WORK, Played, Tools


def shout(data: Any) -> Any:
    """Stand for a filter of the user's own."""
    data.model_data.instructions = "LOUD"
    return data.model_data


def play(texts: Sequence[str], *, sync: bool, **given: Any) -> Played:
    set_tracing_disabled(True)
    played, model = Played(), ScriptedModel([[assistant_message("OK.")] for _ in texts])
    session = PerdureSession(SQLiteSession("thread-1"), **given)
    config = session.run_config(RunConfig(call_model_input_filter=shout))
    agent = Agent(name="a", model=model)

    async def run() -> None:
        for text in texts:
            played.answers.append((await Runner.run(agent, text, session=session, run_config=config)).final_output)

    if sync:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        for text in texts:
            played.answers.append(Runner.run_sync(agent, text, session=session, run_config=config).final_output)
        loop.close()
        asyncio.set_event_loop(None)
    else:
        asyncio.run(run())
    played.wires = [f"{call.system_instructions} {call.input}" for call in model.calls]
    played.history = str(asyncio.run(session.get_items()))
    assert all(wire.startswith("LOUD") for wire in played.wires), "the user's own filter holds"
    session.close()
    return played


def work(**given: Any) -> None:
    """Have an agent use its tools."""
    set_tracing_disabled(True)
    tools = Tools()

    def run(command: str) -> str:
        return json.dumps(tools.run(command))

    calls = [[function_call(name, values, call_id=f"c{at}")] for at, (name, values) in enumerate(WORK)]
    session = PerdureSession(SQLiteSession("thread-1"), **given)
    model = ScriptedModel([*calls, [assistant_message("OK.")]])
    agent = Agent(name="a", model=model, tools=[function_tool(run), function_tool(tools.write_file)])
    asyncio.run(Runner.run(agent, ASKED, session=session, run_config=session.run_config()))
    session.close()
