"""The session files that we keep for hosts that keep none."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from perdure.errors import ScopeError, StoreBusyError, StoreError, StoreFullError, StoreUnavailableError
from perdure.files.turns import presentable, said
from perdure.hooks.types import Message, Messages
from perdure.regex import lazy
from perdure.speech.author import Author, author_of, name_of
from perdure.speech.typed import typed
from perdure.store.folder import FILE_MODE, prepare_folder, private_file, sync_folder, write_synced
from perdure.store.scope import Scope
from perdure.text.history import TAIL, mark, new_messages
from perdure.text.timestamps import seconds

CHANGED, UNREADABLE = "changed", "unreadable"
_SUMMED = lazy(rb'(\{.*),"sum":"([0-9a-f]{16})"\}', re.DOTALL)


def header_line(scope: Scope, session: str, now: float, key: bytes) -> bytes:
    """Return the first line of a session's file."""
    # In ASCII, so that an id that has no UTF-8 form is still kept exactly.
    values = {"type": "session", "id": session, "scope": str(scope), "started": now}
    return _summed(json.dumps(values).encode(), key)


def moved_line(line: bytes, scope: Scope, key: bytes) -> bytes:
    """Return a line of a session that is another scope's now: its first line says so."""
    values = values_of(line)
    if values.get("type") != "session":
        return line + b"\n"
    return header_line(scope, values.get("id", ""), values.get("started", 0.0), key)


def line_of(values: Mapping[str, Any], key: bytes) -> bytes:
    """Return the line of a message; a checksum that it brings is made anew."""
    kept = {name: value for name, value in values.items() if name != "sum"}
    return _summed(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"), key)


def values_of(line: bytes) -> dict[str, Any]:
    """Return what a line holds; nothing of one that cannot be read."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def damage(line: bytes, key: bytes) -> str:
    """Return how a line differs from what was written: CHANGED or UNREADABLE; empty: it does not."""
    summed = _SUMMED.fullmatch(line)
    if summed and _sum(summed[1] + b"}", key) == summed[2]:
        return ""
    return CHANGED if values_of(line) else UNREADABLE


def accepted(line: bytes, key: bytes) -> bytes:
    """Return a line that was changed as if it had been written so; nothing of one that cannot be read."""
    how = damage(line, key)
    return b"" if how == UNREADABLE else line_of(values_of(line), key) if how else line + b"\n"


def without(line: bytes, texts: Sequence[str], key: bytes) -> bytes:
    """Return a line without texts, wherever the message or the speaker's name holds them; of a broken one nothing."""
    values = values_of(line)
    if not values:
        return b""
    changed = False
    for field in ("content", "name"):
        value = values.get(field)
        # What stood around a text may form another one once it is gone.
        while isinstance(value, str) and (found := [text for text in texts if text in value]):
            for text in found:
                value = value.replace(text, "")
            values[field], changed = value, True
    return line_of(values, key) if changed else line + b"\n"


def redacted_again(line: bytes, key: bytes) -> bytes:
    """Return a line whose message and speaker's name have passed through the present redactor."""
    values = values_of(line)
    before = {field: values[field] for field in ("content", "name") if isinstance(values.get(field), str)}
    after = {field: presentable(text) for field, text in before.items()}
    if after == before:
        return line + b"\n"
    # With the mark of what stands there now, as a host that resends its history is told from by the same redactor.
    changed = {**values, **after}
    return line_of({**changed, "mark": mark({"role": changed.get("role"), "content": changed.get("content")})}, key)


def _summed(body: bytes, key: bytes) -> bytes:
    return b'%s,"sum":"%s"}\n' % (body[:-1], _sum(body, key))


def _sum(body: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=8, key=key).hexdigest().encode()


PATIENCE = 10.0
"""Seconds to wait for another process that writes."""
WINDOW = 65_536
"""Bytes at the end of a file that are read first to find its last lines."""
MAX_SLUG = 40
_KNOWN = 4096
"""Scopes of which the folder's name is kept, those asked for last."""
EMPTY: Mapping[str, str] = {}

_UNSAFE = lazy(r"[^a-z0-9]+")


class TranscriptLog:
    """The transcripts of a data folder. Usable from any thread and from several processes."""

    def __init__(
        self, home: Path, strip: Callable[[str, str], str] = lambda text, session: text, key: bytes = b""
    ) -> None:
        """Prepare the log; nothing is created before the first message."""
        self._root = home / "transcripts"
        self._strip = strip
        self._key = key
        self._unsynced: set[Path] = set()

    def append(self, scope: Scope, session: str, messages: Messages, now: float) -> int:
        """Add what the file does not hold yet of what the user and the assistant said.

        `now`: epoch seconds; the time of messages that bring none. Returns how many messages were added.
        """
        spoken = [message for message in messages if self._is_speech(message, session)]

        def fresh(lines: Sequence[bytes]) -> Messages:
            marks = (values_of(line).get("mark") for line in lines[-TAIL:])
            known = " ".join(each for each in marks if isinstance(each, str))
            return new_messages(spoken, known, lambda message: mark(self._cleaned(message, session)))[0]

        return self._add(scope, session, now, fresh) if spoken else 0

    def said(
        self, messages: Messages, session: str, now: float, redacted: Mapping[str, str] = EMPTY
    ) -> list[dict[str, Any]]:
        """Return what `append` would write of messages, for `restore`: role, content, time and name.

        `now`: epoch seconds; the time of messages that bring none.
        """
        spoken = (message for message in messages if self._is_speech(message, session))
        return [self._line(message, session, now, redacted) for message in spoken]

    def restore(self, scope: Scope, session: str, messages: Messages, now: float) -> int:
        """Add messages of a turn that a process which is gone may not have recorded.

        A message is there already if the file has it with the same time or a later one.

        `now`: epoch seconds; the time of messages that bring none. Returns how many messages were added.
        """
        spoken = self.said(messages, session, now)

        def missing(lines: Sequence[bytes]) -> Messages:
            latest = {line.get("mark"): seconds(line.get("timestamp")) or 0.0 for line in map(values_of, lines)}
            return [line for line in spoken if latest.get(line["mark"], -math.inf) < line["timestamp"]]

        return self._add(scope, session, now, missing, whole=True) if spoken else 0

    def flush(self) -> None:
        """Wait until the disk has all that was written here."""
        while self._unsynced:
            path = self._unsynced.pop()
            try:
                with self._locked(), suppress(FileNotFoundError):
                    with path.open("rb") as file:
                        os.fsync(file.fileno())
                    for folder in (path.parent, self._root, self._root.parent):
                        sync_folder(folder)
            except StoreError:
                self._unsynced.add(path)
                raise

    def pull(self) -> int:
        """Take over what other machines have recorded; return how many conversations that changed. Here: none."""
        return 0

    def files(self, scope: Scope) -> list[Path]:
        """Return the session files of a scope, by name."""
        return sorted(self.folder(scope).glob("*.jsonl"))

    def move(self, scope: Scope, to: Scope, sessions: Sequence[str] = (), dry_run: bool = False) -> tuple[int, int]:
        """Give sessions of a scope to another scope.

        `sessions`: their ids; none: all. Returns how many were moved, and how many stay because the other scope has a
        session of the same id.
        """
        wanted = {f"{safe_name(session)}.jsonl" for session in sessions}
        goal = self.folder(to)
        paths = [path for path in self.files(scope) if not wanted or path.name in wanted]
        moved = [path for path in paths if not (goal / path.name).exists()]
        for path in moved if not dry_run else ():
            prepare_folder(goal)
            with self._locked():
                path.rename(goal / path.name)
                sync_folder(goal)
            self._rewrite_file(goal / path.name, lambda line: moved_line(line, to, self._key))
        return len(moved), len(paths) - len(moved)

    def scrub(self, texts: Sequence[str]) -> int:
        """Take texts out of every file, wherever a message or a speaker's name holds them.

        Broken lines go too, since nothing can be found in them. The marks stay: without them a host that
        resends its history would bring the texts back.

        Returns how many files changed.
        """
        wanted = sorted({text for text in texts if text}, key=len, reverse=True)
        return self._rewrite(lambda line: without(line, wanted, self._key)) if wanted else 0

    def redact_again(self) -> int:
        """Pass every message and speaker's name through the present redactor; return how many files changed."""
        return self._rewrite(lambda line: redacted_again(line, self._key))

    def damaged(self) -> Iterator[tuple[str, str]]:
        """Yield where a line is not as it was written, and how: "changed", or "unreadable"."""
        for path in sorted(self._root.glob("*/*.jsonl")):
            with suppress(FileNotFoundError):
                # What stands behind the last line end is what a kill left.
                lines = path.read_bytes().split(b"\n")[:-1]
                for number, line in enumerate(lines, 1):
                    if how := damage(line, self._key):
                        yield f"{path.relative_to(self._root.parent).as_posix()} line {number}", how

    def accept(self) -> int:
        """Take lines that were changed as they are, and unreadable ones out; return how many files changed."""
        return self._rewrite(lambda line: accepted(line, self._key))

    def drop_before(self, at: float, dry_run: bool = False) -> list[Path]:
        """Remove the sessions to which nothing was added since `at` (epoch seconds).

        Returns their files; with `dry_run` they stay.
        """
        dropped: list[Path] = []
        for path in sorted(self._root.glob("*/*.jsonl")):
            with self._locked(), suppress(FileNotFoundError):
                if path.stat().st_mtime < at:
                    if not dry_run:
                        path.unlink()
                        path.with_suffix(".tmp").unlink(missing_ok=True)
                        with suppress(OSError):
                            path.parent.rmdir()
                    dropped.append(path)
        return dropped

    def folder(self, scope: Scope) -> Path:
        """Return where the sessions of a scope are kept, or would be."""
        return self._root / _folder_name(scope)

    @property
    def home(self) -> Path:
        """Where the folders of all scopes are, or would be."""
        return self._root

    def _add(
        self, scope: Scope, session: str, now: float, fresh: Callable[[Sequence[bytes]], Messages], whole: bool = False
    ) -> int:
        folder = self.folder(scope)
        prepare_folder(self._root)
        with self._locked():
            path = private_file(prepare_folder(folder) / f"{safe_name(session)}.jsonl")
            with path.open("a+b", buffering=0) as file:
                lines = _last_lines(file, whole)
                added = [line_of(self._line(message, session, now), self._key) for message in fresh(lines)]
                if added:
                    self._unsynced.add(path)
                    _write(file, b"".join(added if lines else [header_line(scope, session, now, self._key), *added]))
        return len(added)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # One lock for all files, held for one file at a time. A new object each time: one that two threads
        # share would let both in.
        try:
            with FileLock(self._root / "transcripts.lock", mode=FILE_MODE, timeout=PATIENCE):
                yield
        except Timeout:
            raise StoreBusyError(
                f"{self._root} was locked by another process for over {PATIENCE:.0f} s; try again"
            ) from None
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise StoreFullError(f"the disk is full; {self._root} was not changed. Free some space") from error
            reason = error.strerror or type(error).__name__
            raise StoreUnavailableError(f"{self._root} cannot be written ({reason}); check the folder") from error

    def _cleaned(self, message: Message, session: str, redacted: Mapping[str, str] = EMPTY) -> Message:
        # The mark is made of this too: a mark of the raw text would let a short secret be guessed from it.
        text = self._said(message, session)
        known = redacted.get(text)
        return {"role": message["role"], "content": presentable(text) if known is None else known.strip()}

    def _said(self, message: Message, session: str) -> str:
        text = self._strip(said(message), session)
        return typed(text) if message["role"] == "user" else text

    def _is_speech(self, message: object, session: str) -> bool:
        if not isinstance(message, Mapping) or author_of(message) not in (Author.USER, Author.ASSISTANT):
            return False
        return bool(self._said(message, session).strip())

    def _line(self, message: Message, session: str, now: float, redacted: Mapping[str, str] = EMPTY) -> dict[str, Any]:
        cleaned = self._cleaned(message, session, redacted)
        line = {**cleaned, "timestamp": time_of(message, now), "mark": mark(cleaned)}
        return line | ({"name": name} if (name := name_of(message)) else {})

    def _rewrite(self, change: Callable[[bytes], bytes]) -> int:
        """Change every line of every session; return how many sessions that changed."""
        if not self._root.is_dir():
            return 0
        with self._locked():
            for leftover in self._root.glob("*/*.tmp"):
                leftover.unlink()
        return sum(self._rewrite_file(path, change) for path in sorted(self._root.glob("*/*.jsonl")))

    def _rewrite_file(self, path: Path, change: Callable[[bytes], bytes]) -> bool:
        with self._locked(), suppress(FileNotFoundError):
            before, times = path.read_bytes(), path.stat()
            after = b"".join(change(line) for line in before.split(b"\n")[:-1])
            if after == before:
                return False
            draft = private_file(path.with_suffix(".tmp"))
            write_synced(draft, after)
            # The age of a session is that of its last message, not of its last scrubbing.
            os.utime(draft, ns=(times.st_atime_ns, times.st_mtime_ns))
            draft.replace(path)
            sync_folder(path.parent)
            return True
        return False


def time_of(message: Mapping[str, Any], otherwise: float) -> float:
    """Return when a message was said, in epoch seconds."""
    at = seconds(message.get("timestamp"))
    return otherwise if at is None else at


@lru_cache(maxsize=_KNOWN)
def _folder_name(scope: Scope) -> str:
    if Scope.parse(str(scope)) != scope:
        raise ScopeError(f"scope {str(scope)[:80]!r} is not in canonical form; build it with Scope.parse")
    return safe_name(str(scope))


def safe_name(exact: str) -> str:
    """Return a file name for any id: what is readable of it, and a hash that tells it from all others."""
    slug = _UNSAFE.sub("-", exact[:256].lower()).strip("-")[:MAX_SLUG].strip("-")
    digest = hashlib.blake2b(exact.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{slug}-{digest}" if slug else digest


def _write(file: FileIO, content: bytes) -> None:
    size = file.seek(0, os.SEEK_END)
    if file.write(content) != len(content):
        file.truncate(size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _last_lines(file: FileIO, whole: bool = False) -> list[bytes]:
    """Return the last whole lines, the last `TAIL` and perhaps more, or all; what a kill left of a line is cut off."""
    size = file.seek(0, os.SEEK_END)
    window = max(size, WINDOW) if whole else WINDOW
    while True:
        start = file.seek(max(0, size - window))
        end = file.read(size - start)
        if not start or end.count(b"\n") > TAIL:
            break
        window *= 4
    finished = end.rfind(b"\n") + 1
    if finished < len(end):
        file.truncate(start + finished)
    return end[:finished].split(b"\n")[:-1]
