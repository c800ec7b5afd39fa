"""Transcripts of coding agents: Claude Code's `projects/*/*.jsonl` and Codex's `sessions/**/rollout-*.jsonl`.

Only what a person typed is read: no results of tools, no reports of tasks and sub-agents, no summaries, and nothing
that hooks, hosts and other programs put into a prompt. Old transcripts of Codex are compressed, and the oldest are of
another form: messages alone, without an envelope.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from perdure.hooks.types import Message
from perdure.importers.archive import Member, first_lines, lines, members, transcripts
from perdure.importers.conversation_import import PROGRAM, SUB_AGENT, Talk, Talks, typed
from perdure.regex import lazy

_NOT_TYPED = (
    "isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "toolUseResult", "sourceToolUseID",
    "planContent",
)  # fmt: skip
_CLAUDE_PROGRAMS = ("sdk-", "mcp", "claude-code-github-action")
"""How the entrypoints begin through which no person types."""


def is_claude_code(path: Path) -> bool:
    """Return whether this is a transcript of Claude Code, or a folder of these."""
    return any("sessionId" in line and "type" in line for member in _claude_files(path) for line in first_lines(member))


def load_claude_code(path: Path) -> Talks:
    """Return what a person typed in Claude Code."""
    # A session that was resumed begins with the messages of the one before.
    return transcripts("claude-code", _claude_files(path), lambda: partial(_claude_talk, seen=set()))


def _claude_files(path: Path) -> list[Member]:
    return [
        member
        for member in members(path, ".jsonl")
        if not member.path.name.startswith("agent-") and "subagents" not in member.path.parts
    ]


def _claude_talk(member: Member, *, seen: set[str]) -> Talk:
    messages: list[Message] = []
    folder, programs = "", 0
    for line in lines(member, b'"user"'):
        message = line.get("message")
        origin = line.get("origin")
        automatic = isinstance(origin, Mapping) and origin.get("kind", "human") != "human"
        if line.get("type") != "user" or automatic or any(map(line.get, _NOT_TYPED)):
            continue
        if str(line.get("entrypoint")).startswith(_CLAUDE_PROGRAMS):
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


_REQUEST = "## My request for Codex:"
"""Behind this stands what was typed, if an editor told Codex about open files."""
_CODEX_PROGRAMS = ("exec", "mcp")
"""Sources whose prompts no person types."""
_BY_PROGRAM = lazy(r"codex_(?:exec|sdk|mcp)")


def is_codex(path: Path) -> bool:
    """Return whether this is a transcript of Codex, or a folder of these."""
    return any(map(_is_rollout, _rollouts(path)))


def load_codex(path: Path) -> Talks:
    """Return what a person typed in Codex."""
    return transcripts("codex", _rollouts(path), lambda: _codex_talk)


def _rollouts(path: Path) -> list[Member]:
    found = members(path, ".jsonl", ".jsonl.zst")
    return found if path.is_file() else [member for member in found if member.path.name.startswith("rollout-")]


def _is_rollout(member: Member) -> bool:
    if member.name.endswith(".zst"):
        return member.path.name.startswith("rollout-")
    return any(_is_old(line) or line.get("type") == "session_meta" for line in first_lines(member))


def _is_old(line: Mapping[str, Any]) -> bool:
    return line.get("type") == "message" and isinstance(line.get("content"), list)


def _codex_talk(member: Member) -> Talk:
    # What was typed stands twice in most versions: as an event, and in what the model was sent, beside what was not.
    events: list[Message] = []
    sent: list[Message] = []
    session, folder, began = member.path.name.partition(".jsonl")[0], "", None
    for line in lines(member):
        payload = line.get("payload")
        match line.get("type"), payload:
            case "session_meta", {"id": str(name)}:
                if passed := _passed(payload):
                    return Talk(name, (), member.size, passed=passed)
                session, folder = name, str(payload.get("cwd") or "")
            case "event_msg", {"type": "user_message", "message": str(text)}:
                events += _message(text, line.get("timestamp"))
            case "response_item", {"type": "message", "role": "user", "content": content}:
                sent += _message(content, line.get("timestamp"))
            case "message", None if line.get("role") == "user":
                sent += _message(line.get("content"), line.get("timestamp") or began)
            case None, None if isinstance(line.get("id"), str):
                session, began = line["id"], line.get("timestamp")
    return Talk(session, events or sent, member.size, folder)


def _passed(meta: Mapping[str, Any]) -> str:
    source = meta.get("source")
    if isinstance(source, Mapping):
        return SUB_AGENT
    return PROGRAM if source in _CODEX_PROGRAMS or _BY_PROGRAM.match(str(meta.get("originator"))) else ""


def _message(content: Any, at: Any) -> list[Message]:
    if isinstance(content, str):
        content = content.rpartition(_REQUEST)[2]
    text = typed(content, "input_text").rpartition(_REQUEST)[2].strip()
    return [{"role": "user", "content": text, "timestamp": at}] if text else []
