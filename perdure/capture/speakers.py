"""Who really wrote a message: hosts put words into the role of the user that no person has said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perdure.hooks.types import Messages
from perdure.regex import lazy

# Tuples, not sets: what hosts write there need not be hashable.
_TOOLS = ("tool", "toolResult", "tool_result", "function")
_TOOL_PARTS = ("toolCall", "tool_call", "tool_use", "tool_result", "function_call")
_PEOPLE = ("external_user", "user", "human")
_AUTOMATED = lazy(
    r"\s*(?:\[(?i:system|cron|heartbeat|subagent|inter-session|internal)\b|(?i:system(?: message| event)?: )"
    r"|HEARTBEAT|(?i:read heartbeat\.md\b|pre-compaction memory flush)|(?i:a new session was started via /)"
    r"|<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>|(?i:the conversation (?:history|so far) (?:was|before this point)\b))"
)


def spoken(messages: Messages, *, assistant: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield role and message of what a person said and, if asked for, of what the assistant answered them.

    An answer is left out if a tool was used for it, since what it says may come from a page or a file, and if it
    answers no person.

    Args:
        messages: of a turn, oldest first.
        assistant: whether answers are wanted.
    """
    answers = False
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        role = message.get("role")
        if role == "user" and not _only_results(message):
            answers = is_person(message)
            if answers:
                yield "user", message
        elif role in _TOOLS or _uses_tools(message):
            answers = False
        elif role == "assistant" and answers and assistant:
            yield "assistant", message


def is_person(message: Mapping[str, Any]) -> bool:
    """Return whether a message in the role of the user comes from the person that the agent serves.

    Told by what hosts note of its origin, and by the beginnings of their own messages: heartbeats, scheduled jobs,
    sub-agents, compaction.
    """
    origin = message.get("provenance") or message.get("inputProvenance")
    if isinstance(origin, Mapping) and origin.get("kind", "user") not in _PEOPLE:
        return False
    noted = message.get("__openclaw")
    if isinstance(noted, Mapping) and noted.get("senderIsOwner") is False:
        return False
    return not (message.get("customType") or message.get("display") is False or _AUTOMATED.match(_beginning(message)))


def _beginning(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list | tuple):
        content = next((part.get("text") for part in content if _is_text(part)), "")
    return content[:200] if isinstance(content, str) else ""


def _is_text(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def _only_results(message: Mapping[str, Any]) -> bool:
    # Some hosts hand the result of a tool over in the role of the user.
    content = message.get("content")
    return isinstance(content, list | tuple) and _uses_tools(message) and not any(map(_is_text, content))


def _uses_tools(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else ()
    called = any(isinstance(part, Mapping) and part.get("type") in _TOOL_PARTS for part in parts)
    return called or bool(message.get("tool_calls"))
