"""The OpenAI Agents SDK with its own scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agents import Agent, RunConfig, Runner, SQLiteSession, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message

from perdure.hosts.openai_agents import PerdureSession
from tests.hosts.frameworks.played import Played


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
