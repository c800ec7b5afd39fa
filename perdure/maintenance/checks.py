"""What `verify` looks at, one function each. They read; none changes anything."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from perdure.errors import StoreError
from perdure.files.index import Generations
from perdure.files.rows import SUMMED, body_of, checksum
from perdure.files.shared_log import log_of
from perdure.store.finding import Finding
from perdure.store.folder import FILE_MODE
from perdure.store.inbox_lines import damaged_turns, read
from perdure.store.migrations import STEPS
from perdure.store.rollback_guard import Truth, Verdict, judge
from perdure.store.seals import Damage, damages
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.store.vocabulary import tokenised
from perdure.text.normalise import NORMALISER_VERSION, fts_text

BACKUP = "restore a backup: perdure backup list"
RECOVER = "perdure recover shows what can be recovered"
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
    Truth.MISSING: "missing or empty", Truth.OLDER: "older than before", Truth.FOREIGN: "from another store",
    Truth.REKEYED: "signed with a different key from before", Truth.DAMAGED: "damaged",
}  # fmt: skip
SPACE_STATES = ("active", "building", "retired", "abandoned", "pruned")
COLUMNS = ("text", "entity", "key", "value", "category")
_FACTS = f"SELECT seq, {', '.join(COLUMNS)} FROM facts ORDER BY seq"
_AVERAGES = 1
"""The row of FTS5's own data table that holds how many rows and tokens there are; BM25 reads it."""
HINT = "it is removed; the next search rebuilds it from the files"
REPAIR = "files"
PATIENCE = 10.0
_WHAT = {
    "files": "file changed since it was indexed",
    "chunks": "passage changed since it was indexed",
    "embedding_cache": "vector of a passage changed",
}


@contextmanager
def one_moment(store: Store) -> Iterator[Connection]:
    """Lend a reader that sees the store as it was at the begin of the block, whatever others write meanwhile."""
    with store.database.read() as connection, connection:
        if not store.database.shared:
            # A connection keeps what it knows of the full-text index; only a search looks whether that is old.
            run(connection, "SELECT rowid FROM facts_fts WHERE facts_fts MATCH '\"\"'")
        yield connection


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
        yield Finding("records of purged memories are missing", "tombstones", "the folder has copies", "tombstones")


def lost(verdict: Verdict) -> Iterator[Finding]:
    """Name a truth that is not what its folder remembers."""
    if verdict.lost:
        yield Finding(f"facts.db is {_LOST[verdict.truth]}", verdict.said, RECOVER)


def pages(store: Store) -> Iterator[Finding]:
    """Look at the structure of facts.db, and for rows that belong to nothing."""
    with one_moment(store) as connection:
        for (message,) in run(connection, "PRAGMA integrity_check"):
            if "fts5" in str(message).lower():
                yield Finding("full-text index is damaged", "facts_fts", "it is rebuilt from the memories", "words")
            elif message != "ok":
                yield Finding("facts.db is damaged", str(message), MEND)
        for table, row, parent, _ in run(connection, "PRAGMA foreign_key_check"):
            hint = f"its row in {parent} is missing, so it is removed"
            yield Finding("orphaned row", f"{table} row {row}", hint, "orphans")


def schema(store: Store) -> Iterator[Finding]:
    """Compare tables and indexes with those that this version makes."""
    import apsw

    sql = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
    with closing(apsw.Connection(":memory:")) as fresh:
        for step in STEPS:
            step(fresh)
        wanted: dict[str, str] = dict(run(fresh, sql))
        settings = run(fresh, "SELECT k, v FROM facts_fts_config ORDER BY k")
    with one_moment(store) as connection:
        present: dict[str, str] = dict(run(connection, sql))
        kept = run(connection, "SELECT k, v FROM facts_fts_config ORDER BY k")
        version = run(connection, "SELECT value FROM meta WHERE key = 'normaliser'")
        states = run(connection, "SELECT id, state FROM embeddings")
    for name in sorted(name for name, text in wanted.items() if present.get(name) != text):
        yield Finding("table or index differs from its definition", name, BACKUP)
    if kept != settings:
        yield Finding("settings of the full-text index changed", "facts_fts_config", BACKUP)
    if version != [(str(NORMALISER_VERSION),)]:
        yield Finding("words were normalised by another version", "facts_fts", "the index is rebuilt", "words")
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
            yield Finding("vector length differs from its vector space", fact_id, "it is recreated", "vectors")


def words(store: Store) -> Iterator[Finding]:
    """Compare the full-text index with the facts, token by token."""
    with one_moment(store) as connection:
        for where in damaged_words(connection):
            yield Finding("full-text index differs from the memories", where, "it is rebuilt from them", "words")


def queues(store: Store) -> Iterator[Finding]:
    """Look for what was put aside, and for turns that nobody has captured."""
    with one_moment(store) as connection:
        for fact_id, error in run(connection, "SELECT fact_id, parked FROM outbox WHERE parked IS NOT NULL"):
            yield Finding(f"memory could not be indexed ({error})", fact_id, "it is retried", "outbox")
        for entry_id, error in run(connection, "SELECT entry_id, error FROM inbox_parked"):
            yield Finding(f"turn could not be captured ({error})", entry_id, "it is kept; report the error")
    inbox = store.folder / "inbox"
    for path in sorted(inbox.glob("*.jsonl")):
        yield from _inbox(path)
    for turn in damaged_turns(inbox):
        yield Finding("turn is damaged and set aside", turn.id, "perdure review shows its readable part")


def conversations(store: Store) -> Iterator[Finding]:
    """Look for lines of recorded conversations that are not as they were written."""
    hint = "verify --fix accepts readable lines as they are, and removes the rest"
    try:
        for where, how in log_of(store).damaged():
            what = "has changed" if how == "changed" else f"is {how}"
            yield Finding(f"conversation line {what}", where, hint, "conversations")
    except OSError as error:
        where = Path(error.filename or "transcripts").name
        yield Finding(f"conversation cannot be read: {error.strerror}", where, "fix its permissions", "")


def permissions(store: Store) -> Iterator[Finding]:
    """Look for files that others than the owner can read."""
    for path in private_paths(store.folder):
        if path.stat().st_mode & 0o077:
            where = path.relative_to(store.folder).as_posix()
            yield Finding("readable by other users", where, "the mode is set to 0600 (folders: 0700)", "permissions")


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
    what = {"missing": "is lost", "foreign": "was not written by perdure"}.get(
        damage.how, "has changed since it was written"
    )
    match damage.kind, damage.how:
        case "vector", _:
            hint, repair = "it is recreated from the text", "vectors"
        case "fact" | "link", "foreign":
            hint, repair = "inspect it; --fix accepts it as it is", "seals"
        case "fact", "missing":
            hint, repair = f"{BACKUP}; --fix restores it from LanceDB, or records the loss", "lost"
        case "link", "missing":
            hint, repair = "link the memories again; --fix records the loss", "seals"
        case "journal", _:
            hint, repair = f"authorship is uncertain around this change; {BACKUP}", ""
        case _:
            hint, repair = f"{BACKUP}, or update or forget the memory", ""
    return Finding(f"{damage.kind} {what}", where, hint, repair)


def _inbox(path: Path) -> Iterator[Finding]:
    if read(path).damaged:
        yield Finding("turns in the inbox are damaged", path.name, "they are set aside when a host next starts")
    if path.read_bytes().strip(b"\0") and not _lives(path):
        yield Finding("turns of a process that has exited", path.name, "a running host captures them within a minute")


def _lives(path: Path) -> bool:
    try:
        with FileLock(path.with_suffix(".lock"), mode=FILE_MODE).acquire(timeout=0):
            return False
    except Timeout:
        return True  # its process will see to it
    except OSError:
        return False  # where nothing can be written nobody holds a lock


@dataclass(frozen=True, slots=True)
class WordIndex:
    """A full-text index that keeps no texts."""

    table: str
    terms: str  # the name of the table of its words
    columns: Sequence[str]  # what it has, in order
    compared: Sequence[str]  # those of which is known what should be in them


FACTS = WordIndex("facts_fts", "facts_terms", COLUMNS, COLUMNS)


def damaged_words(connection: Connection) -> Iterator[str]:
    """Yield what is wrong with the full-text index of facts: fact ids, or the name of a part of the index."""
    rows = run(connection, _FACTS)
    known = {row[0] for row in rows}
    for what in differing(connection, FACTS, ((row[0], row[1:]) for row in rows)):
        if what in known:
            yield str(run(connection, "SELECT id FROM facts WHERE seq = ?", (what,))[0][0])
        else:
            yield f"row {what}" if isinstance(what, int) else what


def differing(
    connection: Connection, index: WordIndex, rows: Iterable[tuple[int, Sequence[str | None]]]
) -> Iterator[int | str]:
    """Yield what is wrong with a full-text index: the numbers of rows, or the name of a part of it.

    Every token is compared, and every word is looked up once. The rows are those that should be in the index.
    """
    digests, counts, documents = _stored(connection, index)
    sizes: dict[int, bytes] = dict(run(connection, f"SELECT id, sz FROM {index.table}_docsize"))
    total = len(sizes)
    for row, texts in rows:
        size = _varints([counts[row, column] for column in index.columns])
        if digests.pop(row, 0) != _expected(index, texts) or sizes.pop(row, None) != size:
            yield row
    yield from sorted(digests.keys() | sizes.keys())
    totals = Counter[str]()
    for (_, column), count in counts.items():
        totals[column] += count
    averages = run(connection, f"SELECT block FROM {index.table}_data WHERE id = ?", (_AVERAGES,))
    if total and averages != [(_varints([total, *(totals[column] for column in index.columns)]),)]:
        yield "averages"
    if any(run(connection, f"SELECT doc FROM {index.terms} WHERE term = ?", (term,)) != [(count,)]
           for term, count in documents.items()):  # fmt: skip
        yield "vocabulary"


def rebuild_words(connection: Connection) -> None:
    """Make the full-text index anew from the facts."""
    run(connection, "INSERT INTO facts_fts (facts_fts) VALUES ('delete-all')")
    sql = f"INSERT INTO facts_fts (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)"
    for seq, *texts in run(connection, _FACTS):
        run(connection, sql, (seq, *(fts_text(text or "") for text in texts)))


def _stored(connection: Connection, index: WordIndex) -> tuple[dict[int, int], Counter[tuple[int, str]], Counter[str]]:
    """Return a checksum of each row's compared tokens, how many its columns have, and how many rows each word."""
    words = f"temp.{index.table}_words"
    run(connection, f"CREATE VIRTUAL TABLE IF NOT EXISTS {words} USING fts5vocab ('main', '{index.table}', 'instance')")
    digests: dict[int, int] = {}
    counts: Counter[tuple[int, str]] = Counter()
    documents: Counter[str] = Counter()
    last: tuple[str, int] | None = None
    for raw, row, column, offset in connection.execute(f"SELECT CAST(term AS BLOB), doc, col, offset FROM {words}"):
        term = raw.decode("utf-8", "replace")
        if column in index.compared:
            digests[row] = digests.get(row, 0) + _digest(term, column, offset)
        counts[row, column] += 1
        if last != (term, row):
            documents[term] += 1
        last = (term, row)
    return digests, counts, documents


def _expected(index: WordIndex, texts: Sequence[str | None]) -> int:
    tokens = ((column, tokenised(fts_text(text or ""))) for column, text in zip(index.compared, texts, strict=True))
    return sum(_digest(token, column, offset) for column, of in tokens for offset, token in enumerate(of))


def _digest(term: str, column: str, offset: int) -> int:
    return zlib.crc32(f"{term}\0{column}\0{offset}".encode())


def _varints(numbers: Sequence[int]) -> bytes:
    # As SQLite writes them: seven bits a byte, the highest first.
    written = bytearray()
    for number in numbers:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        written += bytes(reversed(groups))
    return bytes(written)


CHUNKS = WordIndex("chunks_fts", "chunks_terms", ("body", "context"), ("body",))
"""The words around a passage are those of others, cut: of them the counts alone are checked."""
FILES = WordIndex("files_fts", "files_terms", ("body",), ("body",))


def index_of_files(store: Store) -> Iterator[Finding]:
    """Look at the structure of the live index file, and at what is in it: every passage, and every word of it."""
    generations = Generations(store)
    number = generations.number
    if not number:
        return
    name = generations.path(number).name
    try:
        live = generations.live()
        if live is None:
            yield Finding("index of files is missing or unusable", name, HINT, REPAIR)
            return
        with live.database.read() as connection, connection:
            yield from _within(connection, name)
            yield from _words(connection, name)
    except (StoreError, LookupError, TypeError, ValueError) as error:
        # A damaged file may bring anything.
        yield Finding(f"index of files cannot be read ({type(error).__name__})", name, HINT, REPAIR)
    finally:
        generations.close()


def drop_index_of_files(store: Store) -> None:
    """Remove the index, if nobody is writing to it; the next search builds it anew."""
    generations = Generations(store)
    with generations.writing(PATIENCE) as free:
        if free:
            generations.forget()


def _within(connection: Connection, name: str) -> Iterator[Finding]:
    for (message,) in run(connection, "PRAGMA integrity_check"):
        if message != "ok":
            yield Finding("index of files is damaged", f"{name}: {str(message)[:120]}", HINT, REPAIR)
    for table, row, *_ in run(connection, "PRAGMA foreign_key_check"):
        yield Finding("index of files is damaged", f"{name}: {table} row {row}", HINT, REPAIR)
    for table, columns in SUMMED.items():
        for row, stored, *values in connection.execute(f"SELECT rowid, sum, {columns} FROM {table}"):
            if stored != checksum(values):
                yield Finding(_WHAT[table], f"{name}: {table} row {row}", HINT, REPAIR)


def _words(connection: Connection, name: str) -> Iterator[Finding]:
    bodies: dict[int, str] = {}
    whole: dict[int, list[str]] = {file: [] for (file,) in run(connection, "SELECT id FROM files")}
    sql = (
        "SELECT c.id, f.id, f.path, c.section, c.speaker, c.at, c.text FROM chunks c JOIN files f ON f.id = c.file_id"
        " ORDER BY f.id, c.place"
    )
    for chunk, file, *of in connection.execute(sql):
        bodies[chunk] = body_of(*of)
        whole[file].append(bodies[chunk])
    for index, rows in (
        (CHUNKS, ((chunk, [body]) for chunk, body in bodies.items())),
        (FILES, ((file, ["\n".join(of)]) for file, of in whole.items())),
    ):
        for what in differing(connection, index, rows):
            yield Finding("indexed words of a passage differ from it", f"{name}: {index.table} {what}", HINT, REPAIR)
