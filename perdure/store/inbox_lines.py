"""The lines of an inbox file: whole ones, those that a kill tore, and those that were damaged afterwards.

A line is a checksum, a space and a JSON object. Behind the last line the file is filled with zeros, written and
synced before any line comes there. So what a kill or a power cut leaves of an unfinished line is told from damage:
it is the last thing in the file, and zeros follow it or stand in it.

A damaged line is kept as it is, in a file beside the inbox file it was in. Nothing is captured from it. A person looks
at what can be read of it, and removes it. A purge removes it, too: a search for bytes says nothing about damage.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.failpoints import fail_point
from perdure.regex import lazy
from perdure.secrets.redact import redact
from perdure.store.folder import private_file, sync_folder, write_synced

Entry = Mapping[str, Any]
PROJECT = "project"
"""Under this name an entry holds the scope of the project that its turn is about, if there is one."""
SAID = lazy(r'"text":"((?:[^"\\]|\\.)*)')
"""What a message says, also in an object that is damaged elsewhere."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in an inbox file."""

    entries: tuple[Entry, ...]
    damaged: tuple[bytes, ...]  # lines that may have been acknowledged and cannot be read any more, as they are


def line_of(entry: Entry) -> bytes:
    """Return the line of an entry."""
    body = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return b"%08x %s\n" % (zlib.crc32(body), body)


def read(path: Path) -> Contents:
    """Read a file; one that is not there holds nothing."""
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


SUFFIX = ".damaged"
_log = logging.getLogger("perdure.store")


@dataclass(frozen=True, slots=True)
class DamagedTurn:
    """A turn that cannot be read any more."""

    id: str  # made of what is left of it
    at: float  # when the file was last written, epoch seconds
    text: str  # what can be read of it, without secrets and without what a terminal would obey


def keep_aside(inbox_file: Path, lines: Sequence[bytes]) -> None:
    """Keep damaged lines of an inbox file, which is about to go; on disk when this returns. Repeating it is no error.

    If that fails, the inbox file must stay.
    """
    if not lines:
        return
    path = inbox_file.with_suffix(SUFFIX)
    _write(path, lines)
    times = inbox_file.stat()
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    sync_folder(path.parent)
    fail_point("inbox.kept_aside")
    _log.error("%d damaged turns in the inbox were moved to %s; see perdure review", len(lines), path.name)


def damaged_turns(inbox: Path) -> list[DamagedTurn]:
    """Return the turns that are kept aside in an inbox folder, by file."""
    return [
        DamagedTurn(_id(line), path.stat().st_mtime, redact(readable(line)).text)
        for path in _files(inbox)
        for line in _lines(path)
    ]


def redact_again(inbox: Path, *, dry_run: bool = False) -> int:
    """Leave of turns that hold a secret only what can be read of them, without it; return of how many."""
    changed = 0
    for path in _files(inbox):
        lines = _lines(path)
        after = [redact(readable(line)).text.encode() if redact(readable(line)).kinds else line for line in lines]
        changed += sum(one != other for one, other in zip(lines, after, strict=True))
        if after != lines and not dry_run:
            _write(path, after)
    return changed


def unadopted(inbox: Path) -> list[str]:
    """Return the inbox files in which damaged turns still are, as paths from the data folder."""
    return [f"{inbox.name}/{path.name}" for path in sorted(inbox.glob("*.jsonl")) if read(path).damaged]


def drop(inbox: Path, ids: Sequence[str] | None = None) -> int:
    """Remove turns that are kept aside, by their ids, or all of them; return how many there were."""
    gone = 0
    for path in _files(inbox):
        lines = _lines(path)
        left = [line for line in lines if ids is not None and _id(line) not in ids]
        gone += len(lines) - len(left)
        if not left:
            path.unlink()
        elif left != lines:
            _write(path, left)
    if gone:
        sync_folder(inbox)
    return gone


def _id(line: bytes) -> str:
    return f"damaged-{zlib.crc32(line):08x}"


def _write(path: Path, lines: Sequence[bytes]) -> None:
    write_synced(private_file(path), b"".join(line + b"\n" for line in lines))


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1]


def _files(inbox: Path) -> list[Path]:
    return sorted(inbox.glob(f"*{SUFFIX}"))
