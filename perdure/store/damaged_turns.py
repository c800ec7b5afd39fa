"""Turns of the inbox that were damaged: their lines are kept as they are, in a file beside the inbox file they were in.

Nothing is captured from them. A person looks at what can be read of them, and removes them. A purge removes
them, too: a search for bytes says nothing about what is damaged.
"""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perdure.failpoints import fail_point
from perdure.secrets.redact import redact
from perdure.store.folder import private_file, sync_folder
from perdure.store.inbox_lines import read, readable

SUFFIX = ".damaged"
_log = logging.getLogger("perdure.store")


@dataclass(frozen=True, slots=True)
class DamagedTurn:
    """A turn that cannot be read any more.

    Attributes:
        id: made of what is left of it.
        at: when the file was last written, epoch seconds.
        text: what can be read of it, without secrets and without what a terminal would obey.
    """

    id: str
    at: float
    text: str


def keep_aside(inbox_file: Path, lines: Sequence[bytes]) -> None:
    """Keep damaged lines of an inbox file, which is about to go; on disk when this returns. Repeating it is no error.

    Raises:
        StoreUnavailableError, OSError: they could not be written; the inbox file must stay.
    """
    if not lines:
        return
    path = inbox_file.with_suffix(SUFFIX)
    _write(path, lines)
    times = inbox_file.stat()
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    sync_folder(path.parent)
    fail_point("inbox.kept_aside")
    _log.error("damaged turns in the inbox: %d, kept aside in %s; see perdure inbox", len(lines), path.name)


def damaged_turns(inbox: Path) -> list[DamagedTurn]:
    """Return the turns that are kept aside in an inbox folder, by file."""
    return [
        DamagedTurn(_id(line), path.stat().st_mtime, redact(readable(line)).text)
        for path in _files(inbox)
        for line in _lines(path)
    ]


def redact_again(inbox: Path, *, dry_run: bool = False) -> int:
    """Leave of turns that hold a secret only what can be read of them, without it; return of how many.

    Raises:
        StoreError, OSError: a file could not be written.
    """
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
    """Remove turns that are kept aside, by their ids, or all of them; return how many there were.

    Raises:
        StoreError, OSError: a file could not be changed.
    """
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
    with private_file(path).open("wb") as file:
        file.write(b"".join(line + b"\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1]


def _files(inbox: Path) -> list[Path]:
    return sorted(inbox.glob(f"*{SUFFIX}"))
