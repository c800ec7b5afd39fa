"""Google's Agent Development Kit with a model that answers OK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import preload_memory
from google.genai import types

from perdure.hosts.google_adk import PerdureMemoryService, PerdurePlugin
from tests.hosts.frameworks.played import ASKED, WORK, Played, Tools


class Model(BaseLlm):
    seen: list[str] = []  # noqa: RUF012 - pydantic copies it
    calls: list[Any] = []  # noqa: RUF012 - as above

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        self.seen.append(f"{llm_request.config.system_instruction} {llm_request.contents}")
        part = types.Part(text="OK.")
        if self.calls:
            name, values = self.calls.pop(0)
            part = types.Part(function_call=types.FunctionCall(name=name, args=values))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def play(texts: Sequence[str], *, sync: bool, user: str | None = None, **given: Any) -> Played:
    played, model = Played(), Model(model="fake")
    plugin = PerdurePlugin(user=None if user else "owner", **given)
    runner = InMemoryRunner(app=App(name="app", root_agent=LlmAgent(name="a", model=model), plugins=[plugin]))
    user_id = user or "owner"

    async def run() -> None:
        session = await runner.session_service.create_session(app_name="app", user_id=user_id)
        for text in texts:
            message = types.Content(role="user", parts=[types.Part(text=text)])
            if sync:
                asked = partial(runner.run, user_id=user_id, session_id=session.id, new_message=message)
                events = list(await asyncio.to_thread(asked))
            else:
                events = [
                    event
                    async for event in runner.run_async(user_id=user_id, session_id=session.id, new_message=message)
                ]
            played.answers.append(events[-1].content.parts[0].text)
        kept = await runner.session_service.get_session(app_name="app", user_id=user_id, session_id=session.id)
        played.history = str(kept.events)

    asyncio.run(run())
    played.wires = list(model.seen)
    return played


def by_store(texts: Sequence[str], user: str, **given: Any) -> Played:
    """Go through a session with ADK's own tool and its memory service, and hand the session to that."""
    played, model = Played(), Model(model="fake")
    service, sessions = PerdureMemoryService(**given), InMemorySessionService()
    agent = LlmAgent(name="a", model=model, tools=[preload_memory])

    async def run() -> None:
        session = await sessions.create_session(app_name="app", user_id=user)
        runner = Runner(app_name="app", agent=agent, session_service=sessions, memory_service=service)
        for text in texts:
            message = types.Content(role="user", parts=[types.Part(text=text)])
            asked = runner.run_async(user_id=user, session_id=session.id, new_message=message)
            played.answers += [event.content.parts[0].text async for event in asked]
        kept = await sessions.get_session(app_name="app", user_id=user, session_id=session.id)
        for _ in range(2):
            await service.add_session_to_memory(kept)
        played.history = str(kept.events)

    asyncio.run(run())
    played.wires = list(model.seen)
    return played


def work(**given: Any) -> None:
    """Have an agent use its tools."""
    tools, model = Tools(), Model(model="fake", calls=list(WORK))
    agent = LlmAgent(name="a", model=model, tools=[tools.run, tools.write_file])
    runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[PerdurePlugin(user="owner", **given)]))

    async def run() -> None:
        session = await runner.session_service.create_session(app_name="app", user_id="owner")
        message = types.Content(role="user", parts=[types.Part(text=ASKED)])
        async for _ in runner.run_async(user_id="owner", session_id=session.id, new_message=message):
            pass

    asyncio.run(run())
