"""perdure for a host that takes an object instead of a plugin, called before and after each run."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from perdure.api.memory import Memory
from perdure.engine.repository import project_of
from perdure.hooks.host import HookRunner
from perdure.hooks.types import Messages, Opening, Placement, Recall, ToolResult, TurnContext
from perdure.plugin.plugin import hookimpls_for
from perdure.recent import Recent
from perdure.speech.author import HEARSAY

PATIENCE = 5.0
"""Seconds that an async host waits for a hook at the most; recall has its own, shorter deadline."""
TURNS = 64
"""Turns side by side whose block is remembered: a second recall would spoil the provider's prompt cache."""
NOTHING = Recall("")


class Carrier:
    """Passes turns from a host to a store, and memories back. No failure here reaches the host."""

    def __init__(
        self, host: str, memory: Memory | None, *, agent: str | None, user: str | None, settings: Mapping[str, Any],
        folder: str | Path | None = None, keeps: bool = False, opens: bool = True,
    ) -> None:  # fmt: skip
        """Open the store, or use an open one, which its owner closes; the arguments are those of `HostMemory`.

        `keeps`: whether the host keeps blocks in its history; `opens`: whether it places openings.
        """
        self._host, self._agent, self._user, self._keeps, self._opens = host, agent, user, keeps, opens
        self._folder = os.path.realpath(Path(folder).expanduser()) if folder else ""
        self._project = project_of(self._folder)
        self.has_tools = False  # a host whose model gets the memory tools says so
        self._owned = memory is None
        # A host that names no conversation has one for as long as its object lives.
        self._alone = f"{host}-{uuid.uuid4().hex}"
        self._recalls: Recent[str, Recall] = Recent(TURNS)
        self._runner = HookRunner(timeout=PATIENCE)
        self._plugin = hookimpls_for(memory=memory, agent=agent, user=user, **settings)
        self._runner.register(self._plugin)
        # So that the model is loading before the first turn.
        self._runner.host_started(self.context(None))

    def context(self, session: str | None, user: str | None = None) -> TurnContext:
        """Return the context: the caller and the conversation.

        A `session` of None is this object's own; `user` is ignored if this object was created for a user.
        """
        return TurnContext(
            session_id=session or self._alone, agent_id=self._agent, user_id=self._user or user, host=self._host,
            project=self._project, keeps_block=self._keeps, takes_opening=self._opens, has_tools=self.has_tools,
        )  # fmt: skip

    def before(self, prompt: str, session: str | None, user: str | None = None, *, turn: str | None = None) -> Recall:
        """Return what the model should see with a prompt, the same throughout a turn; empty parts: nothing."""
        return self._recalls.get(turn or "") or self._kept(
            turn, self._runner.before_agent_start(prompt, (), self.context(session, user))
        )

    async def a_before(
        self, prompt: str, session: str | None, user: str | None = None, *, turn: str | None = None
    ) -> Recall:
        """Return what the model should see with a prompt, the same throughout a turn; empty parts: nothing."""
        return self._recalls.get(turn or "") or self._kept(
            turn, await self._runner.a_before_agent_start(prompt, (), self.context(session, user))
        )

    def opening(self, session: str | None) -> Opening | None:
        """Return the text for the system prompt throughout a session. It blocks, as `call` does."""
        return self._plugin.opening(self.context(session))

    def after(self, messages: Messages, session: str | None, user: str | None = None) -> None:
        """Capture a successful run."""
        self._runner.agent_end(self._placed(messages), True, self.context(session, user))

    async def a_after(self, messages: Messages, session: str | None, user: str | None = None) -> None:
        """Capture a successful run."""
        await self._runner.a_agent_end(self._placed(messages), True, self.context(session, user))

    def before_compaction(self, messages: Messages, session: str | None) -> None:
        """Capture what a host is about to drop from a conversation."""
        self._runner.before_compaction(messages, self.context(session))

    def call(self, tool: str, values: Mapping[str, Any], asked: str, session: str | None) -> ToolResult:
        """Call a tool for the model. It blocks on the disk, and at first on opening the store.

        `asked` is the user's message of this turn: what it asks for counts as the user's own request.
        """
        return self._plugin.call_tool(tool, values, self.context(session), asked)

    def found(self, query: str, limit: int, user: str | None = None) -> list[dict[str, Any]]:
        """Return up to 20 memories for a host with its own search: "id", "text", "category", "score", best first.

        It blocks, as `call` does; a store that cannot be searched returns none.
        """
        given = {"query": query, "limit": min(20, max(1, limit))}
        done = self._plugin.call_tool("memory_recall", given, self.context(None, user))
        return list(done.details.get("memories", ()))

    def close(self) -> None:
        """Close the store, if it was opened here; a later run opens it again."""
        if self._owned:
            self._runner.host_stopping(self.context(None))

    def _placed(self, messages: Messages) -> Messages:
        """Return messages that say where the agent works."""
        return [{"cwd": self._folder, **message} for message in messages] if self._folder else messages

    def _kept(self, turn: str | None, recalls: tuple[Recall, ...]) -> Recall:
        found = next((recall for recall in recalls if recall.block or recall.opening), NOTHING)
        if turn:
            self._recalls.put(turn, found)
        return found


class HostMemory:
    """The memory of a framework's agent: recalls before a run and captures after it.

    A subclass for a framework lists this class before the framework's own.
    """

    _host: ClassVar[str]
    _keeps: ClassVar[bool] = False
    """Whether the framework keeps what it is given in its history."""
    _theirs: ClassVar[tuple[str, ...]] = ()
    """Arguments of the framework's own class."""

    def __init__(
        self, memory: Memory | None = None, *, agent: str | None = None, user: str | None = None,
        folder: str | Path | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        """Open the store, or use an open one. If it cannot be opened, that is logged and runs continue without it.

        Args:
            memory: an open store, which its owner closes; None: one is opened.
            agent: the agent's id, if memories should belong to an agent.
            user: the user whom the agent serves; None: the user named by a run, else the owner of this machine.
            folder: the agent's working directory: memories belong to the repository around it; None: to none.
            settings: arguments of `Memory.open`.
        """
        super().__init__(*self._theirs)
        self._carrier = Carrier(
            self._host, memory, agent=agent, user=user, settings=settings, folder=folder, keeps=self._keeps
        )

    def close(self) -> Any:
        """Close the store, if it was opened here. In some frameworks this is a coroutine."""
        self._carrier.close()


def beside(block: object, recall: Recall, content: list[Any]) -> list[Any]:
    """Return the parts of a user's message with the block before or after them."""
    return [*content, block] if recall.placement is Placement.TAIL else [block, *content]


def exchange(asked: str, answer: str, *, own: bool = False) -> Messages:
    """Return the messages of a run with a user message and an answer.

    `own`: no tool was used for the answer, or what one returned is not in it.
    """
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": answer, HEARSAY: not own}]
