"""Make text that comes from a host safe to store, and cut it to size."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from perdure.errors import InputError, refused
from perdure.regex import lazy

_SENTENCE_END = lazy(r"[.!?\u2026][\"'\u201d\u2019)\]]{0,3}(?=\s)|[\u3002\uff01\uff1f\uff61]")
_TEXT_PARTS = ("text", "input_text", "output_text")
_SPACE = lazy(r"\s")


def clean(text: str) -> str:
    """Remove NUL characters, replace lone surrogates by U+FFFD, and join each surrogate pair into its character.

    Neither NUL nor a lone surrogate can be stored: SQLite ends a text at NUL, and a lone surrogate has no UTF-8 form.
    Where a program's locale was not UTF-8, Python made a surrogate of each byte: if they are UTF-8, they are read so.
    """
    if not isinstance(text, str):
        raise refused(text, "a text")
    if "\0" in text:
        text = text.replace("\0", "")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        with suppress(UnicodeError):
            return text.encode(errors="surrogateescape").decode()
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clip(text: str, limit: int) -> str:
    """Cut a text to at most `limit` characters and strip white space at the cut.

    The cut is made after the last sentence that ends in the final tenth, else at the last space there, else at the
    limit.
    """
    if limit < 0:
        raise InputError(f"limit is {limit}; give 0 or more characters")
    if len(text) <= limit:
        return text
    tenth = limit - limit // 10
    # One character beyond the limit is looked at: a sentence may end exactly there.
    ends = [match.end() for match in _SENTENCE_END.finditer(text, tenth, limit + 1)]
    ends = [end for end in ends if end <= limit]
    if not ends:
        ends = [match.start() for match in _SPACE.finditer(text, tenth, limit + 1)]
    return text[: ends[-1] if ends else limit].rstrip()


def message_text(message: Mapping[str, object]) -> str:
    """Return the cleaned text of a host's message, its parts of text joined by newlines; other content is empty."""
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return clean(content)
    parts = map(part_text, content) if isinstance(content, list | tuple) else ()
    return clean("\n".join(part for part in parts if part is not None))


def part_text(part: object) -> str | None:
    """Return the text of a part of a message; None: it is of another kind, as an image, a tool's, or a thought."""
    if isinstance(part, Mapping) and part.get("type", "text") in _TEXT_PARTS and not part.get("thought"):
        part = part.get("text")
    return part if isinstance(part, str) else None
