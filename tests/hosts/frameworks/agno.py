"""Agno with a model that answers OK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model as AgnoModel
from agno.models.response import ModelResponse

from perdure.hosts.agno import PerdureMemory
from tests.hosts.frameworks.played import Played


@dataclass
class Model(AgnoModel):
    id: str = "fake"
    seen: list[str] = field(default_factory=list)

    def invoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        self.seen.append(str([message.content for message in kwargs["messages"]]))
        return ModelResponse(role="assistant", content="OK.")

    async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return self.invoke(*args, **kwargs)

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Iterator[ModelResponse]:
        yield self.invoke(*args, **kwargs)

    async def ainvoke_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ModelResponse]:
        yield self.invoke(*args, **kwargs)

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        return ModelResponse(content=str(response))

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return ModelResponse(content=str(response))


def kindly(session_state: dict[str, Any]) -> str:
    """Stand for instructions of the user's own."""
    return "Be kind."


async def a_kindly() -> list[str]:
    return ["Be kind."]


def play(texts: Sequence[str], *, sync: bool, user: str | None = None, **given: Any) -> Played:
    played, model, db = Played(), Model(), InMemoryDb()
    agent = Agent(
        model=model, db=db, add_history_to_context=True, instructions=kindly if sync else a_kindly, telemetry=False
    )
    PerdureMemory(**given).attach(agent)

    async def run(text: str) -> Any:
        return await agent.arun(text, session_id="s", user_id=user)

    for text in texts:
        done = agent.run(text, session_id="s", user_id=user) if sync else asyncio.run(run(text))
        played.answers.append(done.content)
    session = agent.get_session(session_id="s", user_id=user)
    played.history = str([message.content for message in session.get_messages() if message.role != "system"])
    played.wires = model.seen
    assert all("Be kind." in wire for wire in played.wires), "the agent's own instructions hold"
    return played
