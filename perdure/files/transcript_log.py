"""The session files that we keep for hosts that keep none.

One JSONL file per session, in one folder per scope. A line carries the mark of its message, so the file
is its own cursor: what a host resends is told from what is new by the last lines of the file itself.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from perdure.errors import ScopeError, StoreBusyError, StoreFullError, StoreUnavailableError
from perdure.files.turns import presentable, said, speaker_name
from perdure.hooks.types import Message, Messages
from perdure.store.folder import FILE_MODE, prepare_folder, private_file, sync_folder
from perdure.store.scope import Scope
from perdure.text.history import TAIL, mark, new_messages
from perdure.text.moments import seconds

PATIENCE = 10.0
"""Seconds to wait for another process that writes."""
WINDOW = 65_536
"""Bytes at the end of a file that are read first to find its last lines."""
MAX_SLUG = 40

_UNSAFE = re.compile(r"[^a-z0-9]+")


class TranscriptLog:
    """The transcripts of a data folder. Usable from any thread and from several processes."""

    def __init__(self, home: Path, strip: Callable[[str, str], str] = lambda text, session: text) -> None:
        """Prepare the log; nothing is created before the first message.

        Args:
            home: the data folder; the transcripts are in `transcripts/` in it.
            strip: takes the blocks that we put into a session out of a text of that session.
        """
        self._root = home / "transcripts"
        self._strip = strip

    def append(self, scope: Scope, session: str, messages: Messages, now: float) -> int:
        """Add what the file does not hold yet of what the user and the assistant said.

        Args:
            scope: to whom the session belongs.
            session: the host's id of it; any string.
            messages: the history, whole or in part.
            now: epoch seconds; the time of messages that bring none.

        Returns:
            How many messages were added.

        Raises:
            ScopeError: the scope is malformed.
            StoreFullError: the disk is full; nothing was added.
            StoreBusyError: another process held the lock for too long.
            StoreUnavailableError: the file cannot be written.
        """
        folder = self.folder(scope)
        spoken = [message for message in messages if _is_speech(message)]
        if not spoken:
            return 0
        prepare_folder(self._root)
        with self._locked():
            path = private_file(prepare_folder(folder) / f"{safe_name(session)}.jsonl")
            with path.open("a+b", buffering=0) as file:
                lines = _last_lines(file)
                known = " ".join(_marks(lines))
                fresh, _ = new_messages(spoken, known, lambda message: mark(self._cleaned(message, session)))
                added = [self._line(message, session, now) for message in fresh]
                if not lines:
                    added.insert(0, _header(scope, session, now))
                if fresh:
                    _write(file, b"".join(added))
        return len(fresh)

    def files(self, scope: Scope) -> list[Path]:
        """Return the session files of a scope, by name.

        Raises:
            ScopeError: the scope is malformed.
        """
        return sorted(self.folder(scope).glob("*.jsonl"))

    def scrub(self, texts: Sequence[str]) -> int:
        """Take texts out of every file, wherever a message or a speaker's name holds them.

        Broken lines go too, since nothing can be found in them. The marks stay: without them a host that
        resends its history would bring the texts back.

        Returns:
            How many files changed.

        Raises:
            StoreError: a file could not be rewritten; it is as it was.
        """
        wanted = sorted({text for text in texts if text}, key=len, reverse=True)
        if not wanted or not self._root.is_dir():
            return 0
        return self._rewrite(lambda line: _without(line, wanted))

    def redact_again(self) -> int:
        """Pass every message and speaker's name through the present redactor; return how many files changed.

        Raises:
            StoreError: a file could not be rewritten; it is as it was.
        """
        return self._rewrite(_redacted) if self._root.is_dir() else 0

    def drop_before(self, at: float, dry_run: bool = False) -> list[Path]:
        """Remove the sessions to which nothing was added since `at` (epoch seconds).

        Returns:
            Their files; with `dry_run` they stay.

        Raises:
            StoreError: a file could not be removed.
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
        """Return where the sessions of a scope are kept, or would be.

        Raises:
            ScopeError: the scope is malformed.
        """
        if Scope.parse(str(scope)) != scope:
            raise ScopeError(f"scope {str(scope)[:80]!r} is not in its exact form; build it with Scope.parse")
        return self._root / safe_name(str(scope))

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

    def _cleaned(self, message: Message, session: str) -> Message:
        # The mark is made of this too: a mark of the raw text would let a short secret be guessed from it.
        return {"role": message["role"], "content": presentable(self._strip(said(message), session))}

    def _line(self, message: Message, session: str, now: float) -> bytes:
        cleaned = self._cleaned(message, session)
        at = seconds(message.get("timestamp"))
        line = {**cleaned, "timestamp": now if at is None else at, "mark": mark(cleaned)}
        if name := speaker_name(message):
            line["name"] = name
        return _encoded(line)

    def _rewrite(self, change: Callable[[bytes], bytes]) -> int:
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
            with draft.open("wb") as file:
                file.write(after)
                file.flush()
                os.fsync(file.fileno())
            # The age of a session is that of its last message, not of its last scrubbing.
            os.utime(draft, ns=(times.st_atime_ns, times.st_mtime_ns))
            draft.replace(path)
            sync_folder(path.parent)
            return True
        return False


def safe_name(exact: str) -> str:
    """Return a file name for any id: what is readable of it, and a hash that tells it from all others."""
    slug = _UNSAFE.sub("-", exact[:256].lower()).strip("-")[:MAX_SLUG].strip("-")
    digest = hashlib.blake2b(exact.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{slug}-{digest}" if slug else digest


def _is_speech(message: object) -> bool:
    return isinstance(message, Mapping) and message.get("role") in ("user", "assistant") and bool(said(message).strip())


def _header(scope: Scope, session: str, now: float) -> bytes:
    # In ASCII, so that an id that has no UTF-8 form is still kept exactly.
    return json.dumps({"type": "session", "id": session, "scope": str(scope), "started": now}).encode() + b"\n"


def _encoded(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _write(file: FileIO, content: bytes) -> None:
    # Not synced: capture has acknowledged the turn by then, so a power loss costs a search the last lines
    # and loses no fact.
    size = file.seek(0, os.SEEK_END)
    if file.write(content) != len(content):
        file.truncate(size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _last_lines(file: FileIO) -> list[bytes]:
    """Return the last whole lines, the last `TAIL` and perhaps more; what a kill left of a line is cut off."""
    size = file.seek(0, os.SEEK_END)
    window = WINDOW
    while True:
        start = file.seek(max(0, size - window))
        end = file.read(size - start)
        if not start or end.count(b"\n") > TAIL:
            break
        window *= 4
    whole = end.rfind(b"\n") + 1
    if whole < len(end):
        file.truncate(start + whole)
    return end[:whole].split(b"\n")[:-1]


def _marks(lines: Sequence[bytes]) -> list[str]:
    records = [_record(line) for line in lines[-TAIL:]]
    return [record["mark"] for record in records if isinstance(record.get("mark"), str)]


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _without(line: bytes, texts: Sequence[str]) -> bytes:
    record = _record(line)
    if not record:
        return b""
    changed = False
    for field in ("content", "name"):
        value = record.get(field)
        # What stood around a text may form another one once it is gone.
        while isinstance(value, str) and (found := [text for text in texts if text in value]):
            for text in found:
                value = value.replace(text, "")
            record[field], changed = value, True
    return _encoded(record) if changed else line + b"\n"


def _redacted(line: bytes) -> bytes:
    record = _record(line)
    before = {field: record[field] for field in ("content", "name") if isinstance(record.get(field), str)}
    after = {field: presentable(text) for field, text in before.items()}
    if after == before:
        return line + b"\n"
    # With the mark of what stands there now, as a host that resends its history is told from by the same redactor.
    changed = {**record, **after}
    return _encoded({**changed, "mark": mark({"role": changed.get("role"), "content": changed.get("content")})})
