"""Strands with a model that answers OK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from strands import Agent, tool
from strands.memory import MemoryManager
from strands.models import Model as StrandsModel

from perdure.hosts.strands import PerdurePlugin, PerdureStore
from tests.hosts.frameworks.played import ASKED, WORK, Played, Tools


class Model(StrandsModel):
    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.seen: list[str] = []
        self.calls = list(calls)

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
        name, values = self.calls.pop(0) if self.calls else ("", {})
        start = {"toolUse": {"toolUseId": f"c{len(self.seen)}", "name": name}} if name else {}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(values)}} if name else {"text": "OK."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if name else "end_turn"}}


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


def work(**given: Any) -> None:
    """Have an agent use its tools."""
    tools = Tools()

    def run(command: str) -> dict[str, Any]:
        """Run a command."""
        return {"status": "success", "content": [{"json": tools.run(command)}]}

    def write_file(path: str, content: str) -> str:
        """Write a file."""
        return tools.write_file(path, content)

    used = [tool(run), tool(write_file)]
    agent = Agent(model=Model(*WORK), tools=used, plugins=[PerdurePlugin(**given)], callback_handler=None)
    agent(ASKED)
