"""Step one: what is new in this turn, freed of our own blocks and of secrets.

Runs while the host waits, so it looks at new messages only and does nothing that could take long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.hooks.types import Messages
from perdure.text.clean import clip, message_text
from perdure.text.fence import strip_fenced
from perdure.text.history import MAX_RAW, new_messages
from perdure.text.redact import redact

MAX_MILLISECONDS = 1e14
"""Host times beyond the year 5138 are no times."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Which messages are worth a look: their length in characters."""

    min_chars: int = 10
    max_chars: int = 5_000


@dataclass(frozen=True, slots=True)
class Intake:
    """What a turn brought.

    Attributes:
        messages: the user's new messages as {"text", "at"}, redacted.
        tail: the cursor behind the last message.
        clipped: how many messages were cut to the limit.
    """

    messages: tuple[Mapping[str, Any], ...]
    tail: str
    clipped: int


def take(messages: Messages, tail: str, key: bytes, session: str | None, limits: Limits) -> Intake:
    """Read the new messages of a turn.

    Args:
        messages: the host's history, whole or the turn's part of it.
        tail: the cursor that the last turn of this session left.
        key: the store's key, to recognise our own blocks.
        session: the session that our blocks were made for.
        limits: which messages are worth a look.
    """
    fresh, tail = new_messages(messages, tail)
    taken: list[Mapping[str, Any]] = []
    clipped = 0
    for message in fresh:
        if not isinstance(message, Mapping) or message.get("role") != "user":
            continue
        text = strip_fenced(message_text(message), key, session)
        clipped += len(text) > limits.max_chars
        text = redact(clip(text[:MAX_RAW], limits.max_chars)).text.strip()
        if len(text) >= _least(text, limits.min_chars):
            taken.append({"text": text, "at": _seconds(message.get("timestamp"))})
    return Intake(tuple(taken), tail, clipped)


def _least(text: str, minimum: int) -> int:
    # Scripts without spaces say in four characters what others say in ten.
    return minimum if text.isascii() or text[:20].count(" ") > 1 else min(4, minimum)


def _seconds(timestamp: object) -> float | None:
    """Return a host's time in epoch seconds; large values are milliseconds."""
    if isinstance(timestamp, bool) or not isinstance(timestamp, int | float) or not 0 < timestamp < MAX_MILLISECONDS:
        return None
    return timestamp / 1000 if timestamp > 1e11 else float(timestamp)


def as_sequence(messages: object) -> Sequence[Any]:
    """Return a host's messages, or none of them if it is no list. What is in it is looked at one by one."""
    return messages if isinstance(messages, Sequence) and not isinstance(messages, str | bytes) else ()
