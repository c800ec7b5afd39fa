"""Full-text indexes against what they are made from: FTS5 checks its structure, not whether it holds what it should."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from perdure.store.sql import Connection, Row, run
from perdure.store.vocabulary import tokenised
from perdure.text.normalise import fts_text

COLUMNS = ("text", "entity", "key", "value", "category")
_FACTS = f"SELECT seq, {', '.join(COLUMNS)} FROM facts NOT INDEXED ORDER BY seq"
_AVERAGES = 1
"""The row of FTS5's own data table that holds how many rows and tokens there are; BM25 reads it."""


@dataclass(frozen=True, slots=True)
class WordIndex:
    """A full-text index that keeps no texts.

    Attributes:
        table: its name.
        terms: the name of the table of its words.
        columns: what it has, in order.
        compared: those of which is known what should be in them.
    """

    table: str
    terms: str
    columns: Sequence[str]
    compared: Sequence[str]


FACTS = WordIndex("facts_fts", "facts_terms", COLUMNS, COLUMNS)


def damaged_words(connection: Connection) -> Iterator[str]:
    """Yield what is wrong with the full-text index of facts: fact ids, or the name of a part of the index."""
    rows = _rows(connection)
    known = {row[0] for row in rows}
    for what in differing(connection, FACTS, ((row[0], row[1:]) for row in rows)):
        yield _name(connection, what) if what in known and isinstance(what, int) else _part(what)


def differing(
    connection: Connection, index: WordIndex, rows: Iterable[tuple[int, Sequence[str | None]]]
) -> Iterator[int | str]:
    """Yield what is wrong with a full-text index: the numbers of rows, or the name of a part of it.

    Every token is compared, and every word is looked up once.

    Args:
        connection: a reader.
        index: which.
        rows: what should be in the compared columns, with the number of each row.
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
    for seq, *texts in _rows(connection):
        run(connection, sql, (seq, *(fts_text(text or "") for text in texts)))


def _rows(connection: Connection) -> list[Row]:
    return run(connection, _FACTS)


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
    digest = 0
    for column, text in zip(index.compared, texts, strict=True):
        tokens = tokenised(fts_text(text or ""))
        digest += sum(_digest(token, column, offset) for offset, token in enumerate(tokens))
    return digest


def _digest(term: str, column: str, offset: int) -> int:
    return zlib.crc32(f"{term}\0{column}\0{offset}".encode())


def _name(connection: Connection, seq: int) -> str:
    return str(run(connection, "SELECT id FROM facts WHERE seq = ?", (seq,))[0][0])


def _part(what: int | str) -> str:
    return f"row {what}" if isinstance(what, int) else what


def _varints(numbers: Sequence[int]) -> bytes:
    # As SQLite writes them: seven bits a byte, the highest first.
    written = bytearray()
    for number in numbers:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        written += bytes(reversed(groups))
    return bytes(written)
