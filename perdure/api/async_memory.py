"""The library for programs with an event loop: every method of `Memory` as a coroutine, made by one function.

What type checkers see of it is written by `python -m scripts.reference` into the file of types beside this one.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from perdure.api.admin import Admin
from perdure.api.aliases import Aliases
from perdure.api.files import Files
from perdure.api.memory import Memory
from perdure.api.turns import Turns
from perdure.api.upkeep import Proposals, Upkeep
from perdure.api.view import MemoryView

T = TypeVar("T", covariant=True)
View = TypeVar("View", bound=MemoryView)
GRACE = 0.5
"""Seconds beyond recall's own deadline: for a thread to start, and for what recall has found by then."""
TWINS: dict[type, type[Twin[Any]]] = {}
"""The twin of each class."""


class Twin(Generic[T]):
    """The async twin of an object. Its methods run in threads, with the caller's context variables."""

    def __init__(self, inner: T) -> None:
        """Take the object; it may go on being used from threads."""
        self.inner = inner

    def __init_subclass__(cls, of: type) -> None:
        """Make the twin of each public method and property of a class."""
        TWINS[of] = cls
        for name, member in inspect.getmembers_static(of):
            if isinstance(member, property) and not name.startswith("_"):
                setattr(cls, name, property(_part(name), doc=member.__doc__))
            elif inspect.isfunction(member) and not name.startswith("_") and name not in vars(cls):
                setattr(cls, name, _async(member))


def _part(name: str) -> Callable[[Any], Any]:
    def part(self: Any) -> Any:
        inner = getattr(self.inner, name)
        return TWINS[type(inner)](inner)

    return part


def _async(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make the async twin of a method: the same parameters, the same result, the same errors."""

    @functools.wraps(method)
    async def twin(self: Twin[Any], /, *args: Any, **kwargs: Any) -> Any:
        called = asyncio.to_thread(method, self.inner, *args, **kwargs)
        if method not in (MemoryView.recall, Turns.before):
            return await called
        # When no thread is free in time, the turn goes on without it.
        try:
            deadline = self.inner._engine.settings.recall_deadline_ms / 1000
            return await asyncio.wait_for(called, deadline + GRACE)
        except TimeoutError:
            return None

    return twin


class AsyncTurns(Twin[Turns], of=Turns):
    """The async twin of `Turns`."""


class AsyncFiles(Twin[Files], of=Files):
    """The async twin of `Files`."""


class AsyncAdmin(Twin[Admin], of=Admin):
    """The async twin of `Admin`."""


class AsyncProposals(Twin[Proposals], of=Proposals):
    """The async twin of `Proposals`."""


class AsyncAliases(Twin[Aliases], of=Aliases):
    """The async twin of `Aliases`."""


class AsyncUpkeep(Twin[Upkeep], of=Upkeep):
    """The async twin of `Upkeep`."""


class AsyncMemoryView(Twin[View], of=MemoryView):
    """The async twin of `MemoryView`."""


class AsyncMemory(AsyncMemoryView[Memory], of=Memory):
    """The async twin of `Memory`: the same methods, to be awaited.

    Example:
        async with await AsyncMemory.open() as memory:
            await memory.store("The staging database is called heron.")
            print(await memory.recall("Which database is staging?"))
    """

    @classmethod
    async def open(cls, *args: Any, **kwargs: Any) -> Self:
        """Open the store; the arguments and errors are those of `Memory.open`."""
        return cls(await asyncio.to_thread(Memory.open, *args, **kwargs))

    def for_user(self, user: str, **ids: Any) -> AsyncMemoryView[MemoryView]:
        """Return the async twin of `Memory.for_user`."""
        return AsyncMemoryView(self.inner.for_user(user, **ids))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.to_thread(self.inner.close)
