"""perdure for a host that takes an object instead of a plugin: asked before a run, told after it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from perdure.api.memory import Memory
from perdure.hooks.host import HookRunner
from perdure.hooks.types import Message, Messages, Placement, Recall, ToolResult, TurnContext
from perdure.plugin.plugin import hookimpls_for
from perdure.recent import Recent

PATIENCE = 5.0
"""Seconds that an async host waits for a hook at the most; recall has its own, shorter deadline."""
TURNS = 64
"""Turns side by side whose block is remembered: a second recall would spoil the provider's prompt cache."""
NOTHING = Recall("")
TOOL: Message = {"role": "tool", "content": ""}
"""What stands for anything that a tool brought: it is nobody's word, but that a tool was used counts."""


class Carrier:
    """Carries turns from a host to a store and what is recalled back. Nothing that goes wrong here reaches the host."""

    def __init__(
        self, host: str, memory: Memory | None, *, agent: str | None, user: str | None, settings: Mapping[str, Any]
    ) -> None:
        """Open the store, or take an open one, which its owner closes; the arguments are those of `HostMemory`."""
        self._host, self._agent, self._user = host, agent, user
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
        """Return who asks, in which conversation.

        A `session` of None is the one of this object; `user` counts unless this object was made for somebody.
        """
        return TurnContext(
            session_id=session or self._alone, agent_id=self._agent, user_id=self._user or user, host=self._host
        )

    def before(self, prompt: str, session: str | None, user: str | None = None, *, turn: str | None = None) -> Recall:
        """Return what the model should see with a prompt, the same throughout a turn; an empty block: nothing."""
        return self._recalls.get(turn or "") or self._kept(
            turn, self._runner.before_agent_start(prompt, (), self.context(session, user))
        )

    async def a_before(
        self, prompt: str, session: str | None, user: str | None = None, *, turn: str | None = None
    ) -> Recall:
        """Return what the model should see with a prompt, the same throughout a turn; an empty block: nothing."""
        return self._recalls.get(turn or "") or self._kept(
            turn, await self._runner.a_before_agent_start(prompt, (), self.context(session, user))
        )

    def after(self, messages: Messages, session: str | None, user: str | None = None) -> None:
        """Take in a run that went well."""
        self._runner.agent_end(messages, True, self.context(session, user))

    async def a_after(self, messages: Messages, session: str | None, user: str | None = None) -> None:
        """Take in a run that went well."""
        await self._runner.a_agent_end(messages, True, self.context(session, user))

    def before_compaction(self, messages: Messages, session: str | None) -> None:
        """Take in what a host is about to drop from a conversation."""
        self._runner.before_compaction(messages, self.context(session))

    def call(self, tool: str, values: Mapping[str, Any], asked: str, session: str | None) -> ToolResult:
        """Call a tool for the model. It blocks: for the disk, and at first for opening the store.

        What the user said in this turn is `asked`: what they asked for counts as theirs.
        """
        return self._plugin.call_tool(tool, values, self.context(session), asked)

    def found(self, query: str, limit: int, user: str | None = None) -> list[dict[str, Any]]:
        """Return up to 20 memories for a host that searches by itself: "id", "text", "category", "score", best first.

        It blocks, as `call` does; what cannot be searched brings nothing.
        """
        given = {"query": query, "limit": min(20, max(1, limit))}
        done = self._plugin.call_tool("memory_recall", given, self.context(None, user))
        return list(done.details.get("memories", ()))

    def close(self) -> None:
        """Close the store, if it was opened here; a later run opens it again."""
        if self._owned:
            self._runner.host_stopping(self.context(None))

    def _kept(self, turn: str | None, recalls: tuple[Recall, ...]) -> Recall:
        found = next((recall for recall in recalls if recall.block), NOTHING)
        if turn:
            self._recalls.put(turn, found)
        return found


class HostMemory:
    """What a framework's agent is given: a store that is asked before a run and told after it.

    A subclass for a framework names this class in front of the framework's own.
    """

    _host: ClassVar[str]
    _theirs: ClassVar[tuple[str, ...]] = ()
    """Arguments of the framework's own class."""

    def __init__(
        self, memory: Memory | None = None, *, agent: str | None = None, user: str | None = None, **settings: Any
    ) -> None:
        """Open the store, or take an open one. A store that cannot be opened is logged; runs go on without it.

        Args:
            memory: an open store, which its owner closes; None: one is opened.
            agent: who answers, if memories are to belong to an agent.
            user: whom the agent serves; None: the user that a run names, else the owner of this machine.
            settings: arguments of `Memory.open`.
        """
        super().__init__(*self._theirs)
        self._carrier = Carrier(self._host, memory, agent=agent, user=user, settings=settings)

    def close(self) -> Any:
        """Close the store, if it was opened here. Where the framework has it so, this is a coroutine."""
        self._carrier.close()


def beside(block: object, recall: Recall, content: list[Any]) -> list[Any]:
    """Return the parts of a user's message with the block in front of them, or behind."""
    return [*content, block] if recall.placement is Placement.TAIL else [block, *content]


def exchange(asked: str, answer: str) -> Messages:
    """Return the messages of a run in which the user said something and was answered."""
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
