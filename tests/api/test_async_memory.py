"""The async twin: everything that `Memory` can do, without holding up the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, get_ident

import pytest

from perdure import AsyncMemory
from perdure.api.admin import Admin
from perdure.api.aliases import Aliases
from perdure.api.async_memory import (
    AsyncAdmin,
    AsyncAliases,
    AsyncFiles,
    AsyncMemoryView,
    AsyncProposals,
    AsyncTurns,
    AsyncUpkeep,
    Twin,
)
from perdure.api.files import Files
from perdure.api.memory import Memory
from perdure.api.turns import Turns
from perdure.api.upkeep import Proposals, Upkeep
from perdure.api.view import MemoryView
from perdure.clock import ManualClock
from perdure.errors import InputError, StoreUnavailableError
from perdure.hooks.types import TurnContext
from tests.kit import for_each

FACT = "The staging database is called heron."
QUESTION = "What is the staging database called?"


def public(kind: type) -> dict[str, object]:
    """Return what a class offers, what it inherits included; `inner` is what a twin is the twin of."""
    return {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}


@for_each(
    ("sync", "twin"),
    [
        (Memory, AsyncMemory), (MemoryView, AsyncMemoryView), (Turns, AsyncTurns), (Files, AsyncFiles),
        (Admin, AsyncAdmin), (Upkeep, AsyncUpkeep), (Aliases, AsyncAliases), (Proposals, AsyncProposals),
    ],
)  # fmt: skip
def test_the_twin_has_every_public_method_with_the_same_parameters(sync: type, twin: type[Twin[object]]) -> None:
    assert public(twin).keys() == public(sync).keys()
    for name, method in public(sync).items():
        other = public(twin)[name]
        assert isinstance(other, property) == isinstance(method, property)
        # A view costs nothing that would have to be waited for.
        if inspect.isfunction(method) and name != "for_user":
            assert inspect.iscoroutinefunction(other), name
            assert inspect.signature(other) == inspect.signature(method)


def test_a_session_with_the_twin(tmp_path: Path) -> None:
    async def session() -> None:
        async with await AsyncMemory.open(tmp_path / "home", embedder="hash") as memory:
            fact = await memory.store(FACT)
            assert await memory.get(fact.id) == fact
            assert [each.id for each in await memory.admin.list()] == [fact.id]
            recall = await memory.recall(QUESTION)
            assert recall is not None
            assert FACT in recall.block
            context = TurnContext(session_id="s")
            assert await memory.turns.before(QUESTION, context) is not None
            assert await memory.turns.after([{"role": "user", "content": "My cat is called Tom."}], True, context) == 1
            assert await memory.settle()
            assert await memory.files.paths() == ()
            ada = memory.for_user("ada")
            assert [each.text for each in await ada.add("I own a boat.")] == ["I own a boat."]
            assert [each.text for each in await ada.get_all()] == ["I own a boat."]
            with pytest.raises(InputError):
                await memory.store("")

    asyncio.run(session())


def test_errors_of_opening_come_through(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StoreUnavailableError):
        asyncio.run(AsyncMemory.open(tmp_path / "home"))


def test_a_call_runs_in_a_thread_with_the_callers_context(tmp_path: Path) -> None:
    tenant = contextvars.ContextVar("tenant", default="nobody")
    seen: list[tuple[str, bool]] = []

    class Clock(ManualClock):
        def now(self) -> float:
            seen.append((tenant.get(), get_ident() == loop_thread))
            return super().now()

    async def session() -> None:
        async with await AsyncMemory.open(tmp_path / "home", embedder="none", clock=Clock()) as memory:
            seen.clear()
            tenant.set("me")
            await memory.store(FACT)

    loop_thread = get_ident()
    asyncio.run(session())
    assert ("me", False) in seen
    assert not any(on_loop for _, on_loop in seen)


def test_a_recall_that_finds_no_free_thread_lets_the_turn_go_on(tmp_path: Path) -> None:
    free = Event()

    async def session() -> None:
        memory = await AsyncMemory.open(tmp_path / "home", embedder="none", recall_deadline_ms=1)
        await memory.store(FACT)
        busy = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(busy)
        blocked = asyncio.get_running_loop().run_in_executor(None, free.wait)
        assert await memory.recall(QUESTION) is None
        assert await memory.turns.before(QUESTION, TurnContext(session_id="s")) is None
        free.set()
        await blocked
        await memory.close()

    asyncio.run(session())
