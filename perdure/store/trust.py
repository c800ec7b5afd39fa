"""What a memory may do, by the channel it came in: decided here and nowhere else."""

from __future__ import annotations

from perdure.hooks.types import Channel

AUTO_RECALLED = frozenset({
    Channel.USER, Channel.LIBRARY, Channel.CLI, Channel.TOOL_ASKED, Channel.TOOL_UNASKED, Channel.ASSISTANT,
    Channel.OWNER_FILE, Channel.FILE, Channel.TRANSCRIPT_USER,
})  # fmt: skip
"""May come up unasked, once approved. (What the assistant said waits for review when it is captured.)"""

SUPERSEDES = frozenset({Channel.USER, Channel.LIBRARY, Channel.CLI, Channel.TOOL_ASKED})
"""May take the place of something the user said."""

AGENTS_NOTE = frozenset({Channel.TOOL_UNASKED, Channel.ASSISTANT})
"""Is marked as the agent's own note when it is recalled."""
