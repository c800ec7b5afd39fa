"""Lines that perdure keeps in somebody else's Markdown file: in a section of its own, and nowhere outside of it."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

from perdure.errors import InputError, StoreFullError, StoreUnavailableError
from perdure.files.reading import MAX_BYTES
from perdure.files.safe_open import read_inside
from perdure.secrets.redact import redact
from perdure.store.folder import FILE_MODE, sync_folder

BEGIN = "<!-- perdure: begin. perdure writes between these marks, after you agreed; edit or remove what you like -->"
END = "<!-- perdure: end -->"
HEADING = "## What perdure has learnt"
MAX_LINE = 300
"""Characters of a line."""


def add_line(folder: Path, name: str, text: str) -> bool:
    """Add a line to the section of a file in one step, creating file and section if need be.

    Args:
        folder: where the file is.
        name: of the file.
        text: becomes one line, without secrets.

    Returns:
        Whether it was added; False if it stands there already.

    Raises:
        UnsafePathError: the file is a link or no regular file.
        InputError: the folder is missing, the section has lost its end, the file is no UTF-8 or was changed meanwhile.
        StoreFullError: the disk is full; the file is as it was.
        StoreUnavailableError: it cannot be written; it is as it was.
    """
    before = _read(folder, name)
    after = with_line(_decoded(before or b"", name), text)
    if before is not None and after.encode() == before:
        return False
    try:
        _replace(folder, name, before, after.encode())
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFullError(f"the disk is full; {name} is as it was. Free some space") from error
        raise StoreUnavailableError(
            f"{folder / name} cannot be written ({error.strerror}); check the folder"
        ) from error
    return True


def with_line(content: str, text: str) -> str:
    """Return a file's text with one more line in its section; the same if the line stands there already.

    Raises:
        InputError: the section has no end, or there is more than one.
    """
    line = f"- {plain_line(text)}"
    if content.count(BEGIN) != content.count(END) or content.count(BEGIN) > 1:
        raise InputError("the section of perdure is damaged: it needs one begin mark and one end mark; restore them")
    if BEGIN not in content:
        gap = "" if not content or content.endswith("\n\n") else "\n" if content.endswith("\n") else "\n\n"
        return f"{content}{gap}{BEGIN}\n{HEADING}\n\n{line}\n{END}\n"
    head, _, rest = content.partition(BEGIN)
    section, end, tail = rest.partition(END)
    if not end:
        raise InputError("the section of perdure is damaged: its end mark stands before its begin mark; restore them")
    if line in section.splitlines():
        return content
    return f"{head}{BEGIN}{section}{'' if section.endswith(chr(10)) else chr(10)}{line}\n{END}{tail}"


def plain_line(text: str) -> str:
    """Return a text as one line of a list, without secrets and without what could open or close a mark."""
    line = " ".join(redact(text).text.split()).replace("<!--", "<! --").replace("-->", "-- >")
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1].rstrip()}…"


def _read(folder: Path, name: str) -> bytes | None:
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; name the agent's workspace")
    try:
        return read_inside(folder, name, MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnavailableError(f"{folder / name} cannot be read ({error.strerror}); check its owner") from error


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is no UTF-8 text; convert it first") from error


def _replace(folder: Path, name: str, before: bytes | None, after: bytes) -> None:
    path = folder / name
    mode = FILE_MODE if before is None else path.stat().st_mode & 0o777
    draft = folder / f".{name}.{secrets.token_hex(4)}.tmp"
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        # An editor may have saved it since it was read.
        if _read(folder, name) != before:
            raise InputError(f"{name} was changed meanwhile; nothing was written. Accept the proposal again")
        draft.replace(path)
        sync_folder(folder)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
