"""Reading past conversations: OpenClaw's session files, lists of messages, and LoCoMo."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.errors import InputError
from perdure.files.turns import json_lines
from perdure.regex import lazy
from perdure.text.clean import message_text
from perdure.text.timestamps import seconds

FORMATS = ("auto", "openclaw", "messages", "locomo")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
_SESSION = lazy(r"session_(\d+)")


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a person said, and what was answered.

    Attributes:
        user: the person's words.
        reply: the answer; empty if there was none.
        at: when, epoch seconds, if it is known.
    """

    user: str
    reply: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One conversation."""

    session: str
    exchanges: tuple[Exchange, ...]


def read_transcript(path: Path, form: str = "auto", conversation: str | None = None) -> list[Dialogue]:
    """Read a transcript.

    Args:
        path: the file.
        form: "openclaw" (session JSONL), "messages" (a JSON list of messages with role and content), "locomo"
            (both speakers count as users), or "auto" to find out which of the first two it is.
        conversation: which one of a LoCoMo file; None: the first.

    Raises:
        InputError: the file cannot be read or is of another form.
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
            f"transcript {path} is not of the form {form!r} ({type(error).__name__}); choose one of {known}"
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
    numbers = sorted(int(match[1]) for key in content if (match := _SESSION.fullmatch(key)))
    return [
        Dialogue(
            f"session_{number}",
            tuple(
                Exchange(turn["text"], "", _locomo_time(content[f"session_{number}_date_time"]))
                for turn in content[f"session_{number}"]
            ),
        )
        for number in numbers
    ]


def _locomo_time(text: str) -> float:
    moment = dt.datetime.strptime(text, _LOCOMO_TIME)
    return moment.replace(tzinfo=dt.UTC).timestamp()
