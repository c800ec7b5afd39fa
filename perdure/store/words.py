"""The full-text index against the facts: FTS5 checks its own structure, not whether it holds what it should."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

import apsw

from perdure.store.database import Row, run
from perdure.text.normalise import fts_text

COLUMNS = ("text", "entity", "key", "value", "category")
_FACTS = f"SELECT seq, {', '.join(COLUMNS)} FROM facts NOT INDEXED ORDER BY seq"
_AVERAGES = 1
"""The row of FTS5's own data table that holds how many rows and tokens there are; BM25 reads it."""


def damaged_words(connection: apsw.Connection) -> Iterator[str]:
    """Yield what is wrong with the full-text index: fact ids, or the name of a part of the index.

    Every token of every fact is compared, and every word is looked up once.
    """
    stored, documents = _stored(connection)
    sizes: dict[int, bytes] = dict(run(connection, "SELECT id, sz FROM facts_fts_docsize"))
    totals = [0] * len(COLUMNS)
    rows = _rows(connection)
    for row in rows:
        digest, counts = _expected(connection, row[1:])
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        if stored.pop(row[0], 0) != digest or sizes.pop(row[0], None) != _varints(counts):
            yield _name(connection, row[0])
    for seq in sorted(stored.keys() | sizes.keys()):
        yield f"row {seq}"
    averages = run(connection, "SELECT block FROM facts_fts_data WHERE id = ?", (_AVERAGES,))
    if rows and averages != [(_varints([len(rows), *totals]),)]:
        yield "averages"
    if any(run(connection, "SELECT doc FROM facts_terms WHERE term = ?", (term,)) != [(count,)]
           for term, count in documents.items()):  # fmt: skip
        yield "vocabulary"


def rebuild_words(connection: apsw.Connection) -> None:
    """Make the full-text index anew from the facts."""
    run(connection, "INSERT INTO facts_fts (facts_fts) VALUES ('delete-all')")
    sql = f"INSERT INTO facts_fts (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)"
    for seq, *texts in _rows(connection):
        run(connection, sql, (seq, *(fts_text(text or "") for text in texts)))


def _rows(connection: apsw.Connection) -> list[Row]:
    return run(connection, _FACTS)


def _stored(connection: apsw.Connection) -> tuple[dict[int, int], Counter[str]]:
    """Return a checksum of each row's tokens, and how many rows hold each word."""
    run(connection, "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab ('main', 'facts_fts', 'instance')")
    digests: dict[int, int] = {}
    documents: Counter[str] = Counter()
    last: tuple[str, int] | None = None
    for raw, row, column, offset in connection.execute("SELECT CAST(term AS BLOB), doc, col, offset FROM temp.words"):
        term = raw.decode("utf-8", "replace")
        digests[row] = digests.get(row, 0) + _digest(term, column, offset)
        if last != (term, row):
            documents[term] += 1
        last = (term, row)
    return digests, documents


def _expected(connection: apsw.Connection, texts: Sequence[str | None]) -> tuple[int, list[int]]:
    tokenizer = connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
    digest = 0
    counts = []
    for column, text in zip(COLUMNS, texts, strict=True):
        raw = fts_text(text or "").encode()
        tokens = cast(
            "list[str]",
            tokenizer(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False),
        )
        digest += sum(_digest(token, column, offset) for offset, token in enumerate(tokens))
        counts.append(len(tokens))
    return digest, counts


def _digest(term: str, column: str, offset: int) -> int:
    return zlib.crc32(f"{term}\0{column}\0{offset}".encode())


def _name(connection: apsw.Connection, seq: int) -> str:
    return str(run(connection, "SELECT id FROM facts WHERE seq = ?", (seq,))[0][0])


def _varints(numbers: Sequence[int]) -> bytes:
    # As SQLite writes them: seven bits a byte, the highest first.
    written = bytearray()
    for number in numbers:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        written += bytes(reversed(groups))
    return bytes(written)
