"""Which files on disk belong to memory, which of them changed, and their text: whole, or by the lines of a result."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from perdure.errors import InputError
from perdure.files.safe_open import checked_parts, read_inside, why_unsafe
from perdure.regex import lazy
from perdure.store.scope import Scope

Kind = Literal["workspace", "extra", "sessions"]
Stamp = tuple[int, int, int]
"""Size in bytes, time of change in ns since the epoch, inode: what tells that a file is still the same."""

TOP_FILES = ("MEMORY.md", "memory.md", "USER.md")
"""The memory files at the top of a workspace, by their exact names."""
RACY_NS = 2_000_000_000
"""A second change so soon after the first may leave the same time on the file; FAT counts in two seconds."""

LINK = "link"
HARD_LINK = "hard link"
SPECIAL = "not a regular file"
UNREADABLE = "cannot be read"

# A leading dot also marks the lock and swap files of editors.
_IGNORED = lazy(r"\A\.|(?:~|#|\.swp|\.tmp)\Z")
_DAY = lazy(r"\Amemory/(?:[^/]+/)*([0-9]{4}-[0-9]{2}-[0-9]{2})(?![0-9])[^/]*\Z")
MAX_BYTES = 10_000_000
"""The largest file that `read_memory` opens."""
BINARY_SIGHT = 8_192
"""So many bytes at the beginning of a file are searched for a NUL, which no text has."""
_CITATION = lazy(r"#L([0-9]{1,9})(?:-L?([0-9]{1,9}))?\Z")


@dataclass(frozen=True, slots=True)
class Root:
    """A place where memory files lie. Made by `root_of`."""

    scope: Scope  # to whom its files belong
    path: Path  # the folder, or for an extra root also one file; absolute, without links
    # "workspace" (MEMORY.md, USER.md, memory/**/*.md), "extra" (a folder or file that the owner named) or "sessions"
    # (*.jsonl).
    kind: Kind
    pattern: str = "**/*.md"  # which .md files of an extra folder count, with "**" for any folders; empty for one file

    @property
    def single(self) -> bool:
        """Whether the root is one file."""
        return not self.pattern

    @property
    def folder(self) -> Path:
        """The folder that relative paths begin in."""
        return self.path.parent if self.single else self.path

    @property
    def prefix(self) -> str:
        """What stands before the relative path in a label."""
        if self.kind == "sessions":
            return "sessions/"
        return f"{self.path.name}/" if self.kind == "extra" and not self.single else ""

    def label(self, relative: str) -> str:
        """Return how a file is named in results."""
        return self.prefix + relative

    def relative(self, label: str) -> str | None:
        """Return the path below this root of what a result names; None if it cannot be a file of this root."""
        relative = label.removeprefix(self.prefix)
        return relative if label.startswith(self.prefix) and self.covers(relative) else None

    def covers(self, relative: str) -> bool:
        """Return whether a path below this root names a file of memory, going by the name alone."""
        if self.single:
            return relative == self.path.name
        parts = relative.split("/")
        if any(_IGNORED.search(part) for part in parts):
            return False
        if self.kind == "sessions":
            return len(parts) == 1 and relative.endswith(".jsonl")
        if self.kind == "workspace":
            return relative in TOP_FILES or (self.enters(relative) and relative.endswith(".md"))
        return relative.endswith(".md") and _matches(parts, self.pattern.split("/"))

    def enters(self, relative: str) -> bool:
        """Return whether files of memory may lie in or below this folder or beside this file."""
        return self.kind == "extra" or (self.kind == "workspace" and f"{relative}/".startswith("memory/"))


@dataclass(frozen=True, slots=True)
class Found:
    """A file, or a folder that was not entered, as a scan saw it."""

    relative: str  # its path below the root, with "/"; in escapes if it is no usable path
    size: int = 0  # in bytes
    mtime_ns: int = 0  # when it was changed, ns since the epoch
    inode: int = 0  # which file it is
    skipped: str | None = None  # why it is left out; None if it is to be read

    @property
    def stamp(self) -> Stamp:
        """What tells at the next scan that the file is still the same."""
        return self.size, self.mtime_ns, self.inode


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs from the last scan: relative paths in order, and why others are left out."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    skipped: Mapping[str, str]


def root_of(scope: Scope, path: Path | str, kind: Kind, pattern: str = "**/*.md") -> Root:
    """Make a root of a path as the owner gave it; links in it and "~" are resolved here, once.

    A missing path that ends in .md is taken for a file to come.
    """
    try:
        resolved = Path(path).expanduser().resolve()
        is_folder, exists = resolved.is_dir(), resolved.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"path {str(path)!r} cannot be resolved ({type(error).__name__}); name a folder or an .md file"
        ) from error
    if kind != "extra":
        return Root(scope, resolved, kind)
    reason = why_unsafe(resolved.name)
    if reason:
        raise InputError(f"extra path {str(path)!r} cannot be used because of its name: {reason}. Rename the folder")
    single = resolved.suffix == ".md" and not is_folder
    if exists and not is_folder and not single:
        raise InputError(f"extra path {str(path)!r} is neither a folder nor an .md file; name one of those")
    if not single and not pattern:
        raise InputError(f"the pattern for extra path {str(path)!r} is empty; the default is **/*.md")
    return Root(scope, resolved, kind, "" if single else pattern)


def scan(root: Root, max_bytes: int) -> dict[str, Found]:
    """Look at every file of memory below a root, without following a link or reading a file.

    Returns by relative path what was found. What looks like a file of memory and is none has a reason in `skipped`, and
    so has a folder that cannot be read ("." for the root). Hidden files and editors' backups are left out.
    """
    if root.single:
        item = _judged(root.path, root.path.name, max_bytes)
        return {item.relative: item} if item else {}
    found: list[Found] = []
    folders = [""]
    while folders:
        folder = folders.pop()
        entries = _listing(root.path / folder)
        if isinstance(entries, str):
            found.append(Found(folder or ".", skipped=entries))
            continue
        for entry in entries:
            relative = f"{folder}/{entry.name}" if folder else entry.name
            inside = entry.is_dir(follow_symlinks=False)
            if not (_to_enter(root, entry.name, relative) if inside else _to_judge(root, entry, relative)):
                continue
            reason = why_unsafe(relative)
            if reason:
                found.append(Found(repr(relative)[1:-1], skipped=f"name cannot be used: {reason}"))
            elif inside:
                folders.append(relative)
            elif item := _judged(entry, relative, max_bytes):
                found.append(item)
    return {item.relative: item for item in found}


def changes(before: Mapping[str, Stamp], now: Mapping[str, Found]) -> Changes:
    """Compare a scan with what is known, both by relative path.

    Known files in a folder that cannot be read are left as they are: nobody knows that they are gone.
    """
    good = {name: item.stamp for name, item in now.items() if item.skipped is None}
    unknown = tuple("" if name == "." else f"{name}/" for name, item in now.items() if item.skipped == UNREADABLE)
    return Changes(
        added=tuple(sorted(good.keys() - before.keys())),
        changed=tuple(sorted(name for name, stamp in good.items() if before.get(name, stamp) != stamp)),
        removed=tuple(sorted(name for name in before.keys() - good.keys() if not f"{name}/".startswith(unknown))),
        skipped={name: item.skipped for name, item in sorted(now.items()) if item.skipped},
    )


def racy(found: Found, checked_ns: int) -> bool:
    """Return whether a file may have changed once more without a trace in its stamp.

    A file that was changed within two seconds of the scan at `checked_ns` (since the epoch) counts as
    changed at the next scan, even if its stamp is the same.
    """
    return abs(checked_ns - found.mtime_ns) < RACY_NS


def memory_day(label: str) -> date | None:
    """Return the day that a daily note is of, by the date its name begins with; None for other files."""
    match = _DAY.match(label)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _listing(folder: Path) -> list[os.DirEntry[str]] | str:
    """Return what is in a folder, or why it is left out."""
    try:
        # The root may have become a link since it was resolved.
        if folder.is_symlink():
            return LINK
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except OSError:
        return UNREADABLE


def _to_enter(root: Root, name: str, relative: str) -> bool:
    return root.enters(relative) and not _IGNORED.search(name)


def _to_judge(root: Root, entry: os.DirEntry[str], relative: str) -> bool:
    # A link in the place of a folder is named too: the owner should learn why nothing below it is found.
    linked = "." not in entry.name and entry.is_symlink() and _to_enter(root, entry.name, relative)
    return linked or root.covers(relative)


def _judged(entry: os.DirEntry[str] | Path, relative: str, max_bytes: int) -> Found | None:
    try:
        seen = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError:
        return Found(relative, skipped=UNREADABLE)
    return Found(relative, seen.st_size, seen.st_mtime_ns, seen.st_ino, _flaw(seen, max_bytes))


def _flaw(seen: os.stat_result, max_bytes: int) -> str | None:
    if stat.S_ISLNK(seen.st_mode):
        return LINK
    if not stat.S_ISREG(seen.st_mode):
        return SPECIAL
    if seen.st_nlink > 1:
        return HARD_LINK
    return f"larger than {max_bytes / 1e6:.3g} MB" if seen.st_size > max_bytes else None


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[skip:], pattern[1:]) for skip in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


@dataclass(frozen=True, slots=True)
class Reading:
    """Lines of a memory file."""

    path: str  # the file, as named in search results
    text: str  # the lines, joined by newlines
    start: int  # number of the first line, from 1
    end: int  # number of the last line; before `start` if there is none
    total_lines: int  # number of lines of the file
    truncated: bool = False  # whether requested lines were cut off
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
        raise InputError(f"file {relative!r} cannot be read ({error.strerror}); check its permissions") from error
    if b"\0" in content[:BINARY_SIGHT]:
        raise InputError(f"file {relative!r} is not UTF-8 text: it has a NUL in its first {BINARY_SIGHT} bytes")
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
        raise InputError(f"citation {cited[0]!r} ends before it begins; give the smaller line number first")
    return path, first, last - first + 1


def _text(roots: Sequence[Root], path: str) -> str | None:
    checked_parts(path)
    places = [
        (root, relative) for root in roots if root.kind != "sessions" and (relative := root.relative(path)) is not None
    ]
    if not places and path.endswith(".jsonl"):
        raise InputError(f"{path!r} is a conversation, which can be searched but not read line by line")
    if not places:
        raise InputError(f"{path!r} is not a memory file; give a path from a search result, such as MEMORY.md")
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
