"""Exports of chat services: the conversations of ChatGPT and of Claude.ai, and what the person had either remember.

Of ChatGPT, whatever its files are called, these are the custom instructions. Of Claude.ai, beside `conversations.json`,
what Claude remembered (`memories.json`) and the projects.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from perdure.hooks.types import Message
from perdure.importers.archive import Member, begins, conversation_files, has, members, messages_of, talks_of
from perdure.importers.conversation_import import HOME, Talk, Talks, to_remember
from perdure.importers.notes import pieces
from perdure.importers.records import fact_of
from perdure.maintenance.importing import Incoming, Load
from perdure.regex import lazy
from perdure.text.timestamps import seconds

_MAPPING = "mapping"
_FENCED = lazy(r"```\n?(.*?)```", re.DOTALL)
_FIELD = lazy(
    r"(?:preferred )?(name|nickname|role|occupation):\s*(.+)|(?:other information|more about you):\s*(.*)", re.I
)
"""What the form of the custom instructions asks for."""
_SENTENCE = lazy(r"\s*\n\s*|(?<=[.!?])\s+(?=[A-Z])")


def is_chatgpt(path: Path) -> bool:
    """Return whether this is an export of ChatGPT."""
    return any(begins(member, partial(has, name=_MAPPING)) for member in conversation_files(path, _MAPPING))


def load_chatgpt(path: Path) -> Talks:
    """Return what a person said to ChatGPT."""
    # Every conversation has the instructions anew.
    return talks_of("chatgpt", conversation_files(path, _MAPPING), lambda: partial(_chatgpt_talks, seen=set()))


def _chatgpt_talks(value: Mapping[str, Any], size: int, *, seen: set[str]) -> Iterator[Talk]:
    nodes = {name: node for name, node in value[_MAPPING].items() if isinstance(node, Mapping)}
    odd = len(value[_MAPPING]) - len(nodes)
    parents = {name: node.get("parent") for name, node in nodes.items()}
    chosen = _branch(value.get("current_node"), parents, lambda name: _at(nodes[name]))
    told = [nodes[name].get("message") for name in chosen]
    messages, more = messages_of(told, _typed_to_chatgpt)
    yield Talk(str(value.get("conversation_id") or value["id"]), messages, size, odd=odd + more)
    for text in (text for each in told if isinstance(each, Mapping) for text in _instructions(each)):
        if text not in seen:
            seen.add(text)
            name = hashlib.sha256(text.encode(errors="replace")).hexdigest()
            yield Talk(f"instructions {name}", [_said(text, value.get("create_time"))], 0)


def _branch(last: str | None, parents: Mapping[str, str | None], at: Callable[[str], Any]) -> list[str]:
    """Return the ids from the root of a tree to the message that was read last."""
    if last not in parents:
        # The newest of the messages that nobody has answered.
        inner = set(parents.values())
        last = max((name for name in parents if name not in inner), key=at, default=None)
    found: dict[str, None] = {}
    while last is not None and last in parents and last not in found:
        found[last] = None
        last = parents[last]
    return list(found)[::-1]


def _at(node: Mapping[str, Any]) -> float:
    message = node.get("message")
    at = message.get("create_time") if isinstance(message, Mapping) else None
    return at if isinstance(at, int | float) else 0.0


def _typed_to_chatgpt(value: Any) -> Message | None:
    """Return what a person typed or said aloud; None for anybody else, and for what ChatGPT puts in their place."""
    if not value or value["author"]["role"] != "user":
        return None
    marks = value.get("metadata") or {}
    if marks.get("is_visually_hidden_from_conversation") or marks.get("is_user_system_message"):
        return None
    content = value.get("content") or {}
    if content.get("content_type") not in ("text", "multimodal_text"):
        return None
    text = "\n".join(filter(None, map(_part, content.get("parts") or ()))).strip()
    return _said(text, value.get("create_time")) if text else None


def _part(part: Any) -> str:
    match part:
        case str():
            return part
        case {"content_type": "audio_transcription", "text": str(text)} if part.get("direction", "in") == "in":
            return text
    return ""


def _said(text: str, at: Any) -> Message:
    return {"role": "user", "content": text, "timestamp": at}


def _instructions(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the person wrote into the custom instructions: sentences, each as they would say it."""
    content, marks = message.get("content"), message.get("metadata")
    if not isinstance(content, Mapping) or content.get("content_type") != "user_editable_context":
        return
    plain = marks.get("user_context_message_data") if isinstance(marks, Mapping) else None
    typed = plain if isinstance(plain, Mapping) else {}
    for name, wrapped in (("about_user_message", "user_profile"), ("about_model_message", "user_instructions")):
        text = str(typed.get(name) or content.get(wrapped) or "")
        fenced = _FENCED.search(text)
        for sentence in filter(None, _SENTENCE.split((fenced[1] if fenced else text).strip())):
            field = _FIELD.fullmatch(sentence)
            if field:
                sentence = f"My {field[1].lower()} is {field[2].rstrip('.')}." if field[1] else field[3]
            yield to_remember(sentence)


CLAUDE = "claude-ai"
_BESIDE = ("memories", "projects")
_MESSAGES = "chat_messages"
_STARTER = "An example project that also doubles as a how-to guide."
_MOST = 1 << 26
"""Bytes of a file of memories or projects."""


def is_claude_ai(path: Path) -> bool:
    """Return whether this is an export of Claude.ai."""
    if any(begins(member, partial(has, name=_MESSAGES)) for member in conversation_files(path, _MESSAGES)):
        return True
    return any("conversations_memory" in value for value in _beside(path, "memories"))


def load_claude_ai(path: Path) -> Talks:
    """Return what a person said to Claude, and what Claude remembered of them."""
    files = [member for member in conversation_files(path, _MESSAGES) if member.path.stem not in _BESIDE]
    talks = talks_of(CLAUDE, files, lambda: _claude_talks)
    facts = list(_notes(path))
    notes = Load(CLAUDE, len(facts), lambda: facts, lambda: ()) if facts else None
    return Talks(CLAUDE, talks.size, talks.read, notes)


def _claude_talks(value: Mapping[str, Any], size: int) -> Iterator[Talk]:
    messages = [message for message in value[_MESSAGES] if isinstance(message, Mapping)]
    odd = len(value[_MESSAGES]) - len(messages)
    said = {str(message.get("uuid") or number): message for number, message in enumerate(messages)}
    parents = {name: message.get("parent_message_uuid") for name, message in said.items()}
    chosen = list(said)
    if any(parent in said for parent in parents.values()):
        # Every edit and every retry is in the list; the branch that was read last is the conversation.
        last = value.get("current_leaf_message_uuid")
        chosen = _branch(last, parents, lambda name: str(said[name].get("created_at")))
    typed, more = messages_of(map(said.__getitem__, chosen), _typed_to_claude)
    yield Talk(str(value["uuid"]), typed, size, odd=odd + more)


def _typed_to_claude(value: Mapping[str, Any]) -> Message | None:
    if value.get("sender") != "human":
        return None
    parts = [part for part in value.get("content") or () if isinstance(part, Mapping)]
    text = "\n".join(part["text"] for part in parts if part.get("type") == "text" and part.get("text")).strip()
    text = text or str(value.get("text") or "").strip()
    return _said(text, value.get("created_at")) if text else None


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
    values = {"id": f"{CLAUDE} {where} {text}", "text": text, "scope": str(HOME), "source": CLAUDE, "source_date": at}
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
