"""Which messages of a history are new: hosts resend all of it each turn, or only the turn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from perdure.hooks.types import Message, Messages
from perdure.text.clean import message_text

TAIL = 16
"""So many messages of a session are remembered to find out where the new ones begin."""
MAX_RAW = 16_384
"""Characters of a message that any pattern may see."""


def mark(message: object, key: bytes = b"") -> str:
    """Return 16 hex digits that tell a message from others.

    Hosts write the newest message in another shape than the older ones, so only role and text count. A secret `key` of
    at most 64 bytes (keyed BLAKE2b, RFC 7693) keeps a short text from being guessed: it is needed wherever the text may
    hold what must not be written.
    """
    content = ""
    if isinstance(message, Mapping):
        content = f"{message.get('role')}\0{message_text(message)[:MAX_RAW]}"
    return hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=8, key=key).hexdigest()


def unread(messages: Messages, tail: str, key: bytes) -> tuple[Messages, str]:
    """Return the messages behind a cursor whose marks are keyed with the store's key, and the new cursor."""
    return new_messages(messages, tail, lambda message: mark(message, key))


def new_messages(messages: Messages, tail: str, mark_of: Callable[[Message], str] = mark) -> tuple[Messages, str]:
    """Return the messages after the cursor, and the new cursor.

    Hosts resend the whole history each turn, or only the turn; some cut its beginning. The new messages are those after
    the longest end of the history that the cursor knows; if it knows none, all are new. The cursor (`tail`) holds the
    marks of the last `TAIL` known messages, oldest first, separated by spaces.
    """
    known = tail.split()
    if 0 < len(known) < TAIL and [mark_of(message) for message in messages[: len(known)]] == known:
        # The cursor still holds the whole session, and the host resends it.
        rest = messages[len(known) :]
        return rest, " ".join([*known, *map(mark_of, rest)][-TAIL:])
    marks: list[str] = []  # of the messages from the last backwards, as far as they were needed
    for cut in range(len(messages), 0, -1):
        while len(marks) < len(messages) - cut + min(cut, len(known)):
            marks.append(mark_of(messages[len(messages) - 1 - len(marks)]))
        depth = min(cut, len(known))
        skipped = len(messages) - cut
        same = _common_end(known, marks[skipped : skipped + depth])
        # Two known messages in a row are enough: a host may have put a summary in place of what was before.
        if depth and same >= min(2, depth):
            return messages[cut:], " ".join([*known, *reversed(marks[:skipped])][-TAIL:])
    fresh = [mark_of(message) for message in messages[-TAIL:]]
    return messages, " ".join([*known, *fresh][-TAIL:])


def _common_end(known: list[str], marks: list[str]) -> int:
    """Return how many of the marks, from the last message backwards, are the last ones known."""
    return next((n for n, mark in enumerate(marks) if mark != known[-1 - n]), len(marks))
