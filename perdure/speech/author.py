"""By whom a message is, as its host tells, before its text is read."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from perdure.secrets.redact import redact
from perdure.text.clean import clean, part_text

MAX_NAME = 64
MAX_RAW_NAME = 1_024
# Tuples, not sets: what hosts write there need not be hashable.
_TOOLS = ("tool", "toolResult", "tool_result", "function")
_TOOL_PARTS = ("toolCall", "tool_call", "tool_use", "tool_result", "function_call")
_PEOPLE = ("external_user", "user", "human")
_MACHINES = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "toolUseResult", "planContent")
"""Marks of Claude Code's records for what no person has typed."""
_NOT_SAID = ("session", "compaction", "branch_summary", "custom", "custom_message")


class Author(StrEnum):
    """Who said something."""

    USER = "user"  # speaking plainly
    PASTED = "pasted"  # what the user pasted, quotes, makes up or gives to be worked on
    PERSON = "person"  # somebody else who writes in the same conversation
    MEMORY = "memory"  # another plugin's
    MACHINE = "machine"  # a tool, a timer, the host
    ASSISTANT = "assistant"


def author_of(record: Mapping[str, Any]) -> Author | None:
    """Return by whom a message, or a record that holds one, is by what its host notes; None: it is no message.

    A text of the user's may still hold what others have said: `perdure.speech.spans`.
    """
    inner = record.get("message")
    message = inner if isinstance(inner, Mapping) else record
    role = message.get("role")
    if role == "assistant":
        return Author.MACHINE if record.get("isSidechain") else Author.ASSISTANT
    if role in _TOOLS:
        return Author.MACHINE
    if role != "user":
        return None
    return Author.USER if all(map(_typed, (record, message))) and not _only_results(message) else Author.MACHINE


def uses_tools(message: Mapping[str, Any]) -> bool:
    """Return whether a message calls a tool, or holds what one returned."""
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else ()
    called = any(isinstance(part, Mapping) and part.get("type") in _TOOL_PARTS for part in parts)
    return called or bool(message.get("tool_calls"))


def name_of(message: Mapping[str, Any]) -> str:
    """Return the name that a message gives its speaker, on one line and without secrets, or ""."""
    for key in ("name", "speaker", "senderName"):
        name = message.get(key)
        if isinstance(name, str) and name.strip():
            return redact(" ".join(clean(name[:MAX_RAW_NAME]).split())).text[:MAX_NAME].strip()
    return ""


def _typed(noted: Mapping[str, Any]) -> bool:
    """Return whether a person may have typed what a host notes so."""
    origin = noted.get("provenance") or noted.get("inputProvenance")
    if isinstance(origin, Mapping) and origin.get("kind", "user") not in _PEOPLE:
        return False
    host = noted.get("__openclaw")
    if isinstance(host, Mapping) and host.get("senderIsOwner") is False:
        return False
    if noted.get("customType") or noted.get("display") is False or noted.get("type") in _NOT_SAID:
        return False
    return not any(noted.get(mark) for mark in _MACHINES)


def _only_results(message: Mapping[str, Any]) -> bool:
    # Some hosts hand the result of a tool over in the role of the user.
    content = message.get("content")
    if not isinstance(content, list | tuple) or not uses_tools(message):
        return False
    return all(part_text(part) is None for part in content)
