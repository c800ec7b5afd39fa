"""The rows of one index file: what is indexed of a file, what is written for it, and what its vectors are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise

from perdure.embed.base import EmbedderIdentity, Vectors
from perdure.files.chunking import Chunking, chunk_markdown
from perdure.files.options import source_of
from perdure.files.roots import Found, Root, Stamp, memory_day
from perdure.files.turns import read_turns
from perdure.secrets.redact import redact
from perdure.store.sql import Connection, run
from perdure.text.lexicon import MONTHS
from perdure.text.normalise import fts_text
from perdure.text.tokens import estimate_tokens

CONTEXT = 400
"""Characters of the turn before that a turn is also found by."""
PART_TOKENS = 56
MAX_PARTS = 10
"""A text is embedded in up to so many parts of so many tokens, and is as near to a query as its nearest part: one
vector of a whole chunk is near nothing in particular. `python -m bench.notes` prints what that does."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the index."""

    start_line: int  # first line, from 1
    end_line: int  # last line
    section: str  # the headings above it, "A > B"; empty for turns
    text: str  # what is shown
    body: str  # what it is found by, as words
    context: str  # what stood before it, also as words
    speaker: str | None = None  # who said it, for turns
    role: str | None = None  # "user" or "assistant", for turns
    at: float | None = None  # when it was said, epoch seconds

    @property
    def digest(self) -> str:
        """What tells whether the row must be written anew."""
        return _digest(self.section, self.body, self.context, self.text, self.speaker or "", str(self.at))

    @property
    def hash(self) -> str:
        """The key of its vector in the cache."""
        return _digest(embedded(self.section, self.speaker, self.text))


def markdown_entries(text: str, path: str, chunking: Chunking) -> list[Entry]:
    """Return the chunks of a Markdown file, secrets redacted."""
    entries = []
    # Before it is cut: a key of many lines would be in two chunks.
    for chunk in chunk_markdown(redact(text, keep_lines=True).text, chunking):
        body = body_of(path, chunk.section, None, None, chunk.text)
        entries.append(Entry(chunk.start_line, chunk.end_line, chunk.section, chunk.text, body, ""))
    return entries


def turn_entries(data: str, strip: Callable[[str], str], chunking: Chunking) -> list[Entry]:
    """Return the turns of a conversation, long ones in pieces."""
    turns = read_turns(data, strip)
    entries: list[Entry] = []
    for before, turn in pairwise([None, *turns]):
        assert turn is not None  # noqa: S101 - only the first of all is None
        context = before.text[-CONTEXT:] if before else ""
        for piece in pieces(turn.text, chunking.tokens):
            body = body_of("", "", turn.speaker, turn.at, piece)
            row = Entry(turn.line_start, turn.line_end, "", piece, body, context, turn.speaker, turn.role, turn.at)
            entries.append(row)
            context = piece[-CONTEXT:]
    return entries


def body_of(path: str, section: str, speaker: str | None, at: float | None, text: str) -> str:
    """Return the words by which a row is found: of a turn if it has a speaker, else of a Markdown file."""
    if not speaker:
        return f"{_words(path)} {section}\n{text}"
    # In words, as people ask for it.
    day = "" if at is None else in_words(datetime.fromtimestamp(at, UTC).date())
    return f"{day} {speaker}: {text}"


def embedded(section: str, speaker: str | None, text: str) -> str:
    """Return what the vector of a row is made of."""
    return (f"{speaker}: " if speaker else f"{section}\n" if section else "") + text


def parts(text: str, max_tokens: int = PART_TOKENS) -> list[str]:
    """Return a text in the parts that a model of so many tokens can read; what is beyond the last one is left out."""
    return pieces(text, max_tokens)[:MAX_PARTS]


def pieces(text: str, tokens: int) -> list[str]:
    """Cut a text into pieces of at most so many tokens, between words where there are any."""
    if estimate_tokens(text) <= tokens:
        return [text]
    found: list[str] = []
    rest = text
    while rest:
        size = _fitting(rest, tokens)
        if size < len(rest):
            size = max(rest.rfind(" ", size // 2, size), rest.rfind("\n", size // 2, size)) + 1 or size
        found.append(rest[:size].strip())
        rest = rest[size:]
    return [piece for piece in found if piece]


def _fitting(text: str, tokens: int) -> int:
    size = min(len(text), 4 * tokens)
    while size > 1 and (estimated := estimate_tokens(text[:size])) > tokens:
        size = max(1, min(size - 1, size * tokens // estimated))
    return size


def in_words(day: date) -> str:
    """Return a day as people ask for it, in English whatever the process's language is: "7 May 2023"."""
    return f"{day.day} {MONTHS[day.month - 1].title()} {day.year}"


def _words(path: str) -> str:
    day = memory_day(path)
    name = path.rsplit("/", 1)[-1].removesuffix(".md").replace("-", " ").replace("_", " ")
    return in_words(day) if day else name


def _digest(*values: str) -> str:
    return hashlib.blake2b("\0".join(values).encode("utf-8", "replace"), digest_size=16).hexdigest()


SUMMED = {
    "files": "scope, scope_target, kind, root, relative, path, source, hash, session, day, skipped",
    "chunks": (
        "file_id, place, scope, scope_target, source, start_line, end_line, section, speaker, role, at, text, digest,"
        " hash"
    ),
    "embedding_cache": "model, space, hash, vectors",
}
"""The columns under the checksum of a row. The stamp of a file is not: who doubts it reads the file."""
Key = tuple[str, str, str, str]
_NO_VECTOR = "NOT EXISTS (SELECT 1 FROM embedding_cache e WHERE e.space = ? AND e.hash = chunks.hash)"


@dataclass(frozen=True, slots=True)
class FileRow:
    """What the index knows of a file: its row, its stamp, the hash of what it held, and why it is left out if so."""

    id: int
    stamp: Stamp
    hash: str
    skipped: str | None


@dataclass(frozen=True, slots=True)
class Content:
    """What was read of a file."""

    hash: str  # of its bytes; empty if it could not be read
    entries: Sequence[Entry] = ()  # what is indexed of it
    session: str | None = None  # the conversation it holds, if it is one
    day: float | None = None  # the day it is named after, epoch seconds
    skipped: str | None = None  # why nothing of it is indexed, if so


def checksum(values: Sequence[object]) -> bytes:
    """Return what tells that a row is as it was written."""
    return hashlib.blake2b(repr(tuple(values)).encode("utf-8", "surrogatepass"), digest_size=8).digest()


def known(connection: Connection) -> dict[Key, dict[str, FileRow]]:
    """Return what the index knows of the files under each root, read at once: a query for each root takes longer."""
    sql = "SELECT scope, scope_target, kind, root, relative, id, size, mtime_ns, inode, hash, skipped FROM files"
    found: dict[Key, dict[str, FileRow]] = {}
    for scope, target, kind, path, name, row, size, mtime, inode, digest, skipped in run(connection, sql):
        under = found.setdefault((scope, target, kind, path), {})
        under[name] = FileRow(row, (size, mtime, inode), digest, skipped)
    return found


def put_file(connection: Connection, root: Root, found: Found, content: Content, stamp: Stamp) -> int:
    """Make the index hold a file as it is; chunks that are as before stay.

    Returns how many chunks were written.
    """
    sql = (
        f"INSERT INTO files ({SUMMED['files']}, sum, size, mtime_ns, inode)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (scope, scope_target, kind, root, relative) DO UPDATE SET size = excluded.size,"
        " mtime_ns = excluded.mtime_ns, inode = excluded.inode, hash = excluded.hash, session = excluded.session,"
        " day = excluded.day, skipped = excluded.skipped, sum = excluded.sum RETURNING id"
    )
    named = (*key(root), found.relative, root.label(found.relative), source_of(root))
    values = (*named, content.hash, content.session, content.day, content.skipped)
    [(file_id,)] = run(connection, sql, (*values, checksum(values), *stamp))
    return _put_chunks(connection, root, file_id, content.entries)


def touch(connection: Connection, file_id: int, stamp: Stamp) -> None:
    """Note the stamp of a file whose bytes are as before."""
    run(connection, "UPDATE files SET size = ?, mtime_ns = ?, inode = ? WHERE id = ?", (*stamp, file_id))


def drop_file(connection: Connection, file_id: int) -> None:
    """Take a file out of the index."""
    _drop_chunks(connection, [row[0] for row in run(connection, "SELECT id FROM chunks WHERE file_id = ?", (file_id,))])
    run(connection, "DELETE FROM files_fts WHERE rowid = ?", (file_id,))
    run(connection, "DELETE FROM files WHERE id = ?", (file_id,))


def drop_other_roots(connection: Connection, roots: Sequence[Root]) -> int:
    """Take out all files that are under none of the roots; return how many."""
    wanted = {key(root) for root in roots}
    rows = run(connection, "SELECT id, scope, scope_target, kind, root FROM files")
    gone = [row for row, *of in rows if tuple(of) not in wanted]
    for file_id in gone:
        drop_file(connection, file_id)
    return len(gone)


def pending(connection: Connection, space: str, limit: int) -> dict[str, str]:
    """Return texts that have no vector in this space yet, those written last first: by hash, what is to be embedded."""
    # By the index, which is a tenth of the table.
    newest = f"SELECT id FROM chunks INDEXED BY chunks_hash WHERE {_NO_VECTOR} ORDER BY id DESC LIMIT ?"
    sql = f"SELECT hash, section, speaker, text FROM chunks WHERE id IN ({newest}) ORDER BY id DESC"
    return {digest: embedded(*rest) for digest, *rest in run(connection, sql, (space, limit))}


def pending_count(connection: Connection, space: str) -> int:
    """Return how many chunks have no vector in this space yet."""
    return int(run(connection, f"SELECT count(*) FROM chunks WHERE {_NO_VECTOR}", (space,))[0][0])


def put_vectors(connection: Connection, identity: EmbedderIdentity, digest: str, vectors: Vectors) -> None:
    """Keep the vectors of a text, one for each part of it: float32 of shape (parts, dims)."""
    values = (identity.model, identity.id, digest, vectors.astype("<f4").tobytes())
    sql = f"INSERT OR REPLACE INTO embedding_cache ({SUMMED['embedding_cache']}, sum) VALUES (?, ?, ?, ?, ?)"
    run(connection, sql, (*values, checksum(values)))


def copy_cache(source: Connection, target: Connection) -> None:
    """Take over the vectors of another index file; those that no chunk needs are trimmed later."""
    columns = f"{SUMMED['embedding_cache']}, sum"
    vectors = source.execute(f"SELECT {columns} FROM embedding_cache ORDER BY seq")
    target.executemany(f"INSERT OR IGNORE INTO embedding_cache ({columns}) VALUES (?, ?, ?, ?, ?)", vectors)


def trim_cache(connection: Connection, keep: int) -> int:
    """Drop the oldest vectors of texts that are in no file any more, beyond so many; return how many went."""
    # By the index too: with the vectors the table has 80 MB per 50,000 rows.
    sql = (
        "DELETE FROM embedding_cache WHERE seq IN (SELECT e.seq FROM embedding_cache e INDEXED BY embedding_cache_hash"
        " WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.hash = e.hash) ORDER BY e.seq DESC LIMIT -1 OFFSET ?)"
    )
    run(connection, sql, (keep,))
    return connection.changes()


def key(root: Root) -> Key:
    """Return what tells a root from all others."""
    return root.scope.kind, root.scope.target, root.kind, str(root.path)


def _put_chunks(connection: Connection, root: Root, file_id: int, entries: Sequence[Entry]) -> int:
    rows = run(connection, "SELECT id, digest, place, start_line, end_line FROM chunks WHERE file_id = ?", (file_id,))
    there: dict[str, list[tuple[int, ...]]] = {}
    for chunk, digest, *where in rows:
        there.setdefault(digest, []).append((chunk, *where))
    written = 0
    for place, entry in enumerate(entries):
        same = there.get(entry.digest)
        if same:
            chunk, *where = same.pop(0)
            if where != [place, entry.start_line, entry.end_line]:
                sql = "UPDATE chunks SET place = ?, start_line = ?, end_line = ?, sum = ? WHERE id = ?"
                total = checksum(_values(root, file_id, place, entry))
                run(connection, sql, (place, entry.start_line, entry.end_line, total, chunk))
        else:
            _insert(connection, root, file_id, place, entry)
            written += 1
    _drop_chunks(connection, [chunk[0] for left in there.values() for chunk in left])
    run(connection, "DELETE FROM files_fts WHERE rowid = ?", (file_id,))
    body = fts_text("\n".join(entry.body for entry in entries))
    run(connection, "INSERT INTO files_fts (rowid, body) VALUES (?, ?)", (file_id, body))
    return written


def _insert(connection: Connection, root: Root, file_id: int, place: int, entry: Entry) -> None:
    values = _values(root, file_id, place, entry)
    marks = ", ".join("?" * (len(values) + 1))
    run(connection, f"INSERT INTO chunks ({SUMMED['chunks']}, sum) VALUES ({marks})", (*values, checksum(values)))
    words = (connection.last_insert_rowid(), fts_text(entry.body), fts_text(entry.context))
    run(connection, "INSERT INTO chunks_fts (rowid, body, context) VALUES (?, ?, ?)", words)


def _values(root: Root, file_id: int, place: int, entry: Entry) -> tuple[object, ...]:
    # As they come back from the database: a whole number there is a float in a column of floats.
    at = None if entry.at is None else float(entry.at)
    return (
        file_id, place, root.scope.kind, root.scope.target, source_of(root), entry.start_line, entry.end_line,
        entry.section, entry.speaker, entry.role, at, entry.text, entry.digest, entry.hash,
    )  # fmt: skip


def _drop_chunks(connection: Connection, ids: Sequence[int]) -> None:
    connection.executemany("DELETE FROM chunks_fts WHERE rowid = ?", [(chunk,) for chunk in ids])
    connection.executemany("DELETE FROM chunks WHERE id = ?", [(chunk,) for chunk in ids])
