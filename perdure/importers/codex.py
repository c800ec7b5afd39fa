"""Transcripts of Codex, `sessions/**/rollout-*.jsonl`: what a person typed, and nothing of tools and sub-agents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure.hooks.types import Message
from perdure.importers.archive import Member, first_lines, lines, members
from perdure.importers.conversation_import import Talk, Talks, typed

_REQUEST = "## My request for Codex:"
"""Behind this stands what was typed, if an editor told Codex about open files."""


def is_codex(path: Path) -> bool:
    """Return whether this is a transcript of Codex, or a folder of these."""
    return any(line.get("type") == "session_meta" for member in _files(path) for line in first_lines(member))


def load_codex(path: Path) -> Talks:
    """Return what a person typed in Codex."""
    files = _files(path)
    return Talks("codex", sum(member.size for member in files), lambda: map(_talk, files))


def _files(path: Path) -> list[Member]:
    return [member for member in members(path, ".jsonl") if member.path.name.startswith("rollout-")]


def _talk(member: Member) -> Talk:
    # What was typed stands twice in most versions: as an event, and in what the model was sent, beside what was not.
    events: list[Message] = []
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
                events += _message(text, line)
            case "response_item", {"type": "message", "role": "user", "content": content}:
                sent += _message(content, line)
    return Talk(session, events or sent, member.size, folder)


def _message(content: Any, line: Mapping[str, Any]) -> list[Message]:
    if isinstance(content, str):
        content = content.rpartition(_REQUEST)[2]
    text = typed(content, "input_text")
    return [{"role": "user", "content": text, "timestamp": line.get("timestamp")}] if text else []
