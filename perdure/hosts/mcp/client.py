"""Who asks by MCP, and what the model behind it is told."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from perdure.text.lexicon import table

INSTRUCTIONS: str = table("hosts/mcp", "texts")["instructions"]
"""By the MCP server, and by the rules that `perdure connect` writes."""


@dataclass(frozen=True, slots=True)
class McpClient:
    """A connection of a client."""

    agent: str | None = None  # act for this agent
    user: str | None = None  # another user than the owner of this machine
    workspace: str | None = None  # folder with MEMORY.md and memory/
    project: str | None = None  # the scope of the repository that the client works in
    host: str = "mcp"  # the client's name, for the journal
    # The connection's name: what one was shown is nothing to another.
    session: str = field(default_factory=lambda: f"mcp-{uuid.uuid4().hex}")
