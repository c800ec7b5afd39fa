"""What `verify` looks at, one function each. They read; none changes anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from perdure.files.shared_log import log_of
from perdure.maintenance.fts_check import damaged_words
from perdure.store.finding import Finding
from perdure.store.folder import FILE_MODE
from perdure.store.inbox_lines import damaged_turns, read
from perdure.store.migrations import STEPS
from perdure.store.rollback_guard import Truth, Verdict, judge
from perdure.store.seals import Damage, damages
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.text.normalise import NORMALISER_VERSION

BACKUP = "restore a backup: perdure backup list"
RECOVER = "perdure recover shows what can be brought back"
MEND = f"{RECOVER}; or {BACKUP}"
UNSOUND = (BACKUP, RECOVER, MEND)
"""What there is to do where facts.db itself cannot be trusted."""
PRIVATE = ("facts.db", "index-", "vault.db", "inbox", "lancedb", "backups", "exports", "presence", "remembered.json",
           "worker.lock", "leader.lock")  # fmt: skip
"""What names of our files in the data folder begin with."""
WAL_FIXED = (3, 51, 3)
WAL_BACKPORTS = ((3, 44, 6), (3, 50, 7))
"""Versions of SQLite in which a reset of the log cannot lose pages that another process has just written."""
_LOST = {
    Truth.MISSING: "missing or empty", Truth.OLDER: "older than it was", Truth.FOREIGN: "of another store",
    Truth.REKEYED: "under another key than it had", Truth.DAMAGED: "damaged",
}  # fmt: skip
SPACE_STATES = ("active", "building", "retired", "abandoned", "pruned")


@contextmanager
def one_moment(store: Store) -> Iterator[Connection]:
    """Lend a reader that sees the store as it was at the begin of the block, whatever others write meanwhile."""
    with store.database.read() as connection:
        if store.database.shared:
            yield connection  # it reads the state of one moment in any case
            return
        run(connection, "BEGIN")
        try:
            # A connection keeps what it knows of the full-text index; only a search looks whether that is old.
            run(connection, "SELECT rowid FROM facts_fts WHERE facts_fts MATCH '\"\"'")
            yield connection
        finally:
            run(connection, "ROLLBACK")


def truth(store: Store) -> Iterator[Finding]:
    """See that facts.db is the one that the folder remembers, and the one that was opened."""
    if store.database.displaced:
        found = list(lost(judge(store.folder)))
        close = "close every program that uses this memory"
        yield from found or [Finding("facts.db was replaced while it was open", "facts.db", close)]
        return
    with store.database.read() as connection:
        verdict = judge(store.folder, connection)
        buried = {row[0] for row in run(connection, "SELECT key FROM tombstones")}
    yield from lost(verdict)
    if not verdict.lost and verdict.remembered is not None and verdict.remembered.tombstones - buried:
        yield Finding("notes of what was purged are missing", "tombstones", "the folder has a copy", "tombstones")


def lost(verdict: Verdict) -> Iterator[Finding]:
    """Name a truth that is not what its folder remembers."""
    if verdict.lost:
        yield Finding(f"facts.db is {_LOST[verdict.truth]}", verdict.said, RECOVER)


def pages(store: Store) -> Iterator[Finding]:
    """Look at the structure of facts.db, and for rows that belong to nothing."""
    with one_moment(store) as connection:
        for (message,) in run(connection, "PRAGMA integrity_check"):
            if "fts5" in str(message).lower():
                yield Finding("full-text index is damaged", "facts_fts", "it is built anew from the facts", "words")
            elif message != "ok":
                yield Finding("facts.db is damaged", str(message), MEND)
        for table, row, parent, _ in run(connection, "PRAGMA foreign_key_check"):
            hint = f"it belongs to a row of {parent} that is not there, and is removed"
            yield Finding("orphaned row", f"{table} row {row}", hint, "orphans")


def schema(store: Store) -> Iterator[Finding]:
    """Compare tables and indexes with those that this version makes."""
    import apsw

    sql = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
    fresh = apsw.Connection(":memory:")
    try:
        for step in STEPS:
            step(fresh)
        wanted: dict[str, str] = dict(run(fresh, sql))
        settings = run(fresh, "SELECT k, v FROM facts_fts_config ORDER BY k")
    finally:
        fresh.close()
    with one_moment(store) as connection:
        present: dict[str, str] = dict(run(connection, sql))
        kept = run(connection, "SELECT k, v FROM facts_fts_config ORDER BY k")
        version = run(connection, "SELECT value FROM meta WHERE key = 'normaliser'")
        states = run(connection, "SELECT id, state FROM embeddings")
    for name in sorted(name for name, text in wanted.items() if present.get(name) != text):
        yield Finding("table or index is not as it was made", name, BACKUP)
    if kept != settings:
        yield Finding("settings of the full-text index are changed", "facts_fts_config", BACKUP)
    if version != [(str(NORMALISER_VERSION),)]:
        yield Finding("words are normalised in another way", "facts_fts", "the index is built anew", "words")
    for space, state in states:
        if state not in SPACE_STATES:
            yield Finding(f"vector space has the unknown state {state[:20]!r}", space, BACKUP)


def content(store: Store) -> Iterator[Finding]:
    """Compare every fact, vector, link and journal row with its seal."""
    with one_moment(store) as connection:
        for damage in damages(connection):
            yield _of(damage)
        sql = (
            "SELECT v.fact_id FROM vectors v JOIN embeddings e ON e.id = v.embedding_id"
            " WHERE length(v.vector) <> 4 * e.dims"
        )
        for (fact_id,) in run(connection, sql):
            yield Finding("vector has another length than its space", fact_id, "it is made anew", "vectors")


def words(store: Store) -> Iterator[Finding]:
    """Compare the full-text index with the facts, token by token."""
    with one_moment(store) as connection:
        for where in damaged_words(connection):
            yield Finding("full-text index differs from the facts", where, "it is built anew from them", "words")


def queues(store: Store) -> Iterator[Finding]:
    """Look for what was put aside, and for turns that nobody has captured."""
    with one_moment(store) as connection:
        for fact_id, error in run(connection, "SELECT fact_id, parked FROM outbox WHERE parked IS NOT NULL"):
            yield Finding(f"fact could not be indexed ({error})", fact_id, "it is tried again", "outbox")
        for entry_id, error in run(connection, "SELECT entry_id, error FROM inbox_parked"):
            yield Finding(f"turn could not be captured ({error})", entry_id, "it is kept; report it with the error")
    inbox = store.folder / "inbox"
    for path in sorted(inbox.glob("*.jsonl")):
        yield from _inbox(path)
    for turn in damaged_turns(inbox):
        yield Finding("turn is damaged and kept aside", turn.id, "perdure inbox shows what can be read of it")


def conversations(store: Store) -> Iterator[Finding]:
    """Look for lines of recorded conversations that are not as they were written."""
    hint = "verify --fix takes what can be read as it is now, and the rest out"
    try:
        for where, how in log_of(store).damaged():
            yield Finding(f"line of a conversation is {how}", where, hint, "conversations")
    except OSError as error:
        where = Path(error.filename or "transcripts").name
        yield Finding(f"conversation cannot be read: {error.strerror}", where, "see to it that it can be read", "")


def permissions(store: Store) -> Iterator[Finding]:
    """Look for files that others than the owner can read."""
    for path in private_paths(store.folder):
        if path.stat().st_mode & 0o077:
            where = path.relative_to(store.folder).as_posix()
            yield Finding("others can read it", where, "its mode is set to 0600, a folder's to 0700", "permissions")


def sqlite_release() -> str:
    """Return the release of SQLite that is in use."""
    import apsw

    return apsw.sqlite_lib_version()


def sqlite_version(store: Store) -> Iterator[Finding]:
    """See that SQLite is not one with a known fault in its log."""
    del store
    text = sqlite_release()
    version = tuple(int(part) for part in text.split("."))
    if version < WAL_FIXED and not any(fixed <= version < (*fixed[:2], 99) for fixed in WAL_BACKPORTS):
        yield Finding("SQLite may lose pages when several processes write", text, "upgrade the package apsw")


def private_paths(folder: Path) -> Iterator[Path]:
    """Yield all files and folders of ours in a data folder. None where the system has no owner modes."""
    if os.name != "posix":
        return
    for first in sorted(folder.iterdir()):
        if first.name.startswith(PRIVATE) and not first.is_symlink():
            yield first
            yield from (path for path in sorted(first.rglob("*")) if not path.is_symlink())


def _of(damage: Damage) -> Finding:
    where = f"{damage.id} {damage.part}".strip()
    what = {"missing": "lost", "foreign": "not written by perdure"}.get(damage.how, "changed since it was written")
    match damage.kind, damage.how:
        case "vector", _:
            hint, repair = "it is made anew from the text", "vectors"
        case "fact" | "link", "foreign":
            hint, repair = "look at it; a repair accepts it as it is", "seals"
        case "fact", "missing":
            hint, repair = f"{BACKUP}; a repair brings back what LanceDB has of it, else notes the loss", "lost"
        case "link", "missing":
            hint, repair = "link the facts again; a repair notes the loss", "seals"
        case "journal", _:
            hint, repair = f"who changed what is unsure around this change; {BACKUP}", ""
        case _:
            hint, repair = f"{BACKUP}, or update or forget the fact", ""
    return Finding(f"{damage.kind} is {what}", where, hint, repair)


def _inbox(path: Path) -> Iterator[Finding]:
    if read(path).damaged:
        yield Finding("turns in the inbox are damaged", path.name, "the next start of a host keeps them aside")
    if path.read_bytes().strip(b"\0") and not _lives(path):
        yield Finding("turns of a process that has ended", path.name, "the next start of a host takes them in")


def _lives(path: Path) -> bool:
    try:
        with FileLock(path.with_suffix(".lock"), mode=FILE_MODE).acquire(timeout=0):
            return False
    except Timeout:
        return True  # its process will see to it
    except OSError:
        return False  # where nothing can be written nobody holds a lock
