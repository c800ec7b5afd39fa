"""Microsoft's Agent Framework with a client that answers OK."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, InMemoryHistoryProvider, Message

from perdure.hosts.agent_framework import PerdureProvider
from tests.hosts.frameworks.played import Played


class Client(BaseChatClient):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        self.seen.append(f"{options.get('instructions')} {[message.text for message in messages]}")

        async def answer() -> ChatResponse:
            return ChatResponse(messages=[Message(role="assistant", contents=["OK."])], response_id="1")

        return answer()


def play(texts: Sequence[str], *, sync: bool, **given: Any) -> Played:
    played, client, history = Played(), Client(), InMemoryHistoryProvider()
    agent = Agent(client, context_providers=[history, PerdureProvider(**given)])

    async def run() -> None:
        session = agent.create_session()
        for text in texts:
            played.answers.append((await agent.run(text, session=session)).text)
        played.history = str([message.text for message in session.state[history.source_id]["messages"]])

    asyncio.run(run())
    played.wires = client.seen
    return played
