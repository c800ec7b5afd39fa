"""Reading the text of memory files: whole for the index, by lines for whoever follows a search result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.errors import InputError
from perdure.files.roots import Root
from perdure.files.safe_open import checked_parts, read_inside
from perdure.regex import lazy

MAX_BYTES = 10_000_000
"""The largest file that `read_memory` opens."""
BINARY_SIGHT = 8_192
"""So many bytes at the beginning of a file are searched for a NUL, which no text has."""

_CITATION = lazy(r"#L([0-9]{1,9})(?:-L?([0-9]{1,9}))?\Z")


@dataclass(frozen=True, slots=True)
class Reading:
    """Lines of a memory file."""

    path: str  # the file, as results name it
    text: str  # the lines, joined by newlines
    start: int  # number of the first line, from 1
    end: int  # number of the last line; before `start` if there is none
    total_lines: int  # how many lines the file has
    truncated: bool = False  # whether lines that were asked for were cut off
    missing: bool = False  # whether there is no such file


def read_memory(
    roots: Sequence[Root], path: str, start: int | None = None, lines: int | None = None, max_chars: int = 20_000
) -> Reading:
    """Read a memory file, or some lines of it. Transcripts are not read here.

    `start`: the first line, from 1. The lines of a citation count only if neither `start` nor `lines` is given;
    `lines`: how many lines; None: all the rest.
    """
    path, start, lines = _place(path, start, lines)
    for name, value in (("start", start), ("lines", lines), ("max_chars", max_chars)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; it must be at least 1")
    text = _text(roots, path)
    if text is None:
        return Reading(path, "", start, start - 1, 0, missing=True)
    every = split_lines(text)
    asked = every[start - 1 :][:lines]
    shown = _fitting(asked, max_chars)
    result = "\n".join(shown)
    truncated = len(shown) < len(asked) or len(result) > max_chars
    return Reading(path, result[:max_chars], start, start + len(shown) - 1, len(every), truncated)


def read_text(root: Root, relative: str, max_bytes: int) -> str:
    """Read a file below a root as text; bytes that are not UTF-8 become replacement characters."""
    try:
        content = read_inside(root.folder, relative, max_bytes)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"file {relative!r} cannot be read ({error.strerror}); check who may read it") from error
    if b"\0" in content[:BINARY_SIGHT]:
        raise InputError(f"file {relative!r} is no UTF-8 text: it has a NUL in its first {BINARY_SIGHT} bytes")
    return content.decode("utf-8", "replace").removeprefix("\ufeff")


def split_lines(text: str) -> list[str]:
    """Return the lines that numbers in citations count. A newline at the very end begins one more, empty line."""
    return [line.removesuffix("\r") for line in text.split("\n")]


def _place(path: str, start: int | None, lines: int | None) -> tuple[str, int, int | None]:
    cited = _CITATION.search(path)
    if cited is None:
        return path, 1 if start is None else start, lines
    path = path[: cited.start()]
    if start is not None or lines is not None:
        return path, 1 if start is None else start, lines
    first, last = int(cited[1]), int(cited[2] or cited[1])
    if last < first:
        raise InputError(f"citation {cited[0]!r} ends before it begins; give the lower line first")
    return path, first, last - first + 1


def _text(roots: Sequence[Root], path: str) -> str | None:
    checked_parts(path)
    places = [
        (root, relative) for root in roots if root.kind != "sessions" and (relative := root.relative(path)) is not None
    ]
    if not places and path.endswith(".jsonl"):
        raise InputError(f"{path!r} is a conversation; what was said in it is found by search, not read by lines")
    if not places:
        raise InputError(f"{path!r} names no memory file; give a path as search results show it, such as MEMORY.md")
    for root, relative in places:
        try:
            return read_text(root, relative, MAX_BYTES)
        except FileNotFoundError:
            continue
    return None


def _fitting(lines: Sequence[str], max_chars: int) -> Sequence[str]:
    used = -1
    for number, line in enumerate(lines):
        used += len(line) + 1
        if used > max_chars:
            return lines[: max(number, 1)]
    return lines
