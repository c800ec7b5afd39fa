"""The conversations in an export of ChatGPT: `conversations.json`, or its shards, in a folder or a zip."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure.hooks.types import Message
from perdure.importers.archive import beginning, branch, conversation_files, talks_of
from perdure.importers.conversation_import import Talk, Talks


def is_chatgpt(path: Path) -> bool:
    """Return whether this is an export of ChatGPT."""
    return any(_has(beginning(member), "mapping") for member in conversation_files(path)[:1])


def load_chatgpt(path: Path) -> Talks:
    """Return what a person said to ChatGPT."""
    return talks_of("chatgpt", conversation_files(path), _talk)


def _talk(value: Mapping[str, Any], size: int) -> Talk:
    nodes: Mapping[str, Any] = value["mapping"]
    parents = {name: node.get("parent") for name, node in nodes.items()}
    last = value.get("current_node")
    if last not in nodes:
        # The newest of the messages that nobody has answered.
        ends = [name for name, node in nodes.items() if not node.get("children")]
        last = max(ends, key=lambda name: _at(nodes[name]), default=None)
    messages = [made for name in branch(last, parents) if (made := _message(nodes[name].get("message"))) is not None]
    return Talk(str(value.get("conversation_id") or value["id"]), messages, size)


def _at(node: Mapping[str, Any]) -> float:
    at = (node.get("message") or {}).get("create_time")
    return at if isinstance(at, int | float) else 0.0


def _message(value: Any) -> Message | None:
    """Return what a person typed; None for anybody else, and for the instructions that ChatGPT puts in their place."""
    if not value or value["author"]["role"] != "user":
        return None
    marks = value.get("metadata") or {}
    if marks.get("is_visually_hidden_from_conversation") or marks.get("is_user_system_message"):
        return None
    content = value.get("content") or {}
    if content.get("content_type") not in ("text", "multimodal_text"):
        return None
    text = "\n".join(part for part in content.get("parts") or () if isinstance(part, str)).strip()
    return {"role": "user", "content": text, "timestamp": value.get("create_time")} if text else None


def _has(value: Any, name: str) -> bool:
    return isinstance(value, dict) and name in value
