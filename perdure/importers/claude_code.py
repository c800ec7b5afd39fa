"""Transcripts of Claude Code, `projects/*/*.jsonl`.

Only what a person typed is read: no results of tools, no reports of tasks and sub-agents, no summaries, and nothing
that hooks and the host put into a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from perdure.hooks.types import Message
from perdure.importers.archive import Member, first_lines, lines, members, transcripts
from perdure.importers.conversation_import import PROGRAM, Talk, Talks, typed

_NOT_TYPED = (
    "isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "toolUseResult", "sourceToolUseID",
    "planContent",
)  # fmt: skip
_PROGRAMS = ("sdk-", "mcp", "claude-code-github-action")
"""How the entrypoints begin through which no person types."""


def is_claude_code(path: Path) -> bool:
    """Return whether this is a transcript of Claude Code, or a folder of these."""
    return any("sessionId" in line and "type" in line for member in _files(path) for line in first_lines(member))


def load_claude_code(path: Path) -> Talks:
    """Return what a person typed in Claude Code."""
    # A session that was resumed begins with the messages of the one before.
    return transcripts("claude-code", _files(path), lambda: partial(_talk, seen=set()))


def _files(path: Path) -> list[Member]:
    return [
        member
        for member in members(path, ".jsonl")
        if not member.path.name.startswith("agent-") and "subagents" not in member.path.parts
    ]


def _talk(member: Member, *, seen: set[str]) -> Talk:
    messages: list[Message] = []
    folder, programs = "", 0
    for line in lines(member, b'"user"'):
        message = line.get("message")
        origin = line.get("origin")
        automatic = isinstance(origin, Mapping) and origin.get("kind", "human") != "human"
        if line.get("type") != "user" or automatic or any(map(line.get, _NOT_TYPED)):
            continue
        if str(line.get("entrypoint")).startswith(_PROGRAMS):
            programs += 1
            continue
        name = line.get("uuid")
        text = typed(message.get("content"), "text") if isinstance(message, Mapping) else ""
        if text and not (isinstance(name, str) and name in seen):
            seen.add(str(name))
            folder = folder or str(line.get("cwd") or "")
            messages.append({"role": "user", "content": text, "timestamp": line.get("timestamp")})
    passed = PROGRAM if programs and not messages else ""
    return Talk(member.path.stem, messages, member.size, folder, passed=passed)
