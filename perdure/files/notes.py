"""Markdown that perdure writes: the note of the day, as a memory flush asks for, and lines in somebody else's file."""

from __future__ import annotations

import datetime as dt
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from perdure.errors import InputError, StoreFullError, StoreUnavailableError
from perdure.files.roots import MAX_BYTES
from perdure.files.safe_open import read_inside
from perdure.secrets.redact import redact
from perdure.store.folder import FILE_MODE, FOLDER_MODE, replace_file, sync_folder
from perdure.text.clean import clean, clip
from perdure.text.lexicon import table

NOTE_BYTES = 100_000
"""Bytes of a daily note at most, as UTF-8."""
NOTES_FOLDER = "memory"
"""Where daily notes are, in the agent's workspace."""

DEFAULT_PROMPT: str = table("files", "prompts")["flush"]
DEFAULT_SYSTEM_PROMPT: str = table("files", "prompts")["flush_system"]
_TITLE_CHARS = 120
_REFUSALS = {errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.EISDIR, errno.ENXIO}
"""What opening a link, a folder, a pipe or a socket for appending fails with."""


@dataclass(frozen=True, slots=True)
class FlushPolicy:
    """When the agent is asked to save what must last, and in which words."""

    enabled: bool = True  # whether it is asked at all
    reserve_tokens: int = 20_000  # tokens of the context window that the host keeps free; it compacts beyond them
    soft_tokens: int = 4_000  # so many tokens before that point the flush is due
    prompt: str = DEFAULT_PROMPT  # what the agent is asked; `{date}` and `{path}` stand for today and for today's note
    # What is added to the system prompt of that turn; with the same placeholders.
    system_prompt: str = DEFAULT_SYSTEM_PROMPT

    def due(self, total_tokens: int, context_window: int, compactions: int, flushed_at: int | None) -> bool:
        """Return whether the agent should be asked now.

        Once per compaction cycle, from `context_window - reserve_tokens - soft_tokens` on. A window that is no
        larger than both together has no such point, so it is never due there: it would be due in every cycle
        before anything was said. For such a model the reserve must be made smaller.

        `flushed_at`: `compactions` at the time of the last flush; None: there was none. Returns False for values that
        cannot be, such as a negative count.
        """
        threshold = context_window - self.reserve_tokens - self.soft_tokens
        flushed = flushed_at is not None and flushed_at >= compactions
        return self.enabled and compactions >= 0 and not flushed and 0 < threshold <= total_tokens

    def prompts(self, today: dt.date) -> tuple[str, str]:
        """Return the prompt and the system prompt for a day. Braces other than the placeholders stay."""
        day = today.isoformat()
        path = f"{NOTES_FOLDER}/{day}.md"
        prompt, system = (
            text.replace("{date}", day).replace("{path}", path) for text in (self.prompt, self.system_prompt)
        )
        return prompt, system


def append_daily_note(workspace: Path, text: str, now: float, *, tz: dt.tzinfo | None = None, title: str = "") -> Path:
    """Append a note to the file of the day, `memory/YYYY-MM-DD.md`, and wait until the disk has it.

    What is in the file stays. Notes of several processes follow one another and never mix. Secrets are taken out.

    `now`: the time, epoch seconds; `tz`: the owner's time zone; None: that of the system. Returns the path of the file.
    """
    text = clean(text).strip()
    size = len(text.encode())
    if not text:
        raise InputError("the note is empty; give it some text")
    if size > NOTE_BYTES:
        raise InputError(f"the note has {size} bytes, the limit is {NOTE_BYTES}; shorten or split it")
    moment = dt.datetime.fromtimestamp(now, tz)
    # Redacted before it is cut: half a secret may not look like one any more.
    title = clip(redact(" ".join(clean(title).split())).text, _TITLE_CHARS)
    heading = f"{moment:%H:%M} {title}".rstrip()
    entry = f"\n## {heading}\n\n{redact(text).text}\n"
    path = workspace / NOTES_FOLDER / f"{moment:%Y-%m-%d}.md"
    try:
        with suppress(FileExistsError):
            path.parent.mkdir(FOLDER_MODE)
            sync_folder(workspace)
        with _opened(path) as handle:
            _append(handle, path, entry)
    except OSError as error:
        raise _translated(path, error) from error
    return path


def _append(handle: int, path: Path, entry: str) -> None:
    size = os.fstat(handle).st_size
    content = (entry if size else f"# {path.stem}\n{entry}").encode()
    if os.write(handle, content) != len(content):
        os.ftruncate(handle, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(handle)
    if not size:
        sync_folder(path.parent)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a file for appending, in a folder that is none by way of a link, and keep other writers out."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    # A pipe that nobody reads would make the open wait for ever.
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if os.open in os.supports_dir_fd:
        # Through the folder's handle: nobody can put a link in its place in between.
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            handle = os.open(path.name, flags, FILE_MODE, dir_fd=folder)
        finally:
            os.close(folder)
    else:
        if path.parent.is_symlink() or path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        handle = os.open(path, flags, FILE_MODE)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
        # For the first line of a new file: an append is whole without it. Windows and some network folders have none.
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _translated(path: Path, error: OSError) -> InputError | StoreFullError | StoreUnavailableError:
    if not path.parent.parent.is_dir():
        return InputError(f"{path.parent.parent} is not a folder; name the agent's workspace")
    if error.errno in _REFUSALS:
        return InputError(f"{path} or its folder is a link or not a regular file; replace it")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFullError(f"the disk is full; none of this note was written to {path}. Free some space")
    return StoreUnavailableError(f"{path} cannot be written ({error.strerror}); check the folder and its owner")


BEGIN = "<!-- perdure: begin. perdure writes between these marks, after you agreed; edit or remove what you like -->"
END = "<!-- perdure: end -->"
HEADING = "## What perdure has learnt"
MAX_LINE = 300
"""Characters of a line."""


def add_line(folder: Path, name: str, text: str) -> bool:
    """Add a line to the section of a file in one step, creating file and section if need be.

    Returns whether it was added; False if it stands there already.
    """
    before = _read(folder, name)
    try:
        after = with_line((before or b"").decode(), text)
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text; convert it first") from error
    if before is not None and after.encode() == before:
        return False

    def check() -> None:
        # An editor may have saved it since it was read.
        if _read(folder, name) != before:
            raise InputError(f"{name} has changed in the meantime; nothing was written. Accept the proposal again")

    try:
        replace_file(folder / name, after.encode(), check=check)
        sync_folder(folder)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFullError(f"the disk is full; {name} is unchanged. Free some space") from error
        raise StoreUnavailableError(
            f"{folder / name} cannot be written ({error.strerror}); check the folder"
        ) from error
    return True


def with_line(content: str, text: str) -> str:
    """Return a file's text with one more line in its section; the same if the line stands there already."""
    line = f"- {plain_line(text)}"
    if content.count(BEGIN) != content.count(END) or content.count(BEGIN) > 1:
        raise InputError("perdure's section is damaged: it needs one begin mark and one end mark; restore them")
    if BEGIN not in content:
        gap = "" if not content or content.endswith("\n\n") else "\n" if content.endswith("\n") else "\n\n"
        return f"{content}{gap}{BEGIN}\n{HEADING}\n\n{line}\n{END}\n"
    head, _, rest = content.partition(BEGIN)
    section, end, tail = rest.partition(END)
    if not end:
        raise InputError("perdure's section is damaged: its end mark comes before its begin mark; restore them")
    if line in section.splitlines():
        return content
    return f"{head}{BEGIN}{section}{'' if section.endswith(chr(10)) else chr(10)}{line}\n{END}{tail}"


def plain_line(text: str) -> str:
    """Return a text as one line of a list, without secrets and without what could open or close a mark."""
    line = " ".join(redact(text).text.split()).replace("<!--", "<! --").replace("-->", "-- >")
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1].rstrip()}…"


def _read(folder: Path, name: str) -> bytes | None:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; name the agent's workspace")
    try:
        return read_inside(folder, name, MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnavailableError(f"{folder / name} cannot be read ({error.strerror}); check its owner") from error
