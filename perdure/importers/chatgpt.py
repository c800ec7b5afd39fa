"""The conversations in an export of ChatGPT, whatever its files are called, and the custom instructions in them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from perdure.hooks.types import Message
from perdure.importers.archive import begins, branch, conversation_files, has, messages_of, talks_of
from perdure.importers.conversation_import import Talk, Talks, to_remember
from perdure.regex import lazy

_MARK = "mapping"
_FENCED = lazy(r"```\n?(.*?)```", re.DOTALL)
_FIELD = lazy(
    r"(?:preferred )?(name|nickname|role|occupation):\s*(.+)|(?:other information|more about you):\s*(.*)", re.I
)
"""What the form of the custom instructions asks for."""
_SENTENCE = lazy(r"\s*\n\s*|(?<=[.!?])\s+(?=[A-Z])")


def is_chatgpt(path: Path) -> bool:
    """Return whether this is an export of ChatGPT."""
    return any(begins(member, partial(has, name=_MARK)) for member in conversation_files(path, _MARK))


def load_chatgpt(path: Path) -> Talks:
    """Return what a person said to ChatGPT."""
    # Every conversation has the instructions anew.
    return talks_of("chatgpt", conversation_files(path, _MARK), lambda: partial(_talks, seen=set()))


def _talks(value: Mapping[str, Any], size: int, *, seen: set[str]) -> Iterator[Talk]:
    nodes = {name: node for name, node in value[_MARK].items() if isinstance(node, Mapping)}
    odd = len(value[_MARK]) - len(nodes)
    parents = {name: node.get("parent") for name, node in nodes.items()}
    last = value.get("current_node")
    if last not in nodes:
        # The newest of the messages that nobody has answered.
        ends = [name for name, node in nodes.items() if not node.get("children")]
        last = max(ends, key=lambda name: _at(nodes[name]), default=None)
    told = [nodes[name].get("message") for name in branch(last, parents)]
    messages, more = messages_of(told, _message)
    yield Talk(str(value.get("conversation_id") or value["id"]), messages, size, odd=odd + more)
    for text in (text for each in told if isinstance(each, Mapping) for text in _instructions(each)):
        if text not in seen:
            seen.add(text)
            name = hashlib.sha256(text.encode(errors="replace")).hexdigest()
            yield Talk(f"instructions {name}", [_said(text, value.get("create_time"))], 0)


def _at(node: Mapping[str, Any]) -> float:
    message = node.get("message")
    at = message.get("create_time") if isinstance(message, Mapping) else None
    return at if isinstance(at, int | float) else 0.0


def _message(value: Any) -> Message | None:
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
