"""An export of Claude.ai: `conversations.json`, what Claude remembered (`memories.json`), and the projects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from perdure.hooks.types import Message
from perdure.importers.archive import (
    Member,
    begins,
    branch,
    conversation_files,
    has,
    members,
    messages_of,
    talks_of,
)  # fmt: skip
from perdure.importers.conversation_import import HOME, Talk, Talks
from perdure.importers.notes import pieces
from perdure.importers.records import fact_of
from perdure.maintenance.importing import Incoming, Load
from perdure.text.timestamps import seconds

KIND = "claude-ai"
_BESIDE = ("memories", "projects")
_MARK = "chat_messages"
_STARTER = "An example project that also doubles as a how-to guide."
_MOST = 1 << 26
"""Bytes of a file of memories or projects."""


def is_claude_ai(path: Path) -> bool:
    """Return whether this is an export of Claude.ai."""
    if any(begins(member, partial(has, name=_MARK)) for member in conversation_files(path, _MARK)):
        return True
    return any("conversations_memory" in value for value in _beside(path, "memories"))


def load_claude_ai(path: Path) -> Talks:
    """Return what a person said to Claude, and what Claude remembered of them."""
    files = [member for member in conversation_files(path, _MARK) if member.path.stem not in _BESIDE]
    talks = talks_of(KIND, files, lambda: _talks)
    facts = list(_notes(path))
    notes = Load(KIND, len(facts), lambda: facts, lambda: ()) if facts else None
    return Talks(KIND, talks.size, talks.read, notes)


def _talks(value: Mapping[str, Any], size: int) -> Iterator[Talk]:
    messages = [message for message in value[_MARK] if isinstance(message, Mapping)]
    odd = len(value[_MARK]) - len(messages)
    said = {str(message.get("uuid") or number): message for number, message in enumerate(messages)}
    parents = {name: message.get("parent_message_uuid") for name, message in said.items()}
    chosen = list(said)
    if any(parent in said for parent in parents.values()):
        # Every edit and every retry is in the list; the branch that was read last is the conversation.
        last = value.get("current_leaf_message_uuid")
        inner = set(parents.values())
        ends = [name for name in said if name not in inner]
        last = last if last in said else max(ends, key=lambda name: str(said[name].get("created_at")), default=None)
        chosen = branch(last, parents)
    typed, more = messages_of(map(said.__getitem__, chosen), _message)
    yield Talk(str(value["uuid"]), typed, size, odd=odd + more)


def _message(value: Mapping[str, Any]) -> Message | None:
    if value.get("sender") != "human":
        return None
    parts = [part for part in value.get("content") or () if isinstance(part, Mapping)]
    text = "\n".join(part["text"] for part in parts if part.get("type") == "text" and part.get("text")).strip()
    text = text or str(value.get("text") or "").strip()
    return {"role": "user", "content": text, "timestamp": value.get("created_at")} if text else None


def _notes(path: Path) -> Iterator[Incoming]:
    for value in _beside(path, "memories"):
        projects = value.get("project_memories")
        texts = {"": value.get("conversations_memory"), **(projects if isinstance(projects, dict) else {})}
        for project, text in texts.items():
            for piece in pieces(text if isinstance(text, str) else ""):
                yield _note(f"memory {project}", piece, {"claude_project": project or None}, None)
    for value in _beside(path, "projects"):
        name, about = str(value.get("name") or "").strip(), str(value.get("description") or "").strip()
        starter = value.get("is_starter_project") or about.startswith(_STARTER)
        if name and about and not starter:
            yield _note(
                f"project {value.get('uuid')}", f"Project {name}: {about}", {}, seconds(value.get("created_at"))
            )


def _note(where: str, text: str, metadata: Mapping[str, Any], at: float | None) -> Incoming:
    values = {"id": f"{KIND} {where} {text}", "text": text, "scope": str(HOME), "source": KIND, "source_date": at}
    return Incoming(fact_of({**values, "metadata": metadata, "category": "fact"}))


def _beside(path: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in `name.json`, and in the files of a folder of that name."""
    for member in members(path, ".json"):
        if (member.path.name == f"{name}.json" or name in member.path.parts[:-1]) and member.size <= _MOST:
            value = _json(member)
            yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict))


def _json(member: Member) -> Any:
    try:
        return json.loads(member.text())
    except (ValueError, RecursionError):
        return None
