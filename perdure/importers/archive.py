"""The files of an export as they come: in a folder, a zip or a folder of zips, read piece by piece."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from perdure.errors import InputError
from perdure.extras import how_to_install
from perdure.hooks.types import Message
from perdure.importers.conversation_import import Talk, Talks
from perdure.regex import lazy

STEP = 1 << 20
"""Bytes that are read at once."""
LARGEST = 1 << 28
"""Characters of one value: longer than any conversation."""
_LOOKED_AT = 20
"""Objects that tell what a file is."""
_SKIPPED = frozenset({".git", "node_modules", ".trash", ".obsidian", "__MACOSX"})
_NESTED = 2
"""Zips in zips that are looked into."""
_ARRAY = lazy(r'"(?:results|memories|conversations)"\s*:\s*\[')
_BETWEEN = " \t\r\n,"
_FILE = lazy(r"conversations.*\.json", re.IGNORECASE)
_ODD = (KeyError, TypeError, AttributeError, ValueError)
"""What comes of values that are not of the form that was looked for."""
_UNREADABLE = (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
UNREADABLE = "\ufffd"
"""What stands for bytes that are no text."""


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
        """Return all of it as text; what is none of its characters is U+FFFD."""
        with opened(self) as file:
            return _decoded(file.read()).replace("\r\n", "\n")


def members(path: Path, *suffixes: str) -> list[Member]:
    """Return the files below a path whose names end so, by name. The path may be a folder, a zip, or one such file."""
    if path.is_file():
        found = _packed(lambda: path, str(path), suffixes)
        return _plain(path, path.name, suffixes) if found is None else found
    every: list[Member] = []
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(set(folders) - _SKIPPED)
        for name in sorted(files):
            file = Path(folder, name)
            zipped = name.lower().endswith(".zip") and ".json" in suffixes
            found = _packed(partial(Path, file), str(file), suffixes) if zipped else None
            every += _plain(file, file.relative_to(path).as_posix(), suffixes) if found is None else found
    return every


@contextmanager
def opened(member: Member) -> Iterator[IO[bytes]]:
    """Open a file of an export; what is compressed with Zstandard is unpacked on the way."""
    try:
        with member.open() as file:
            yield _unpacked(file) if member.name.endswith(".zst") else file
    except (*_UNREADABLE, getattr(_zstd(), "ZstdError", OSError)) as error:
        raise InputError(f"{member.name} cannot be read ({error}); unpack it, or export it again") from error


def elements(member: Member) -> Iterator[tuple[Any, int]]:
    """Yield the values of a JSON array, each with its characters; no more than one and what is read ahead is kept.

    The array may be the file, or stand in an object as its "results", "memories" or "conversations".
    """
    decode = cast(Callable[[bytes], str], codecs.getincrementaldecoder("utf-8-sig")("replace").decode)
    decoder, step = json.JSONDecoder(), STEP
    with opened(member) as file:
        buffer = decode(file.read(STEP)).lstrip()
        buffer = buffer[_array(buffer, member) :].lstrip(_BETWEEN)
        while not buffer.startswith("]"):
            try:
                value, end = decoder.raw_decode(buffer)
            except (ValueError, RecursionError):
                block = file.read(step)
                if not block or len(buffer) > LARGEST:
                    raise InputError(f"{member.name} is not a JSON array, or is truncated; export it again") from None
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


def begins(member: Member, fits: Callable[[Any], bool]) -> bool:
    """Return whether one of the first values of a JSON array fits; False if it is no such file."""
    try:
        return any(fits(value) for value, _ in islice(elements(member), _LOOKED_AT))
    except InputError:
        return False


def _array(text: str, member: Member) -> int:
    """Return where the first value of the array stands in the beginning of a file."""
    if text.startswith("["):
        return 1
    found = _ARRAY.search(text) if text.startswith("{") else None
    if found is None:
        raise InputError(f"{member.name} is not a JSON array; export it again")
    return found.end()


def _wanted(name: str, suffixes: tuple[str, ...]) -> bool:
    path = PurePosixPath(name)
    return name.lower().endswith(suffixes) and not path.name.startswith("._") and _SKIPPED.isdisjoint(path.parts)


def _plain(file: Path, name: str, suffixes: tuple[str, ...]) -> list[Member]:
    if not _wanted(name, suffixes):
        return []
    try:
        state = file.stat()
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); check its permissions") from error
    return [Member(name, state.st_size, lambda: file.open("rb"), state.st_mtime)]


_Zipped = Callable[[], Path | IO[bytes]]


def _packed(source: _Zipped, where: str, suffixes: tuple[str, ...], depth: int = _NESTED) -> list[Member] | None:
    """Return the files in a zip, and in those within it; None if it is no zip."""
    try:
        if not zipfile.is_zipfile(source()):
            return None
        with zipfile.ZipFile(source()) as archive:
            infos = sorted(archive.infolist(), key=lambda info: info.filename)
    except _UNREADABLE as error:
        raise InputError(f"{where} cannot be read ({error}); download it again") from error
    found: list[Member] = []
    for info in infos:
        inner = partial(_open_within, source, info.filename)
        if _wanted(info.filename, suffixes):
            found.append(Member(info.filename, info.file_size, inner))
        elif depth and _wanted(info.filename, (".zip",)):
            found += _packed(inner, info.filename, suffixes, depth - 1) or ()
    return found


def _open_within(source: _Zipped, name: str) -> IO[bytes]:
    with zipfile.ZipFile(source()) as archive:
        return archive.open(name)


@cache
def _zstd() -> Any:
    """Return what unpacks Zstandard: Python's own since 3.14, before it that of an extra; None if neither is there."""
    for name in ("compression.zstd", "zstandard"):
        with suppress(ImportError):
            return import_module(name)
    return None


def _unpacked(file: IO[bytes]) -> IO[bytes]:
    zstd = _zstd()
    if zstd is None:
        raise OSError(f"it is compressed; to unpack it, run: {how_to_install('zstd')}")
    if hasattr(zstd, "ZstdFile"):
        return cast(IO[bytes], zstd.ZstdFile(file))
    return io.BufferedReader(zstd.ZstdDecompressor().stream_reader(file, read_across_frames=True))


def _decoded(data: bytes) -> str:
    """Return text in UTF-8 or UTF-16, or, if it is Western, in cp1252."""
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data[:2]:
        return data.decode("utf-16-le" if data[1:2] == b"\0" else "utf-16-be", "replace")
    text = data.decode("utf-8", "replace")
    if UNREADABLE not in text or b"\0" in data:
        return text
    western = data.decode("cp1252", "replace")
    letters = [letter.isascii() for letter in western if letter.isalpha()]
    return western if text.replace(UNREADABLE, "").isascii() and 2 * sum(letters) > len(letters) else text


def conversation_files(path: Path, mark: str) -> list[Member]:
    """Return the files of conversations in an export: the whole, or its shards.

    One that was renamed is told by `mark`, the name of what each of its conversations has.
    """
    files = members(path, ".json")
    if named := [member for member in files if _FILE.fullmatch(member.path.name)]:
        return named
    return files if len(files) == 1 else [member for member in files if begins(member, lambda value: has(value, mark))]


def has(value: Any, name: str) -> bool:
    """Return whether a value is an object with this name in it."""
    return isinstance(value, dict) and name in value


def talks_of(
    kind: str, files: Sequence[Member], reader: Callable[[], Callable[[Mapping[str, Any], int], Iterable[Talk]]]
) -> Talks:
    """Return the conversations in JSON arrays, one read after the other; what is no conversation is counted.

    `reader`: begins to read, and returns what finds the conversations in a value of so many characters.
    """

    def read() -> Iterator[Talk]:
        talks_in = reader()
        for member in files:
            try:
                for number, (value, size) in enumerate(elements(member)):
                    try:
                        yield from talks_in(value, size)
                    except _ODD:
                        yield Talk(f"{member.name}:{number}", (), size, broken="it does not look like a conversation")
            except InputError as error:
                yield Talk(member.name, (), 0, broken=str(error))

    return Talks(kind, sum(member.size for member in files), read)


def transcripts(kind: str, files: Sequence[Member], reader: Callable[[], Callable[[Member], Talk]]) -> Talks:
    """Return the conversations in files of one each, or why one cannot be read; `reader` as for `talks_of`."""

    def read() -> Iterator[Talk]:
        talk_in = reader()
        for member in files:
            try:
                yield talk_in(member)
            except InputError as error:
                yield Talk(member.path.name, (), member.size, broken=str(error))

    return Talks(kind, sum(member.size for member in files), read)


def messages_of(values: Iterable[Any], message: Callable[[Any], Message | None]) -> tuple[list[Message], int]:
    """Return what a person said in the messages of a conversation, and how many of these could not be read."""
    said: list[Message] = []
    odd = 0
    for value in values:
        try:
            made = message(value)
        except _ODD:
            odd += 1
            continue
        said += [made] if made is not None else []
    return said, odd
