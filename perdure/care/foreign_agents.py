"""Transcripts of coding agents: of Claude Code (`projects/*/*.jsonl`) and of Codex (`sessions/**/rollout-*.jsonl`).

Only what a person typed is read: no results of tools, no reports of tasks and sub-agents, no summaries, and nothing
that hooks and hosts put into a prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perdure.care.bundle import Member, lines, members
from perdure.care.talks import Talk, Talks
from perdure.files.turns import without_foreign_blocks
from perdure.hooks.types import Message
from perdure.text.typed import said

_LOOKED_AT = 20
"""Lines and files that must tell what it is."""
_REQUEST = "## My request for Codex:"
"""Behind this stands what was typed, if an editor told Codex about open files."""
_MADE_BY_HOST = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "toolUseResult")


def is_claude_code(path: Path) -> bool:
    """Return whether this is a transcript of Claude Code, or a folder of these."""
    return any(_begins(member, lambda line: "sessionId" in line and "type" in line) for member in _claude_files(path))


def is_codex(path: Path) -> bool:
    """Return whether this is a transcript of Codex, or a folder of these."""
    return any(_begins(member, lambda line: line.get("type") == "session_meta") for member in _codex_files(path))


def load_claude_code(path: Path) -> Talks:
    """Return what a person typed in Claude Code.

    Raises:
        InputError: the path cannot be read.
    """
    files = _claude_files(path)

    def read() -> Iterator[Talk]:
        # A session that was resumed begins with the messages of the one before.
        seen: set[str] = set()
        for member in files:
            yield _claude_talk(member, seen)

    return Talks("claude-code", sum(member.size for member in files), read)


def load_codex(path: Path) -> Talks:
    """Return what a person typed in Codex.

    Raises:
        InputError: the path cannot be read.
    """
    files = _codex_files(path)
    return Talks("codex", sum(member.size for member in files), lambda: map(_codex_talk, files))


def _claude_files(path: Path) -> list[Member]:
    return [
        member
        for member in members(path, ".jsonl")
        if not member.path.name.startswith(("agent-", "rollout-")) and "subagents" not in member.path.parts
    ]


def _codex_files(path: Path) -> list[Member]:
    return [member for member in members(path, ".jsonl") if member.path.name.startswith("rollout-")]


def _begins(member: Member, test: Callable[[Mapping[str, Any]], bool]) -> bool:
    return any(test(line) for _, line in zip(range(_LOOKED_AT), lines(member), strict=False))


def _claude_talk(member: Member, seen: set[str]) -> Talk:
    messages: list[Message] = []
    folder = ""
    for line in lines(member, b'"user"'):
        message = line.get("message")
        origin = line.get("origin")
        automatic = isinstance(origin, Mapping) and origin.get("kind", "human") != "human"
        if line.get("type") != "user" or automatic or any(map(line.get, _MADE_BY_HOST)):
            continue
        name = line.get("uuid")
        text = _typed(message.get("content"), "text") if isinstance(message, Mapping) else ""
        if text and not (isinstance(name, str) and name in seen):
            seen.add(str(name))
            folder = folder or str(line.get("cwd") or "")
            messages.append({"role": "user", "content": text, "timestamp": line.get("timestamp")})
    return Talk(member.path.stem, messages, member.size, folder)


def _codex_talk(member: Member) -> Talk:
    typed: list[Message] = []
    sent: list[Message] = []
    session, folder = member.path.stem, ""
    for line in lines(member):
        payload = line.get("payload")
        match line.get("type"), payload:
            case "session_meta", {"id": str(name)}:
                if isinstance(payload.get("source"), Mapping):
                    return Talk(name, (), member.size)  # a sub-agent
                session, folder = name, str(payload.get("cwd") or "")
            case "event_msg", {"type": "user_message", "message": str(text)}:
                typed += _message(_typed(text, ""), line)
            case "response_item", {"type": "message", "role": "user"}:
                sent += _message(_typed(payload.get("content"), "input_text"), line)
    return Talk(session, typed or sent, member.size, folder)


def _message(text: str, line: Mapping[str, Any]) -> list[Message]:
    return [{"role": "user", "content": text, "timestamp": line.get("timestamp")}] if text else []


def _typed(content: Any, kind: str) -> str:
    """Return what a person typed in a message: the last of its parts, as hosts put theirs in front; "" for a result."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping)]
        if any(part.get("type") == "tool_result" for part in parts):
            return ""
        texts = [part["text"] for part in parts if part.get("type") == kind and isinstance(part.get("text"), str)]
    else:
        texts = [content] if isinstance(content, str) else []
    typed = (said(without_foreign_blocks(text).rpartition(_REQUEST)[2]) for text in texts)
    return "\n".join(text for text in typed if text)
