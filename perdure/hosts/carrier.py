"""perdure for a host that takes an object instead of a plugin: asked before a run, told after it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from perdure.api.memory import Memory
from perdure.hooks.host import HookRunner
from perdure.hooks.types import Messages, Recall, ToolResult, TurnContext
from perdure.plugin.plugin import hookimpls_for

PATIENCE = 5.0
"""Seconds that an async host waits for a hook at the most; recall has its own, shorter deadline."""


class Carrier:
    """Carries turns from a host to a store and what is recalled back. Nothing that goes wrong here reaches the host."""

    def __init__(
        self, host: str, memory: Memory | None, *, agent: str | None, user: str | None, settings: dict[str, Any]
    ) -> None:
        """Open the store, or take an open one.

        Args:
            host: the host's name, for the journal.
            memory: an open store, which its owner closes; None: one is opened.
            agent: who answers.
            user: whom the agent serves; None: the owner of this machine.
            settings: arguments of `Memory.open`.
        """
        self._host, self._agent, self._user = host, agent, user
        self._owned = memory is None
        # A host that names no conversation has one for as long as its object lives.
        self._alone = f"{host}-{uuid.uuid4().hex}"
        self._runner = HookRunner(timeout=PATIENCE)
        self._plugin = hookimpls_for(memory=memory, agent=agent, user=user, **settings)
        self._runner.register(self._plugin)
        # So that the model is loading before the first turn.
        self._runner.host_started(self.context(None))

    def context(self, session: str | None, user: str | None = None) -> TurnContext:
        """Return who asks, in which conversation.

        Args:
            session: the conversation; None: the one of this object.
            user: whom the agent serves in this run, unless this object was made for somebody.
        """
        return TurnContext(
            session_id=session or self._alone, agent_id=self._agent, user_id=self._user or user, host=self._host
        )

    def before(self, prompt: str, session: str | None, user: str | None = None) -> Recall | None:
        """Return what the model should see with a prompt."""
        return _first(self._runner.before_agent_start(prompt, (), self.context(session, user)))

    async def a_before(self, prompt: str, session: str | None, user: str | None = None) -> Recall | None:
        """Return what the model should see with a prompt."""
        return _first(await self._runner.a_before_agent_start(prompt, (), self.context(session, user)))

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

        Args:
            tool: its name.
            values: its arguments, as the model gave them.
            asked: what the user said in this turn: what they asked for counts as theirs.
            session: the conversation; None: the one of this object.
        """
        return self._plugin.call_tool(tool, values, self.context(session), asked)

    def found(self, query: str, limit: int, user: str | None = None) -> list[dict[str, Any]]:
        """Return what memory holds on a query, for a host that searches by itself. It blocks, as `call` does.

        Args:
            query: what is looked for, in words.
            limit: memories at the most, 1 to 20.
            user: as in `context`.

        Returns:
            Of each its "id", "text", "category" and "score", best first; nothing if it cannot be searched.
        """
        given = {"query": query, "limit": min(20, max(1, limit))}
        done = self._plugin.call_tool("memory_recall", given, self.context(None, user))
        return list(done.details.get("memories", ()))

    def close(self) -> None:
        """Close the store, if it was opened here; a later run opens it again."""
        if self._owned:
            self._runner.host_stopping(self.context(None))


def _first(recalls: tuple[Recall, ...]) -> Recall | None:
    return next((recall for recall in recalls if recall.block), None)
