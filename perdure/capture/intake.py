"""Step one: what is new in this turn, freed of our own blocks and of secrets.

Runs while the host waits, so it looks at new messages only and does nothing that could take long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.capture.reference import MAX_BEFORE
from perdure.capture.speakers import spoken
from perdure.hooks.types import Messages
from perdure.secrets.redact import redact
from perdure.text.clean import clip, message_text
from perdure.text.fence import strip_fenced
from perdure.text.history import MAX_RAW, unread
from perdure.text.scripts import dense_script
from perdure.text.timestamps import seconds

LOOKED_BACK = 12
"""So many messages before the new ones are looked at for what the user said last: tools speak between."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Which messages are worth a look.

    Attributes:
        min_chars: shorter ones are passed over.
        max_chars: longer ones are cut.
        assistant: whether what the assistant answered counts as well.
    """

    min_chars: int = 10
    max_chars: int = 5_000
    assistant: bool = False


@dataclass(frozen=True, slots=True)
class Intake:
    """What a turn brought.

    Attributes:
        messages: the new messages as {"text", "at"}, redacted; those of the assistant have "role" as well, and those
            of the user "before": what they said before, if that is short.
        tail: the cursor behind the last message.
        clipped: how many messages were cut to the limit.
        left_out: the kinds of the secrets that were taken out, message by message.
        fresh: all new messages, of anybody, as the host has them.
        redacted: what became of whole texts, for who needs the same of them.
    """

    messages: tuple[Mapping[str, Any], ...]
    tail: str
    clipped: int
    left_out: tuple[str, ...] = ()
    fresh: Messages = ()
    redacted: Mapping[str, str] = field(default_factory=dict)


def take(messages: Messages, tail: str, key: bytes, session: str | None, limits: Limits) -> Intake:
    """Read the new messages of a turn.

    Args:
        messages: the host's history, whole or the turn's part of it.
        tail: the cursor that the last turn of this session left.
        key: the store's key, to mark messages and to recognise our own blocks.
        session: the session that our blocks were made for.
        limits: which messages are worth a look.
    """
    fresh, tail = unread(messages, tail, key)
    taken: list[Mapping[str, Any]] = []
    clipped = 0
    left_out: list[str] = []
    redacted: dict[str, str] = {}
    before = _said_last(messages[: len(messages) - len(fresh)], key, session)
    for role, message in spoken(fresh, assistant=limits.assistant):
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
    said = [message for _, message in spoken(known[-LOOKED_BACK:], assistant=False)]
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
