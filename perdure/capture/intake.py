"""What is new in this turn, freed of our own blocks and of secrets.

Runs while the host waits, so it looks at new messages only and does nothing that could take long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.hooks.types import Messages
from perdure.regex import lazy
from perdure.speech.author import HEARSAY, Author, author_of, uses_tools
from perdure.speech.orders import asks_to_remember
from perdure.speech.people import speaker_of, speakers, without_name
from perdure.speech.spans import spoken
from perdure.speech.typed import typed
from perdure.text.clean import clip, message_text
from perdure.text.fence import strip_fenced
from perdure.text.history import MAX_RAW, unread
from perdure.text.scripts import dense_script
from perdure.text.timestamps import seconds, zone_told

MAX_BEFORE = 160
"""Characters of a message that may be quoted to explain the next one."""
LOOKED_BACK = 12
"""So many messages before the new ones are looked at for what the user said last: tools speak between."""
_SENTENCE = lazy(r"(?<=[.!?\u2026])\s+|\n+|(?<=[\u3002\uff01\uff1f])")


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
    """The new ones as {"text", "at"}: what the user said plainly, redacted, with "before": what they said before, and
    "asked": what the assistant has asked since, if these are short; with "name" where several people speak in the
    conversation. The assistant's have a "role"."""
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
    several = len(speakers(messages)) > 1
    before, asked = _said_last(messages[: len(messages) - len(fresh)], key, session)
    for author, message in _spoken(fresh):
        text = _text(message, author, key, session)
        if author is Author.ASSISTANT:
            asked = _question(text)
            if not limits.assistant:
                continue
        told = spoken(text)
        left_out += told.secrets
        if len(text) <= MAX_RAW:
            redacted[text] = told.text
        said: str = told.plain if author is Author.USER else told.text
        clipped += len(said) > limits.max_chars
        said = _within(said, limits.max_chars)
        if author is Author.ASSISTANT:
            beside = {"role": author.value}
        elif several and (name := speaker_of(message)):
            beside, said = {"name": name}, without_name(said, name)
        else:
            beside = {name: told for name, told in (("before", before), ("asked", asked)) if told}
        if len(said) >= _least(said, limits.min_chars):
            taken.append({"text": said, "at": seconds(message.get("timestamp")), **zone_told(message), **beside})
        if author is Author.USER:
            before, asked = said if len(text) <= MAX_BEFORE else "", ""
    return Intake(tuple(taken), tail, clipped, tuple(left_out), fresh, redacted)


def _said_last(known: Messages, key: bytes, session: str | None) -> tuple[str, str]:
    """Return what the user said last in messages that are not new, if it is short, and what they were asked since."""
    before = asked = ""
    for author, message in _spoken(known[-LOOKED_BACK:]):
        text = _text(message, author, key, session).strip()
        before, asked = (text, "") if author is Author.USER else (before, _question(text))
    return spoken(before).plain if len(before) <= MAX_BEFORE else "", asked


def _question(text: str) -> str:
    """Return the question with which a text ends, if it is short, redacted."""
    last = _SENTENCE.split(text[-2 * MAX_BEFORE :].strip())[-1]
    return spoken(last).text if last.endswith(("?", "？")) and len(last) <= MAX_BEFORE else ""


def _text(message: Mapping[str, Any], author: Author, key: bytes, session: str | None) -> str:
    text = strip_fenced(message_text(message), key, session)
    return typed(text) if author is Author.USER else text


def _within(text: str, limit: int) -> str:
    """Cut a text to about `limit` characters: its head and tail stay, and each order to remember between them."""
    if len(text) <= limit:
        return text.strip()
    head = clip(text, limit - limit // 4)
    tail = text[-(limit // 4) :].partition(" ")[2]
    asked = filter(asks_to_remember, _SENTENCE.split(text[len(head) : len(text) - len(tail)]))
    return "\n".join([head, *asked, tail]).strip()


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


def _spoken(messages: Messages) -> Iterator[tuple[Author, Mapping[str, Any]]]:
    """Yield what a person said and what the assistant answered them.

    An answer is left out if a tool was used for it, since what it says may come from a page or a file, and if it
    answers no person.
    """
    answers = False
    for message in messages:
        author = author_of(message) if isinstance(message, Mapping) else None
        if author is Author.USER:
            answers = bool(typed(message_text(message)))
            if answers:
                yield author, message
        elif author is Author.MACHINE or (author and (uses_tools(message) or message.get(HEARSAY))):
            answers = False
        elif author is Author.ASSISTANT and answers:
            yield author, message
