"""The lines of an inbox file: whole ones, those that a kill tore, and those that were damaged afterwards.

A line is a checksum, a space and a JSON object. Behind the last line the file is filled with zeros, written and
synced before any line comes there. So what a kill or a power cut leaves of an unfinished line is told from damage:
it is the last thing in the file, and zeros follow it or stand in it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.regex import lazy

Entry = Mapping[str, Any]
PROJECT = "project"
"""Under this name an entry holds the scope of the project that its turn is about, if there is one."""
SAID = lazy(r'"text":"((?:[^"\\]|\\.)*)')
"""What a message says, also in an object that is damaged elsewhere."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in an inbox file.

    Attributes:
        entries: what was acknowledged, in order.
        damaged: lines that may have been acknowledged and cannot be read any more, as they are.
    """

    entries: tuple[Entry, ...]
    damaged: tuple[bytes, ...]


def line_of(entry: Entry) -> bytes:
    """Return the line of an entry."""
    body = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return b"%08x %s\n" % (zlib.crc32(body), body)


def read(path: Path) -> Contents:
    """Read a file; one that is not there holds nothing.

    Raises:
        OSError: it cannot be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Contents((), ())
    written = content.rstrip(b"\0")
    *lines, rest = written.split(b"\n")
    unfinished = len(written) < len(content)
    if _entry(rest[:-1]) is not None:
        # Its line end was damaged, and nothing else.
        rest = rest[:-1]
    if not rest and lines and _has_hole(lines[-1]):
        lines.pop()
    if _entry(rest) is not None or not unfinished:
        lines.append(rest)
    read = [(line, _entry(line)) for line in lines if line]
    return Contents(
        tuple(entry for _, entry in read if entry is not None), tuple(line for line, entry in read if entry is None)
    )


def readable(line: bytes) -> str:
    """Return what can be read of a damaged line: what was said in it, or else all of it, on one line.

    Characters that a terminal would obey are left out. Secrets are not: see `redact`.
    """
    text = line.decode("utf-8", "replace")
    said = " ".join(map(_unescaped, SAID.findall(text))) or text
    return " ".join("".join(char if char.isprintable() else " " for char in said).split())


def _entry(line: bytes) -> Entry | None:
    checksum, _, body = line.partition(b" ")
    if not body or checksum != b"%08x" % zlib.crc32(body):
        return None
    entry: Entry = json.loads(body)
    return entry


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _has_hole(line: bytes) -> bool:
    # Sectors of a line that a power cut kept from the disk. A flipped bit may make one zero, but not at the start.
    return line.startswith(b"\0") or b"\0\0" in line
