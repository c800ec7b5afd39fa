"""From a session file to turns: who said what and when, without what was not said by anyone."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from perdure.errors import InputError
from perdure.regex import lazy
from perdure.secrets.redact import redact
from perdure.speech.author import Author, author_of, name_of
from perdure.speech.spans import spoken
from perdure.speech.typed import typed, without_blocks
from perdure.text.clean import clean, clip, message_text
from perdure.text.timestamps import seconds

MAX_TEXT = 16_384
"""Characters of a turn; what comes behind them is cut off."""

Role = Literal["user", "pasted", "assistant"]

# A secret that lies across the end of a turn is seen whole, and taken out whole, with so much behind the end.
_MARGIN = 1_024
_HEADER_LINES = 8
_IMAGES = ("image", "image_url", "photo")
_SILENT = frozenset({"NO_REPLY", "HEARTBEAT_OK"})
_AROUND_SILENT = " \t\r\n*_`.!\"'"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation."""

    line_start: int  # the line of the file it begins on, from 1; in a JSON list, its number in the list
    line_end: int  # the line it ends on
    role: Role  # who spoke; "pasted": what the user gave that is not their own word
    speaker: str  # the name that the message gives, else "User", "Pasted" or "Assistant"
    at: float | None  # when, epoch seconds, if it is known
    text: str  # what was said, without secrets


@dataclass(frozen=True, slots=True)
class Threshold:
    """When a session that grows is worth indexing again."""

    max_bytes: int = 100_000  # new since it was indexed
    max_messages: int = 50  # new since it was indexed
    idle_seconds: float = 600.0  # since the last change

    def due(self, grown_bytes: int, grown_messages: int, idle: float) -> bool:
        """Return whether to index now.

        `grown_bytes`: by how much the file grew since it was indexed; negative if it shrank; `idle`: seconds since the
        last change.
        """
        if grown_bytes < 0:
            # What shrank was rewritten: the index may hold what was taken out of it.
            return True
        if not grown_bytes and grown_messages <= 0:
            return False
        return grown_bytes >= self.max_bytes or grown_messages >= self.max_messages or idle >= self.idle_seconds


def read_turns(data: str, strip: Callable[[str], str] = lambda text: text) -> list[Turn]:
    """Read the turns of a session: OpenClaw's JSONL, JSONL of messages, or a JSON list of messages.

    Left out is what no person and no assistant has said, as `perdure.speech` tells it: tools, thinking, timers,
    memories of any plugin; images without a caption, silent messages, and lines that are broken, as the last one is
    while a host writes it. What a message of the user's holds of others' words is a turn of its own.
    """
    turns = []
    for number, record in _records(data):
        inner = record.get("message")
        message = inner if isinstance(inner, Mapping) else record
        author = author_of(record)
        if author is Author.USER:
            told = spoken(typed(strip(said(message))))
            texts: Sequence[tuple[Role, str]] = (("user", told.plain), ("pasted", told.by(Author.PASTED)))
        elif author is Author.ASSISTANT:
            texts = (("assistant", presentable(without_blocks(strip(said(message))).strip())),)
        else:
            continue
        at = seconds(message.get("timestamp"))
        at = seconds(record.get("timestamp")) if at is None else at
        for role, text in texts:
            if text.strip(_AROUND_SILENT) and text.strip(_AROUND_SILENT) not in _SILENT:
                name = "" if role == "pasted" else name_of(message) or name_of(record)
                turns.append(Turn(number, number, role, name or role.title(), at, clip(text, MAX_TEXT).strip()))
    return turns


def session_of(data: str, stem: str) -> str:
    """Return the id of a session: from the header line of its file, else the file's name without its ending."""
    for _, line in islice(json_lines(data), _HEADER_LINES):
        header = _parsed(line)
        if isinstance(header, Mapping) and header.get("type") == "session":
            session = header.get("id")
            return session if isinstance(session, str) and session else stem
    return stem


def json_lines(data: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, each with its number from 1.

    Only a newline ends a line: JSON may hold the other characters at which `str.splitlines` cuts.
    """
    for number, line in enumerate(data.removeprefix("\ufeff").split("\n"), 1):
        if line.strip():
            yield number, line


def said(message: Mapping[str, Any]) -> str:
    """Return the text of a message, with the captions of its images as " [photo: caption]"."""
    content = message.get("content")
    if not isinstance(content, list | tuple):
        return message_text(message)
    captions = [
        caption
        for part in content
        if isinstance(part, Mapping) and part.get("type") in _IMAGES
        for caption in (part.get("caption") or part.get("alt"),)
        if isinstance(caption, str) and caption.strip()
    ]
    photos = "".join(f" [photo: {' '.join(clean(caption).split())}]" for caption in captions)
    return message_text(message) + photos


def presentable(text: str) -> str:
    """Return a text without secrets and within `MAX_TEXT` characters."""
    return clip(redact(clip(text, MAX_TEXT + _MARGIN)).text, MAX_TEXT).strip()


def _records(data: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if data.lstrip("\ufeff \t\r\n").startswith("["):
        listed = _parsed(data.removeprefix("\ufeff"))
        numbered: Any = enumerate(listed if isinstance(listed, list) else (), 1)
    else:
        numbered = ((number, _parsed(line)) for number, line in json_lines(data))
    for number, record in numbered:
        if isinstance(record, Mapping):
            yield number, record


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


FORMATS = ("auto", "openclaw", "messages", "locomo")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
_SESSION = lazy(r"session_(\d+)")


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a person said, and what was answered."""

    user: str  # the person's words
    reply: str  # the answer; empty if there was none
    at: float | None  # when, epoch seconds, if it is known


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One conversation."""

    session: str
    exchanges: tuple[Exchange, ...]


def read_transcript(path: Path, form: str = "auto", conversation: str | None = None) -> list[Dialogue]:
    """Read a transcript.

    `conversation`: which one of a LoCoMo file; None: the first.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"transcript {path} cannot be read ({type(error).__name__}); give a JSON or JSONL file"
        ) from error
    try:
        if form == "locomo":
            return _locomo(json.loads(text), conversation)
        if form == "openclaw" or (form == "auto" and not text.lstrip().startswith("[")):
            return [Dialogue(path.stem, tuple(_exchanges(_jsonl(text))))]
        return [Dialogue(path.stem, tuple(_exchanges(json.loads(text))))]
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        known = ", ".join(FORMATS)
        raise InputError(
            f"transcript {path} is not in the format {form!r} ({type(error).__name__}); choose one of {known}"
        ) from error


def _jsonl(text: str) -> Iterator[Mapping[str, Any]]:
    for _, line in json_lines(text):
        record = json.loads(line)
        message = record.get("message", record)
        if isinstance(message, Mapping) and "role" in message:
            yield message


def _exchanges(messages: Any) -> Iterator[Exchange]:
    user: str | None = None
    at: float | None = None
    reply: list[str] = []
    for message in messages:
        text = message_text(message)
        if message.get("role") == "user":
            if user is not None:
                yield Exchange(user, "\n".join(reply), at)
            user, reply = text, []
            at = seconds(message.get("timestamp"))
        elif message.get("role") == "assistant" and text:
            reply.append(text)
    if user is not None:
        yield Exchange(user, "\n".join(reply), at)


def _locomo(conversations: list[Mapping[str, Any]], wanted: str | None) -> list[Dialogue]:
    names = [item["sample_id"] for item in conversations]
    if wanted is not None and wanted not in names:
        raise InputError(f"conversation {wanted!r} is not in the file; it has {', '.join(names)}")
    content = conversations[names.index(wanted) if wanted is not None else 0]["conversation"]
    found = []
    for number in sorted(int(match[1]) for key in content if (match := _SESSION.fullmatch(key))):
        name = f"session_{number}"
        turns = (Exchange(turn["text"], "", _locomo_time(content[f"{name}_date_time"])) for turn in content[name])
        found.append(Dialogue(name, tuple(turns)))
    return found


def _locomo_time(text: str) -> float:
    return dt.datetime.strptime(text, _LOCOMO_TIME).replace(tzinfo=dt.UTC).timestamp()
