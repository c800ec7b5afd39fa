"""By whom a message is, as its host tells, before its text is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from perdure.hooks.types import TurnContext
from perdure.regex import lazy
from perdure.secrets.redact import redact
from perdure.text.clean import clean

MAX_NAME = 64
MAX_RAW_NAME = 1_024
# Tuples, not sets: what hosts write there need not be hashable.
_TOOLS = ("tool", "toolResult", "tool_result", "function")
_TOOL_PARTS = ("toolCall", "tool_call", "tool_use", "tool_result", "function_call")
_OF_TOOLS = lazy(r"(?i)(?:tool|function)[-_ ]?(?:use|call|result|return|output|response)|^call_?id$")
_PEOPLE = ("external_user", "user", "human")
_MACHINES = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "toolUseResult", "planContent")
"""Marks of Claude Code's records for what no person has typed."""
HEARSAY: Final = "hearsay"
"""Under this key a message tells that its text may be what a tool has returned, where its host tells of no tools."""
_NOT_SAID = ("session", "compaction", "branch_summary", "custom", "custom_message")


_OWNER, _OTHERS = "senderIsOwner", "othersSaid"
"""Under the one a host notes whether a message is of whom the agent serves, under the other we that it is not."""


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
        return Author.MACHINE if any(map(record.get, ("isSidechain", _OTHERS))) else Author.ASSISTANT
    if role in _TOOLS:
        return Author.MACHINE
    if role != "user":
        return None
    # Some hosts hand the result of a tool over in the role of the user.
    parts = message.get("content", message.get("parts"))
    noted = [record, message, *(parts if isinstance(parts, list | tuple) else ())]
    return Author.USER if all(map(_typed, (record, message))) and not any(map(_of_tools, noted)) else Author.MACHINE


def vouched_for(messages: Sequence[Any], context: TurnContext) -> Sequence[Any]:
    """Return a turn's messages; where others write, only what the host vouches for is the user's, and its answers."""
    if context.chat == "direct":
        return messages
    people = [each for each in messages if isinstance(each, Mapping) and each.get("role") == "user"]
    heard, noted = False, list[Any]()
    for message in messages:
        if people and message is people[-1] and _owner(message) is None:
            heard = context.vouched
        elif isinstance(message, Mapping) and message.get("role") == "user":
            heard = _owner(message) is True
        noted.append({**message, _OTHERS: not heard} if isinstance(message, Mapping) else message)
    return noted


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


def _owner(noted: Mapping[str, Any]) -> Any:
    """Return whether a host says that a message is of whom the agent serves; None: it does not say."""
    host = noted.get("__openclaw")
    return host.get(_OWNER, noted.get(_OWNER)) if isinstance(host, Mapping) else noted.get(_OWNER)


def _of_tools(noted: object) -> bool:
    """Return whether a message, or a part of one, is of a tool: by its type, or by an id or a result that it has."""
    if not isinstance(noted, Mapping):
        return False
    named = [noted.get("type"), *(key for key, value in noted.items() if value)]
    return any(_OF_TOOLS.search(each) for each in named if isinstance(each, str))


def _typed(noted: Mapping[str, Any]) -> bool:
    """Return whether a person may have typed what a host notes so."""
    origin = noted.get("provenance") or noted.get("inputProvenance")
    if isinstance(origin, Mapping) and origin.get("kind", "user") not in _PEOPLE:
        return False
    host = noted.get("__openclaw")
    if noted.get(_OTHERS) or (isinstance(host, Mapping) and host.get(_OWNER) is False):
        return False
    if noted.get("customType") or noted.get("display") is False or noted.get("type") in _NOT_SAID:
        return False
    return not any(noted.get(mark) for mark in _MACHINES)
