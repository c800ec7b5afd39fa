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
from google.adk.runners import InMemoryRunner
from google.genai import types

from perdure.hosts.google_adk import PerdurePlugin
from tests.hosts.frameworks.played import Played


class Model(BaseLlm):
    seen: list[str] = []  # noqa: RUF012 - pydantic copies it

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        self.seen.append(f"{llm_request.config.system_instruction} {llm_request.contents}")
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="OK.")]))


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
