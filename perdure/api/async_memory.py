"""The library for programs with an event loop: every method of `Memory` as a coroutine, made by one function."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from perdure.api.admin import Admin
from perdure.api.aliases import Aliases
from perdure.api.files import Files
from perdure.api.memory import Memory
from perdure.api.turns import Turns
from perdure.api.upkeep import Proposals, Upkeep
from perdure.api.view import MemoryView
from perdure.hooks.types import Recall

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", covariant=True)
Recalls = TypeVar("Recalls", MemoryView, Turns)
View = TypeVar("View", bound=MemoryView)
GRACE = 0.5
"""Seconds beyond recall's own deadline: for a thread to start, and for what recall has found by then."""


class Twin(Generic[T]):
    """The async twin of an object. Its methods run in threads, with the caller's context variables."""

    def __init__(self, inner: T) -> None:
        """Take the object; it may go on being used from threads."""
        self.inner = inner


def _async(
    method: Callable[Concatenate[T, P], R],
) -> Callable[Concatenate[Twin[T], P], Coroutine[Any, Any, R]]:
    """Make the async twin of a method: the same parameters, the same result, the same errors."""

    @functools.wraps(method)
    async def twin(self: Twin[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.inner, *args, **kwargs)

    return twin


def _in_time(
    method: Callable[Concatenate[Recalls, P], Recall | None],
) -> Callable[Concatenate[Twin[Recalls], P], Coroutine[Any, Any, Recall | None]]:
    """Make the async twin of a recall: when no thread is free in time, the turn goes on without it."""
    plain = _async(method)

    @functools.wraps(method)
    async def twin(self: Twin[Recalls], /, *args: P.args, **kwargs: P.kwargs) -> Recall | None:
        deadline = self.inner._engine.settings.recall_deadline_ms / 1000 + GRACE
        try:
            return await asyncio.wait_for(plain(self, *args, **kwargs), deadline)
        except TimeoutError:
            return None

    return twin


class AsyncTurns(Twin[Turns]):
    """The async twin of `Turns`."""

    opening = _async(Turns.opening)
    foresee = _async(Turns.foresee)
    before = _in_time(Turns.before)
    after = _async(Turns.after)
    before_compaction = _async(Turns.before_compaction)
    session_start = _async(Turns.session_start)
    session_end = _async(Turns.session_end)
    adopt = _async(Turns.adopt)
    past = _async(Turns.past)
    one = _async(Turns.one)
    replay = _async(Turns.replay)
    mark = _async(Turns.mark)


class AsyncFiles(Twin[Files]):
    """The async twin of `Files`."""

    search = _async(Files.search)
    read = _async(Files.read)
    paths = _async(Files.paths)
    add = _async(Files.add)
    remove = _async(Files.remove)
    add_transcript = _async(Files.add_transcript)
    sync = _async(Files.sync)
    embed = _async(Files.embed)
    status = _async(Files.status)
    append_note = _async(Files.append_note)
    flush_due = _async(Files.flush_due)
    prompt_sections = _async(Files.prompt_sections)


class AsyncAdmin(Twin[Admin]):
    """The async twin of `Admin`."""

    list = _async(Admin.list)
    inventory = _async(Admin.inventory)
    stats = _async(Admin.stats)
    forget_many = _async(Admin.forget_many)
    review = _async(Admin.review)
    approve = _async(Admin.approve)
    reject = _async(Admin.reject)
    replaced = _async(Admin.replaced)
    take_back = _async(Admin.take_back)
    audit = _async(Admin.audit)
    classify = _async(Admin.classify)
    purge = _async(Admin.purge)
    scrub = _async(Admin.scrub)
    inbox = _async(Admin.inbox)
    drop_turns = _async(Admin.drop_turns)
    notices = _async(Admin.notices)
    verify = _async(Admin.verify)
    backup = _async(Admin.backup)
    export = _async(Admin.export)
    import_from = _async(Admin.import_from)
    run_job = _async(Admin.run_job)
    jobs = _async(Admin.jobs)
    prune = _async(Admin.prune)
    scopes = _async(Admin.scopes)
    assign = _async(Admin.assign)
    search = _async(Admin.search)
    has = _async(Admin.has)
    changes = _async(Admin.changes)
    live_ids = _async(Admin.live_ids)
    evaluate = _async(Admin.evaluate)
    sync_index = _async(Admin.sync_index)
    embed = _async(Admin.embed)
    vault = _async(Admin.vault)


class AsyncProposals(Twin[Proposals]):
    """The async twin of `Proposals`."""

    find = _async(Proposals.find)
    list = _async(Proposals.list)
    accept = _async(Proposals.accept)
    refuse = _async(Proposals.refuse)


class AsyncAliases(Twin[Aliases]):
    """The async twin of `Aliases`."""

    add = _async(Aliases.add)
    list = _async(Aliases.list)
    remove = _async(Aliases.remove)


class AsyncUpkeep(Twin[Upkeep]):
    """The async twin of `Upkeep`."""

    consolidate = _async(Upkeep.consolidate)
    reflect = _async(Upkeep.reflect)
    distill = _async(Upkeep.distill)
    checkpoint = _async(Upkeep.checkpoint)
    checkpoints = _async(Upkeep.checkpoints)
    restore = _async(Upkeep.restore)

    @property
    def proposals(self) -> AsyncProposals:
        """Lines for MEMORY.md that somebody may accept."""
        return AsyncProposals(self.inner.proposals)


class AsyncMemoryView(Twin[View]):
    """The async twin of `MemoryView`."""

    add = _async(MemoryView.add)  # type: ignore[arg-type]  # as for `update`
    store = _async(MemoryView.store)
    update = _async(MemoryView.update)  # type: ignore[arg-type]  # its **values could be called self
    forget = _async(MemoryView.forget)
    search = _async(MemoryView.search)
    get_all = _async(MemoryView.get_all)
    delete = _async(MemoryView.delete)
    history = _async(MemoryView.history)
    recall = _in_time(MemoryView.recall)
    get = _async(MemoryView.get)


class AsyncMemory(AsyncMemoryView[Memory]):
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

    unforget = _async(Memory.unforget)
    pin = _async(Memory.pin)
    link = _async(Memory.link)
    unlink = _async(Memory.unlink)
    related = _async(Memory.related)
    undo = _async(Memory.undo)
    why = _async(Memory.why)
    why_not = _async(Memory.why_not)
    lookup = _async(Memory.lookup)
    status = _async(Memory.status)
    ready = _async(Memory.ready)
    settle = _async(Memory.settle)
    close = _async(Memory.close)

    def for_user(
        self, user: str, *, agent: str | None = None, project: str | None = None, session: str | None = None
    ) -> AsyncMemoryView[MemoryView]:
        """Return the async twin of `Memory.for_user`."""
        return AsyncMemoryView(self.inner.for_user(user, agent=agent, project=project, session=session))

    @property
    def turns(self) -> AsyncTurns:
        """What a host tells of its turns."""
        return AsyncTurns(self.inner.turns)

    @property
    def files(self) -> AsyncFiles:
        """Markdown memory and past conversations."""
        return AsyncFiles(self.inner.files)

    @property
    def aliases(self) -> AsyncAliases:
        """Other names of one thing."""
        return AsyncAliases(self.inner.aliases)

    @property
    def upkeep(self) -> AsyncUpkeep:
        """What a memory does about itself."""
        return AsyncUpkeep(self.inner.upkeep)

    @property
    def admin(self) -> AsyncAdmin:
        """What keeps a store in order."""
        return AsyncAdmin(self.inner.admin)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
