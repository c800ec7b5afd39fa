"""Step one: what is new in this turn, freed of our own blocks and of secrets.

Runs while the host waits, so it looks at new messages only and does nothing that could take long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.hooks.types import Messages
from perdure.regex import lazy
from perdure.secrets.redact import redact
from perdure.text.clean import clip, message_text
from perdure.text.fence import strip_fenced
from perdure.text.history import MAX_RAW, unread
from perdure.text.scripts import dense_script
from perdure.text.timestamps import seconds

MAX_BEFORE = 160
"""Characters of a message that may be quoted to explain the next one."""
LOOKED_BACK = 12
"""So many messages before the new ones are looked at for what the user said last: tools speak between."""
# Tuples, not sets: what hosts write there need not be hashable.
_TOOLS = ("tool", "toolResult", "tool_result", "function")
_TOOL_PARTS = ("toolCall", "tool_call", "tool_use", "tool_result", "function_call")
_PEOPLE = ("external_user", "user", "human")
_AUTOMATED = lazy(
    r"\s*(?:\[(?i:system|cron|heartbeat|subagent|inter-session|internal)\b|(?i:system(?: message| event)?: )"
    r"|HEARTBEAT|(?i:read heartbeat\.md\b|pre-compaction memory flush)|(?i:a new session was started via /)"
    r"|<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>|(?i:the conversation (?:history|so far) (?:was|before this point)\b))"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Which messages are worth a look."""

    min_chars: int = 10  # shorter ones are passed over
    max_chars: int = 5_000  # longer ones are cut
    assistant: bool = False  # what the assistant answered counts as well


@dataclass(frozen=True, slots=True)
class Intake:
    """What a turn brought."""

    messages: tuple[Mapping[str, Any], ...]
    """The new ones as {"text", "at"}, redacted; the assistant's with "role", the user's with "before": what they said
    before, if that is short."""
    tail: str  # the cursor behind the last message
    clipped: int  # how many messages were cut to the limit
    left_out: tuple[str, ...] = ()  # the kinds of the secrets that were taken out, message by message
    fresh: Messages = ()  # all new messages, of anybody, as the host has them
    redacted: Mapping[str, str] = field(default_factory=dict)  # what became of whole texts


def take(messages: Messages, tail: str, key: bytes, session: str | None, limits: Limits) -> Intake:
    """Read the new messages of a turn: those of a history, or a part of one, behind the session's cursor (`tail`).

    The store's key marks messages and recognises our own blocks, which were made for the session.
    """
    fresh, tail = unread(messages, tail, key)
    taken: list[Mapping[str, Any]] = []
    clipped = 0
    left_out: list[str] = []
    redacted: dict[str, str] = {}
    before = _said_last(messages[: len(messages) - len(fresh)], key, session)
    for role, message in _spoken(fresh, assistant=limits.assistant):
        text = strip_fenced(message_text(message), key, session)
        clipped += len(text) > limits.max_chars
        redaction = redact(clip(text, MAX_RAW))
        left_out += redaction.kinds
        if len(text) <= min(limits.max_chars, MAX_RAW):
            redacted[text] = redaction.text
        text = clip(redaction.text, limits.max_chars).strip()
        if len(text) >= _least(text, limits.min_chars):
            said = {"text": text, "at": seconds(message.get("timestamp"))}
            beside = {"role": role} if role != "user" else {"before": before} if before else {}
            taken.append({**said, **beside})
        if role == "user":
            before = text if len(text) <= MAX_BEFORE else ""
    return Intake(tuple(taken), tail, clipped, tuple(left_out), fresh, redacted)


def _said_last(known: Messages, key: bytes, session: str | None) -> str:
    """Return what the user said last in messages that are not new, if it is short, redacted."""
    said = [message for _, message in _spoken(known[-LOOKED_BACK:], assistant=False)]
    text = strip_fenced(message_text(said[-1]), key, session).strip() if said else ""
    return redact(text).text if len(text) <= MAX_BEFORE else ""


def _least(text: str, minimum: int) -> int:
    # Scripts without spaces say in four characters what others say in ten.
    beginning = text[:20]
    dense = any(map(dense_script, beginning)) and beginning.count(" ") < 2
    return min(4, minimum) if dense else minimum


def as_sequence(messages: object) -> Sequence[Any]:
    """Return a host's messages, or none of them if it is no list. What is in it is looked at one by one."""
    if isinstance(messages, list | tuple):
        return messages
    # Not every sequence can be sliced: a host may keep its history in a deque.
    return tuple(messages) if isinstance(messages, Sequence) and not isinstance(messages, str | bytes) else ()


def _spoken(messages: Messages, *, assistant: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield role and message of what a person said and, if asked for, of what the assistant answered them.

    Hosts put words into the role of the user that no person has said. An answer is left out if a tool was used for it,
    since what it says may come from a page or a file, and if it answers no person.
    """
    answers = False
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        role = message.get("role")
        if role == "user" and not _only_results(message):
            answers = _is_person(message)
            if answers:
                yield "user", message
        elif role in _TOOLS or _uses_tools(message):
            answers = False
        elif role == "assistant" and answers and assistant:
            yield "assistant", message


def _is_person(message: Mapping[str, Any]) -> bool:
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
