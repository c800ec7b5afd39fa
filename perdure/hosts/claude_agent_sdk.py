"""perdure as hooks of the Claude Agent SDK. Its bundled program keeps the block in its transcript, and resends it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from perdure.api.memory import Memory
from perdure.capture.acts import quotes
from perdure.extras import need
from perdure.hosts.carrier import NOTHING, HostMemory, exchange
from perdure.hosts.command.transcripts import LATELY, messages
from perdure.recent import Recent
from perdure.speech.typed import typed

need("claude_agent_sdk", "claude-agent-sdk")

from claude_agent_sdk import HookMatcher  # noqa: E402 - after the check that it is there

SESSIONS = 64
"""Conversations side by side whose prompt is remembered until its answer is there."""


class PerdureHooks(HostMemory):
    """Recalls at each prompt and captures after the answer.

    Example:
        options = ClaudeAgentOptions(hooks=PerdureHooks().hooks)
    """

    _host, _keeps = "claude-agent-sdk", True

    def __init__(
        self, memory: Memory | None = None, *, agent: str | None = None, user: str | None = None, **settings: Any
    ) -> None:
        """Open the store, or use an open one; the arguments are those of `HostMemory`."""
        super().__init__(memory, agent=agent, user=user, **settings)
        self._asked: Recent[str, str] = Recent(SESSIONS)
        self.hooks = {
            "UserPromptSubmit": [HookMatcher(hooks=[self.prompt])],
            "Stop": [HookMatcher(hooks=[self.stop])],
            "PreCompact": [HookMatcher(hooks=[self.compact])],
        }

    async def prompt(self, given: Mapping[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """Return the memories for a prompt."""
        # What a task or the program itself says in the user's place is not theirs.
        asked = typed(given["prompt"])
        self._asked.put(given["session_id"], asked)
        recall = await self._carrier.a_before(asked, given["session_id"]) if asked else NOTHING
        block = "\n\n".join(filter(None, (recall.for_system, recall.for_message)))
        if not block:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": block}}

    async def stop(self, given: Mapping[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """Capture what the user said."""
        asked = self._asked.get(given["session_id"])
        if asked and not given.get("agent_id"):
            # The program may stop more than once for a prompt.
            self._asked.put(given["session_id"], "")
            answer, record = given.get("last_assistant_message") or "", given.get("transcript_path") or ""
            own = not quotes(answer, partial(messages, record, LATELY))
            await self._carrier.a_after(exchange(asked, answer, own=own), given["session_id"])
        return {}

    async def compact(self, given: Mapping[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """Note that memories shown so far are about to leave the transcript."""
        await asyncio.to_thread(self._carrier.before_compaction, (), given["session_id"])
        return {}
