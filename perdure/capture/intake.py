"""Step one: what is new in this turn, freed of our own blocks and of secrets.

Runs while the host waits, so it looks at new messages only and does nothing that could take long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.hooks.types import Messages
from perdure.text.clean import clip, message_text
from perdure.text.fence import strip_fenced
from perdure.text.redact import redact

TAIL = 16
"""So many messages of a session are remembered to find out where the new ones begin."""
MAX_MILLISECONDS = 1e14
"""Host times beyond the year 5138 are no times."""
MAX_RAW = 16_384
"""Characters of a message that any pattern may see."""


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


def new_messages(messages: Messages, tail: str) -> tuple[Messages, str]:
    """Return the messages behind the cursor, and the new cursor.

    Hosts resend the whole history each turn, or only the turn; some cut its beginning. The new messages
    are those behind the longest end of the history that the cursor knows; without any such, all are new.
    """
    known = tail.split()
    if 0 < len(known) < TAIL and [_mark(message) for message in messages[: len(known)]] == known:
        # The cursor still holds the whole session, and the host resends it.
        rest = messages[len(known) :]
        return rest, " ".join([*known, *map(_mark, rest)][-TAIL:])
    marks: list[str] = []  # of the messages from the last backwards, as far as they were needed
    for cut in range(len(messages), 0, -1):
        while len(marks) < len(messages) - cut + min(cut, len(known)):
            marks.append(_mark(messages[len(messages) - 1 - len(marks)]))
        depth = min(cut, len(known))
        skipped = len(messages) - cut
        same = _common_end(known, marks[skipped : skipped + depth])
        # Two known messages in a row are enough: a host may have put a summary in place of what was before.
        if depth and same >= min(2, depth):
            return messages[cut:], " ".join([*known, *reversed(marks[:skipped])][-TAIL:])
    fresh = [_mark(message) for message in messages[-TAIL:]]
    return messages, " ".join([*known, *fresh][-TAIL:])


def _common_end(known: list[str], marks: list[str]) -> int:
    """Return how many of the marks, from the last message backwards, are the last ones known."""
    return next((n for n, mark in enumerate(marks) if mark != known[-1 - n]), len(marks))


def _mark(message: object) -> str:
    # Hosts write the newest message in another shape than the older ones, so only role and text count.
    content = ""
    if isinstance(message, Mapping):
        content = f"{message.get('role')}\0{message_text(message)[:MAX_RAW]}"
    return hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=8).hexdigest()


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
