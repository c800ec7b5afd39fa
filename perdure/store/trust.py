"""What a memory may do, by the channel it came in: decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.sql import Connection, marks, run

AUTO_RECALLED = frozenset({
    Channel.USER, Channel.LIBRARY, Channel.CLI, Channel.TOOL_ASKED, Channel.TOOL_UNASKED, Channel.ASSISTANT,
    Channel.OWNER_FILE, Channel.FILE, Channel.TRANSCRIPT_USER
})  # fmt: skip
"""May come up unasked, once approved. (What the assistant said waits for review when it is captured.)"""

SUPERSEDES = frozenset({Channel.USER, Channel.LIBRARY, Channel.CLI, Channel.TOOL_ASKED})
"""May take the place of something the user said."""

ON_PURPOSE = SUPERSEDES - {Channel.USER}
"""Stored by an act of its own, not in passing: brings back what was rejected, too."""

AGENTS_NOTE = frozenset({Channel.TOOL_UNASKED, Channel.ASSISTANT})
"""Is marked as the agent's own note when it is recalled."""

REVIEWED = (
    "(f.review_state = 'approved' AND EXISTS (SELECT 1 FROM journal j WHERE j.fact_id = f.id AND j.action = 'approve'))"
)
"""Whether a person approved a fact `f` in a review; most are approved without one."""


def reviewed(connection: Connection, fact_ids: Sequence[str]) -> set[str]:
    """Return which of these facts a person approved in a review."""
    sql = f"SELECT f.id FROM facts f WHERE f.id IN ({marks(fact_ids)}) AND {REVIEWED}"
    return {row[0] for row in run(connection, sql, fact_ids)}


def strength(channel: Channel) -> int:
    """Return how much a word weighs that came in by a channel, against another that says the same or otherwise.

    3 is what the user says, 2 what stands in files and conversations as the user's, 1 the agent's own note, 0 what
    nobody vouches for.
    """
    if channel in SUPERSEDES:
        return 3
    return 0 if channel not in AUTO_RECALLED else 1 if channel in AGENTS_NOTE else 2


def gives_way(old: Fact, new: Fact) -> bool:
    """Return whether an older fact that says the same gives its place up, as the new one's word is stronger.

    What was rejected comes back only when it is stored on purpose.
    """
    rejected = old.review_state == "rejected" and new.channel not in ON_PURPOSE
    return strength(new.channel) > strength(old.channel) and not rejected
