"""Strands with a model that answers OK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from strands import Agent
from strands.memory import MemoryManager
from strands.models import Model as StrandsModel

from perdure.hosts.strands import PerdurePlugin, PerdureStore
from tests.hosts.frameworks.played import Played


class Model(StrandsModel):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def update_config(self, **config: Any) -> None:
        """Nothing can be set."""

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *args: Any, **kwargs: Any) -> AsyncGenerator[dict[str, Any], None]:
        raise NotImplementedError
        yield {}

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        system = kwargs.get("system_prompt") or (args[1] if len(args) > 1 else "")
        self.seen.append(f"{system} {messages}")
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": "OK."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def play(texts: Sequence[str], *, sync: bool, **given: Any) -> Played:
    played, model = Played(), Model()
    agent = Agent(model=model, plugins=[PerdurePlugin(**given)], callback_handler=None)

    async def run() -> None:
        for text in texts:
            played.answers.append(str(await agent.invoke_async(text)).strip())

    if sync:
        played.answers = [str(agent(text)).strip() for text in texts]
    else:
        asyncio.run(run())
    played.wires, played.history = model.seen, str(agent.messages)
    return played


def by_store(texts: Sequence[str], user: str, **given: Any) -> Played:
    """Go through a conversation with Strands' own manager, and let it put in what it has gathered."""
    played, model = Played(), Model()
    manager = MemoryManager(stores=[PerdureStore(user=user, **given)])
    agent = Agent(model=model, memory_manager=manager, callback_handler=None)

    async def run() -> None:
        for text in texts:
            played.answers.append(str(await agent.invoke_async(text)).strip())
        await manager.flush()

    asyncio.run(run())
    played.wires, played.history = model.seen, str(agent.messages)
    return played
