"""The record of conversations where several machines share a store: the database has it, and each machine files of it.

The files are what the index reads, and are written anew from the database when a conversation has changed. So a
conversation that went on at one machine is found at another, and a machine whose disk is gone has lost none.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from perdure.files.transcript_log import TranscriptLog, header_line, line_of, safe_name, time_of, values_of
from perdure.hooks.types import Messages
from perdure.store import conversation_lines as said
from perdure.store.folder import prepare_folder, private_file
from perdure.store.scope import Scope
from perdure.store.store import Store
from perdure.text.fence import strip_fenced
from perdure.text.history import TAIL

SEEN = "seen"
"""The file that says up to which change of the database the files have come."""
BATCH = 100
"""Conversations that are brought up to date at a time."""


def log_of(store: Store, strip: Callable[[str, str], str] | None = None) -> TranscriptLog:
    """Return the record of a store's conversations.

    `strip`: see `TranscriptLog`; None: nothing is recorded with it.
    """
    stripped = strip or (lambda text, session: strip_fenced(text, store.key, session))
    if store.database.shared:
        return SharedLog(store, stripped)
    return TranscriptLog(store.folder, stripped, store.key)


class SharedLog(TranscriptLog):
    """The record in the database, and this machine's files of it. Usable from any thread."""

    def __init__(self, store: Store, strip: Callable[[str, str], str], folder: Path | None = None) -> None:
        """Keep the files in the store's folder, or in another one."""
        super().__init__(folder or store.folder, strip, store.key)
        self._store = store

    def flush(self) -> None:
        """Nothing is to be waited for: the database has it."""

    def move(self, scope: Scope, to: Scope, sessions: Sequence[str] = (), dry_run: bool = False) -> tuple[int, int]:
        """Give sessions of a scope to another scope; see `TranscriptLog.move`."""
        self.folder(scope), self.folder(to)
        moved = stayed = 0
        with self._store.database.write(keep=not dry_run) as connection:
            for session in said.sessions(connection, scope):
                if not sessions or session in sessions:
                    done = said.move(connection, scope, session, to)
                    moved, stayed = moved + done, stayed + (not done)
        self.pull()
        return moved, stayed

    def drop_before(self, at: float, dry_run: bool = False) -> list[Path]:
        """Remove the sessions to which nothing was added since `at`; see `TranscriptLog.drop_before`."""
        with self._store.database.write(keep=not dry_run) as connection:
            gone = said.before(connection, at)
            for scope, session in gone:
                said.drop(connection, scope, session)
        self.pull()
        return [self._file(scope, session) for scope, session in gone]

    def pull(self) -> int:
        """Bring the files up to date with the database; return how many conversations had changed."""
        pulled = 0
        while True:
            with self._store.database.read() as connection:
                if not said.since(connection, self._seen(), 1):
                    return pulled
            prepare_folder(self._root)
            # Read under the lock: else who read first might write last, and put an older state into the files.
            with self._locked(), self._store.database.read() as connection:
                changed = said.since(connection, self._seen(), BATCH)
                for each in changed:
                    self._put(each, said.lines(connection, each.scope, each.session))
                if changed:
                    private_file(self._root / SEEN).write_text(str(changed[-1].change), encoding="ascii")
            pulled += len(changed)

    def write_out(self) -> int:
        """Write the files of all conversations anew, and remove those of others; return how many there are."""
        forget_seen(self._root.parent)
        self.pull()
        kept = {self._file(scope, session) for scope, session in self._store.database.query(said.before, math.inf)}
        for path in self._root.glob("*/*.jsonl"):
            if path not in kept and _conversation(path) is not None:
                path.unlink()
        return len(kept)

    def _add(
        self, scope: Scope, session: str, now: float, fresh: Callable[[Sequence[bytes]], Messages], whole: bool = False
    ) -> int:
        self.folder(scope)
        with self._store.database.write() as connection:
            lines = said.lines(connection, scope, session, None if whole else TAIL)
            written = (line_of(self._line(message, session, now), self._key) for message in fresh(lines))
            added = [line.removesuffix(b"\n") for line in written]
            if added:
                said.add(connection, scope, session, added, now)
        self.pull()
        return len(added)

    def _rewrite(self, change: Callable[[bytes], bytes]) -> int:
        changed = self._store.database.apply(said.rewrite, change)
        self.pull()
        return changed

    def _put(self, conversation: said.Conversation, lines: Sequence[bytes]) -> None:
        """Write a conversation's file as the database has it, or remove it. Under the lock."""
        path = self._file(conversation.scope, conversation.session)
        if not lines:
            path.unlink(missing_ok=True)
            return
        prepare_folder(path.parent)
        started = time_of(values_of(lines[0]), conversation.at)
        header = header_line(conversation.scope, conversation.session, started, self._key)
        draft = private_file(path.with_suffix(".tmp"))
        draft.write_bytes(header + b"".join(line + b"\n" for line in lines))
        os.utime(draft, (conversation.at, conversation.at))
        draft.replace(path)

    def _file(self, scope: Scope, session: str) -> Path:
        return self.folder(scope) / f"{safe_name(session)}.jsonl"

    def _seen(self) -> int:
        try:
            return int((self._root / SEEN).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0


def forget_seen(folder: Path) -> None:
    """Have the files of a folder written anew: the numbers of changes that it has seen are another database's."""
    (folder / "transcripts" / SEEN).unlink(missing_ok=True)


def take_over(store: Store, home: Path) -> int:
    """Have the database keep the conversations that a folder has recorded, as they are there, and no others.

    Other machines learn of each that changed, or is gone.

    Returns how many the folder has.
    """
    log = SharedLog(store, lambda text, session: text, home)
    known = {log._file(*conversation): conversation for conversation in store.database.query(said.before, math.inf)}
    kept = 0
    for path in sorted((home / "transcripts").glob("*/*.jsonl")):
        # The first line may be damaged, or gone with what was purged.
        found = _conversation(path) or known.get(path)
        lines = _messages(path)
        if found is None or not lines:
            continue
        known.pop(log._file(*found), None)
        kept += 1
        with store.database.write() as connection:
            if said.lines(connection, *found) != lines:
                said.drop(connection, *found)
                said.add(connection, *found, lines, path.stat().st_mtime)
    with store.database.write() as connection:
        for scope, session in known.values():
            said.drop(connection, scope, session)
    return kept


def _conversation(path: Path) -> tuple[Scope, str] | None:
    """Return which conversation a file is of, by its first line; None: it does not tell."""
    with path.open("rb") as file:
        about = values_of(file.readline())
    return (Scope.parse(str(about["scope"])), str(about["id"])) if about.get("type") == "session" else None


def _messages(path: Path) -> list[bytes]:
    """Return the lines of a file behind its first one, as a database takes them: in UTF-8."""
    # What stands behind the last line end is what a kill left.
    lines = path.read_bytes().split(b"\n")[:-1]
    told = [line for line in lines if line and values_of(line).get("type") != "session"]
    return [line.decode("utf-8", "replace").encode() for line in told]
