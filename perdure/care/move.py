"""The truth of a store, copied row by row into another engine and compared there. After a kill it goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.errors import InputError, StoreBusyError, StoreCorruptError
from perdure.store.fact import COLUMNS
from perdure.store.journal import newest
from perdure.store.moved import MOVED
from perdure.store.seals import damages
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.store.transaction import INDEX
from perdure.text.normalise import fts_text

BATCH = 500
"""Rows that are copied in one transaction: a kill loses the work on so many at the most."""
PROGRESS, SOURCE = "move:", "move source"
_OWN = ("store_key", "key_name", MOVED, SOURCE)
"""What a store knows about itself alone."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is copied.

    Attributes:
        name: its name, in every engine.
        key: the column in whose order it is copied.
        columns: all that are copied.
        only: which rows.
    """

    name: str
    key: str
    columns: tuple[str, ...]
    only: str = "1 = 1"


TABLES = (
    Table("meta", "key", ("key", "value"), f"key NOT IN ({', '.join(map(repr, _OWN))}) AND key NOT LIKE 'lance%'"
          " AND key NOT LIKE 'index_generation%'"
          f" AND key NOT LIKE '{PROGRESS}%'"),
    Table("facts", "seq", ("seq", *COLUMNS, "entity_folded", "key_folded")),
    Table("memory_links", "id", ("id", "source_fact_id", "target_fact_id", "link_type", "strength", "created_at")),
    Table("embeddings", "id", ("id", "identity", "dims", "state")),
    Table("vectors", "rowid", ("fact_id", "embedding_id", "vector")),
    Table("journal", "seq", ("seq", "at", "action", "fact_id", "other_id", "channel", "host", "session", "batch",
          "detail", "seal")),
    Table("inbox_done", "entry_id", ("entry_id", "at")),
    Table("inbox_parked", "entry_id", ("entry_id", "at", "error", "entry")),
    Table("cursors", "session", ("session", "tail", "at")),
    Table("receipts", "id", ("id", "at", "session", "scope", "body", "details")),
    Table("tombstones", "key", ("key",)),
    Table("purges", "id", ("id", "asked_at", "state", "detail", "needles")),
    Table("seals", "id", ("id", "seal")),
    Table("proposals", "id", ("id", "fact_id", "evidence", "state", "made_at", "expires_at")),
    Table("file_roots", "path", ("scope", "scope_target", "kind", "path", "pattern")),
)  # fmt: skip
"""In the order in which they are copied: what is pointed at comes before what points."""
COUNTED = ("facts", "journal")
"""Tables whose last number is kept even if its row is gone: a number is given once."""


def counts(store: Store) -> dict[str, int]:
    """Return how many rows each table has that would be copied."""
    with store.database.read() as connection:
        return {table.name: _count(connection, table) for table in TABLES}


def begin(source: Store, target: Store) -> str:
    """See that a store can be copied into another, and that what is there of it already is of the same state.

    Returns:
        That state.

    Raises:
        InputError: the other store has memories of its own.
    """
    with source.database.read() as connection:
        state = _state(source, newest(connection))
    begun, moved = target.meta(SOURCE), target.meta(MOVED) is not None
    with target.database.read() as connection:
        held: int = run(connection, "SELECT count(*) FROM facts")[0][0]
    if begun is None and held and not moved:
        raise InputError(f"the target holds {held} memories already; name another folder, or another store_tenant")
    if moved or begun != state:
        with target.database.write() as connection:
            for table in reversed(TABLES):
                run(connection, f"DELETE FROM {table.name} WHERE {table.only}")
            run(connection, "DELETE FROM facts_fts" if target.database.shared else _NO_WORDS)
            run(connection, "DELETE FROM meta WHERE key LIKE ? OR key = ?", (f"{PROGRESS}%", MOVED))
            run(connection, "INSERT OR REPLACE INTO meta VALUES (?, ?)", (SOURCE, state))
    return state


def copy(source: Store, target: Store, progress: Progress = lambda done, total: None) -> dict[str, int]:
    """Copy all rows that are not there yet; return how many each table has.

    Raises:
        StoreError: one of its kinds; called again, it goes on where it was.
    """
    with source.database.read() as reading:
        counts = {table.name: _count(reading, table) for table in TABLES}
        done, total = 0, sum(counts.values())
        for table in TABLES:
            known = target.meta(PROGRESS + table.name)
            after, copied = json.loads(known) if known else (None, 0)
            for rows in _batches(reading, table, after):
                copied += len(rows)
                with target.database.write() as connection:
                    _put(connection, table, [row[1:] for row in rows])
                    run(connection, "INSERT OR REPLACE INTO meta VALUES (?, ?)",
                        (PROGRESS + table.name, json.dumps([rows[-1][0], copied])))  # fmt: skip
                progress(done + copied, total)
            done += counts[table.name]
        last: dict[str, int] = dict(run(reading, "SELECT name, seq FROM sqlite_sequence"))
    with target.database.write() as connection:
        for name in COUNTED:
            run(connection, "DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            run(connection, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, last.get(name, 0)))
    return counts


def compare(counts: dict[str, int], target: Store) -> None:
    """See that a copy has every row, each as it was sealed.

    Raises:
        StoreCorruptError: it has not.
    """
    with target.database.read() as connection:
        for table in TABLES:
            if (there := _count(connection, table)) != counts[table.name]:
                raise StoreCorruptError(f"the copy has {there} rows of {table.name}, not {counts[table.name]}")
        for damage in damages(connection):
            raise StoreCorruptError(f"a {damage.kind} of the copy does not fit its seal: {damage.id} {damage.how}")


def leave(source: Store, copied: str, where: str) -> None:
    """Mark a store as moved, so that nobody opens it again, if nothing was written since it was copied.

    Args:
        source: that store.
        copied: its state then, as `begin` returned it.
        where: the place of the copy, in words, without a secret.

    Raises:
        StoreBusyError: something was written; copy anew.
    """
    with source.database.write() as connection:
        if _state(source, newest(connection)) != copied:
            raise StoreBusyError("somebody wrote to the store meanwhile; stop what uses it, and run it again")
        run(connection, "INSERT OR REPLACE INTO meta VALUES (?, ?)", (MOVED, where))


_NO_WORDS = "INSERT INTO facts_fts (facts_fts) VALUES ('delete-all')"


def _state(store: Store, journal: int) -> str:
    return json.dumps({"key": hashlib.sha256(store.key).hexdigest()[:16], "journal": journal})


def _count(connection: Connection, table: Table) -> int:
    return int(run(connection, f"SELECT count(*) FROM {table.name} WHERE {table.only}")[0][0])


def _batches(reading: Connection, table: Table, after: Any) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows behind a key, or all, in batches, each row behind its own key."""
    columns = f"{table.key}, {', '.join(table.columns)}"
    # A path may be the same in several scopes: such a table is small, and copied at once.
    limit = BATCH if table.name != "file_roots" else 1 << 40
    while True:
        behind, values = (f"{table.key} > ? AND", (after,)) if after is not None else ("", ())
        sql = f"SELECT {columns} FROM {table.name} WHERE {behind} {table.only} ORDER BY {table.key} LIMIT ?"
        rows = run(reading, sql, (*values, limit))
        if rows:
            after = rows[-1][0]
            yield rows
        if len(rows) < limit:
            return


def _put(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    marks = ", ".join("?" * len(table.columns))
    connection.executemany(
        f"INSERT OR REPLACE INTO {table.name} VALUES ({marks})"
        if table.name == "meta"
        else f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks})",
        rows,
    )
    if table.name == "facts":
        places = [table.columns.index(name) for name in ("seq", "text", "entity", "key", "value", "category")]
        words = [(row[places[0]], *(fts_text(row[place] or "") for place in places[1:])) for row in rows]
        connection.executemany(INDEX, words)
