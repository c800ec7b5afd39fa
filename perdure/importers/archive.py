"""The files of an export as they come: in a folder, a zip or a folder of zips, read piece by piece."""

from __future__ import annotations

import codecs
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from perdure.errors import InputError
from perdure.importers.conversation_import import Talk, Talks
from perdure.regex import lazy

STEP = 1 << 20
"""Bytes that are read at once."""
LARGEST = 1 << 28
"""Characters of one value: longer than any conversation."""
_LOOKED_AT = 20
"""Objects that tell what a file is."""
_SKIPPED = frozenset({".git", "node_modules", ".trash", ".obsidian"})
_ARRAY = lazy(r'"(?:results|memories|conversations)"\s*:\s*\[')
_BETWEEN = " \t\r\n,"
_FILE = lazy(r"conversations(?:-\d+)?\.json")


@dataclass(frozen=True, slots=True)
class Member:
    """One file of an export."""

    name: str  # its path within the export
    size: int  # bytes, unpacked
    open: Callable[[], IO[bytes]]  # opens it to be read
    at: float = 0.0  # when it was changed last, epoch seconds; 0 if that is not known

    @property
    def path(self) -> PurePosixPath:
        """Its name in parts."""
        return PurePosixPath(self.name)

    def text(self) -> str:
        """Return all of it as text."""
        with opened(self) as file:
            return file.read().decode("utf-8-sig", "replace").replace("\r\n", "\n")


def members(path: Path, suffix: str) -> list[Member]:
    """Return the files below a path whose names end so, by name. The path may be a folder, a zip, or one such file."""
    if path.is_file():
        return _within(path, suffix) if zipfile.is_zipfile(path) else _plain(path, path.name, suffix)
    found: list[Member] = []
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(set(folders) - _SKIPPED)
        for name in sorted(files):
            file = Path(folder, name)
            if name.endswith(".zip") and suffix == ".json" and zipfile.is_zipfile(file):
                found += _within(file, suffix)
            else:
                found += _plain(file, file.relative_to(path).as_posix(), suffix)
    return found


def opened(member: Member) -> IO[bytes]:
    """Open a file of an export."""
    try:
        return member.open()
    except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise InputError(f"{member.name} cannot be read ({error}); unpack it, or export it anew") from error


def elements(member: Member) -> Iterator[tuple[Any, int]]:
    """Yield the values of a JSON array, each with its characters; no more than one and what is read ahead is kept.

    The array may be the file, or stand in an object as its "results", "memories" or "conversations".
    """
    decode = cast(Callable[[bytes], str], codecs.getincrementaldecoder("utf-8-sig")("replace").decode)
    decoder, step = json.JSONDecoder(), STEP
    with opened(member) as file:
        buffer = decode(_read(file, STEP, member)).lstrip()
        buffer = buffer[_array(buffer, member) :].lstrip(_BETWEEN)
        while not buffer.startswith("]"):
            try:
                value, end = decoder.raw_decode(buffer)
            except (ValueError, RecursionError):
                block = _read(file, step, member)
                if not block or len(buffer) > LARGEST:
                    raise InputError(f"{member.name} is no JSON array, or is cut off; export it anew") from None
                buffer = (buffer + decode(block)).lstrip(_BETWEEN)
                # What does not end in a mebibyte is looked at again at twice its length, not at each mebibyte.
                step = max(STEP, len(buffer))
                continue
            yield value, end
            buffer, step = buffer[end:].lstrip(_BETWEEN), STEP


def lines(member: Member, having: bytes = b"") -> Iterator[Any]:
    """Yield the objects in a file of JSON lines that hold some bytes; what is no JSON is passed over."""
    with opened(member) as file:
        for line in file:
            if having in line:
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(value, dict):
                    yield value


def first_lines(member: Member) -> list[Any]:
    """Return the objects in the beginning of a file of JSON lines, or nothing if it cannot be read."""
    try:
        return list(islice(lines(member), _LOOKED_AT))
    except InputError:
        return []


def beginning(member: Member) -> Any:
    """Return the first value of a JSON array, or None if it is no such file."""
    try:
        return next((value for value, _ in elements(member)), None)
    except InputError:
        return None


def _array(text: str, member: Member) -> int:
    """Return where the first value of the array stands in the beginning of a file."""
    if text.startswith("["):
        return 1
    found = _ARRAY.search(text) if text.startswith("{") else None
    if found is None:
        raise InputError(f"{member.name} is no JSON array; export it anew")
    return found.end()


def _read(file: IO[bytes], size: int, member: Member) -> bytes:
    try:
        return file.read(size)
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{member.name} cannot be read ({error}); export it anew") from error


def _plain(file: Path, name: str, suffix: str) -> list[Member]:
    if not name.endswith(suffix):
        return []
    try:
        state = file.stat()
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); check its mode") from error
    return [Member(name, state.st_size, lambda: file.open("rb"), state.st_mtime)]


def _within(path: Path, suffix: str) -> list[Member]:
    try:
        with zipfile.ZipFile(path) as archive:
            infos = sorted(archive.infolist(), key=lambda info: info.filename)
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read ({error}); fetch it anew") from error
    return [
        Member(info.filename, info.file_size, partial(_open_within, path, info.filename))
        for info in infos
        if info.filename.endswith(suffix)
    ]


def _open_within(path: Path, name: str) -> IO[bytes]:
    with zipfile.ZipFile(path) as archive:
        return archive.open(name)


def conversation_files(path: Path) -> list[Member]:
    """Return the files of conversations in an export: the whole, or its shards."""
    return [member for member in members(path, ".json") if _FILE.fullmatch(member.path.name)]


def talks_of(kind: str, files: Sequence[Member], talk_of: Callable[[Mapping[str, Any], int], Talk]) -> Talks:
    """Return the conversations in JSON arrays, one read after the other; what is no conversation is counted."""

    def read() -> Iterator[Talk]:
        for member in files:
            for number, (value, size) in enumerate(elements(member)):
                try:
                    yield talk_of(value, size)
                except (KeyError, TypeError, AttributeError, ValueError):
                    yield Talk(f"{member.name}:{number}", (), size, broken=True)

    return Talks(kind, sum(member.size for member in files), read)


def branch(last: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """Return the ids from the root of a tree to one of its messages."""
    found: dict[str, None] = {}
    while last is not None and last in parents and last not in found:
        found[last] = None
        last = parents[last]
    return list(found)[::-1]
