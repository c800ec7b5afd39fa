"""Reading a file below a folder without ever leaving that folder, whatever the path and whoever renames meanwhile.

Links are refused, inside or not: what a link shows can change between the check and the reading. Hard links are
refused too: nothing tells a second name of one's own file from a name for somebody else's.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from perdure.errors import InputError, UnsafePathError
from perdure.regex import lazy
from perdure.text.lexicon import table

MAX_PATH = 1_024
"""Characters of a path below a folder."""
REREADS = 3
"""So many times a file that changed while it was read is read again."""

Opener = Callable[[Path, Sequence[str]], int]
"""Opens the file that lies the given parts below a folder; returns its descriptor."""

_UNSAFE: Final = tuple((lazy(pattern), reason) for pattern, reason in table("files", "unsafe")["reasons"])

_REFUSALS: Final = {
    errno.ELOOP: "it is a link, or a folder above it is one",
    errno.EMLINK: "it is a link, or a folder above it is one",  # as FreeBSD puts it
    errno.ENOTDIR: "a folder above it is a link, or not a folder",
    errno.ENAMETOOLONG: "one of its parts is too long",
    errno.ENXIO: "it is not a regular file",
    errno.ENODEV: "it is not a regular file",
    errno.EOPNOTSUPP: "it is not a regular file",
}

# Without O_NONBLOCK a FIFO would wait for a writer. Python itself sees to it that no child inherits a descriptor.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | _NO_LINK | getattr(os, "O_DIRECTORY", 0)


def why_unsafe(relative: str) -> str | None:
    """Return why a path may not be used below a folder, as the end of a sentence; None if it may."""
    if len(relative) > MAX_PATH:
        return f"it has {len(relative)} characters, the limit is {MAX_PATH}"
    return next((reason for pattern, reason in _UNSAFE if pattern.search(relative)), None)


def checked_parts(relative: str) -> tuple[str, ...]:
    """Return the parts of a path with "/" below a folder."""
    reason = why_unsafe(relative)
    if reason:
        raise _refused(relative, reason)
    return tuple(relative.split("/"))


def open_by_descriptor(root: Path, parts: Sequence[str]) -> int:
    """Open a file by walking down from the folder, each part seen from the one before; never through a link.

    No rename can lead the walk astray: a folder that is open stays the one that it was.
    """
    handle = os.open(root, _FOLDER)
    for number, part in enumerate(parts, 1):
        above = handle
        try:
            handle = os.open(part, _FILE if number == len(parts) else _FOLDER, dir_fd=above)
        finally:
            os.close(above)
    return handle


def open_by_name(root: Path, parts: Sequence[str]) -> int:
    """Open a file by its whole path, checked before and after; for systems that cannot open relative to a folder.

    Somebody who renames twice within the last check could still mislead it.
    """
    base = root.resolve(strict=True)
    path = base
    for part in parts:
        path /= part
        if path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    handle = os.open(path, _FILE)
    try:
        # Finds out renames since the check, and Windows junctions, which are no symlinks to Python.
        resolved = path.resolve(strict=True)
        if resolved.is_relative_to(base) and os.path.samestat(os.fstat(handle), resolved.lstat()):
            return handle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    except OSError:
        os.close(handle)
        raise


OPENER: Opener = open_by_descriptor if os.open in os.supports_dir_fd and _NO_LINK else open_by_name


def read_inside(root: Path, relative: str, max_bytes: int, *, opener: Opener = OPENER) -> bytes:
    """Read a whole regular file below a folder."""
    parts = checked_parts(relative)
    for _ in range(1 + REREADS):
        handle = _opened(opener, root, parts)
        try:
            before = os.fstat(handle)
            _check(before, relative, max_bytes)
            with os.fdopen(handle, "rb", closefd=False) as file:
                content = file.read(before.st_size)
            after = os.fstat(handle)
        finally:
            os.close(handle)
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            return content
    raise InputError(f"file {relative!r} changed during each of {1 + REREADS} reads; try again later")


def _opened(opener: Opener, root: Path, parts: Sequence[str]) -> int:
    try:
        return opener(root, parts)
    except OSError as error:
        if error.errno in _REFUSALS:
            raise _refused("/".join(parts), _REFUSALS[error.errno]) from error
        raise


def _check(found: os.stat_result, relative: str, max_bytes: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _refused(relative, "it is not a regular file")
    if found.st_nlink > 1:
        raise _refused(relative, "it is a hard link, which may point to a file elsewhere; replace it with a copy")
    if found.st_size > max_bytes:
        raise InputError(f"file {relative!r} has {found.st_size} bytes; the limit is {max_bytes}. Split it")


def _refused(relative: str, reason: str) -> UnsafePathError:
    return UnsafePathError(f"path {relative[:80]!r} is refused: {reason}. Give a path from a search result")
