"""The truth of a store, copied row by row into another engine and compared there. After a kill it goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perdure.errors import InputError, StoreBusyError, StoreCorruptError
from perdure.store import shared_inbox
from perdure.store.fact import COLUMNS
from perdure.store.moved import MARKS, MOVED, PURGED, refuse_marked
from perdure.store.rollback_guard import store_id
from perdure.store.seals import UNSEALED, damages
from perdure.store.sql import Connection, dialect, marks, put_meta, run
from perdure.store.store import Store
from perdure.text.normalise import fts_text
from perdure.text.pluralize import counted

BATCH = 500
"""Rows that are copied in one transaction: a kill loses the work on so many at the most."""
PROGRESS, SOURCE = "move:", "move source"
_OWN = ("store_key", "key_name", MOVED, SOURCE)
"""What a store knows about itself alone."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is copied."""

    name: str  # its name, in every engine
    key: str  # the column in whose order it is copied
    columns: tuple[str, ...]  # all that are copied
    only: str = "1 = 1"  # which rows


TABLES = (
    Table("meta", "key", ("key", "value"), f"key NOT IN ({', '.join(map(repr, _OWN))}) AND key NOT LIKE 'lance%'"
          " AND key NOT LIKE 'index_generation%'"
          f" AND key NOT LIKE '{PROGRESS}%'"),
    Table("facts", "seq", ("seq", *COLUMNS, "entity_folded", "key_folded")),
    Table("memory_links", "id", ("id", "source_fact_id", "target_fact_id", "link_type", "strength", "created_at")),
    Table("embeddings", "id", ("id", "identity", "dims", "state")),
    Table("vectors", "rowid", ("fact_id", "embedding_id", "vector")),
    Table("triggers", "rowid", ("id", "fact_id", "text", "origin", "created_at", "removed_at")),
    Table("trigger_vectors", "rowid", ("trigger_id", "embedding_id", "vector")),
    Table("journal", "seq", ("seq", "at", "action", "fact_id", "other_id", "channel", "host", "session", "batch",
          "detail", "seal")),
    Table("inbox_done", "entry_id", ("entry_id", "at")),
    Table("inbox_parked", "entry_id", ("entry_id", "at", "error", "entry")),
    Table("cursors", "session", ("session", "tail", "at")),
    Table("receipts", "id", ("id", "at", "session", "scope", "body", "details")),
    Table("tombstones", "key", ("key",)),
    Table("forgotten", "seq", ("seq", "fact_id", "scope", "scope_target", "at", "marks")),
    Table("purges", "id", ("id", "asked_at", "state", "detail", "needles")),
    Table("seals", "id", ("id", "seal")),
    Table("proposals", "id", ("id", "fact_id", "evidence", "state", "made_at", "expires_at")),
    Table("file_roots", "path", ("scope", "scope_target", "kind", "path", "pattern")),
)  # fmt: skip
"""In the order in which they are copied: what is pointed at comes before what points."""
COUNTED = ("facts", "journal", "forgotten")
"""Tables whose last number is kept even if its row is gone: a number is given once."""
UNTOLD: Mapping[str, Sequence[str]] = {
    "facts": sorted(UNSEALED), "memory_links": (), "vectors": (), "triggers": (), "trigger_vectors": (),
    "journal": (), "seals": (),
}  # fmt: skip
"""Of the tables under seals what may change with neither a row of the journal nor another number of rows."""


def counts(store: Store) -> dict[str, int]:
    """Return how many rows each table has that would be copied."""
    with store.database.read() as connection:
        return {table.name: _count(connection, table) for table in TABLES}


def see_captured(source: Store) -> None:
    """See that all turns that were acknowledged have been captured: what waits in an inbox is not copied."""
    left = {str(entry["id"]) for entry in source.waiting()}
    if source.database.shared:
        held = source.database.query(shared_inbox.held)
        left |= {entry_id for entry_id in held if not source.is_finished(entry_id)}
    if left:
        raise StoreBusyError(
            f"{counted(len(left), 'turn')} in the inbox must be captured first; stop the programs that use the store,"
            " then run: perdure jobs run files. Turns of another machine are captured once they are a minute old"
        )


def begin(source: Store, target: Store) -> str:
    """See that a store can be copied into another, where all that is there is of the same state; return that state."""
    with source.database.read() as connection, connection:
        state = _state(source, connection)
    # A name that was purged is not used again: other machines tell by the mark what to remove.
    refuse_marked(target.database.query(run, MARKS, (PURGED, PURGED)))
    begun, moved = target.meta(SOURCE) or "", target.meta(MOVED) is not None
    if not moved and not begun.startswith(store_id(source.key)):
        _see_empty(target)
    with target.database.write() as connection:
        if begun != state:
            for table in reversed(TABLES):
                run(connection, f"DELETE FROM {table.name} WHERE {table.only}")
            no_words = "INSERT INTO facts_fts (facts_fts) VALUES ('delete-all')"
            run(connection, "DELETE FROM facts_fts" if target.database.shared else no_words)
            run(connection, "DELETE FROM meta WHERE key LIKE ?", (f"{PROGRESS}%",))
            put_meta(connection, SOURCE, state)
        if target.database.shared:
            # Until it counts nobody else opens it: what is written to it would be lost if the copy begins anew. And
            # files of conversations, brought up to date with what it has, would be gone before they are taken over.
            where = f"{source.folder}, or are still being moved from there: run that `perdure move` again"
            put_meta(connection, MOVED, where)
    return state


def copy(source: Store, target: Store, progress: Progress = lambda done, total: None) -> dict[str, int]:
    """Copy all rows that are not there yet; return how many each table has."""
    with source.database.read() as reading, reading:
        counts = {table.name: _count(reading, table) for table in TABLES}
        done, total = 0, sum(counts.values())
        for table in TABLES:
            known = target.meta(PROGRESS + table.name)
            after, copied = json.loads(known) if known else (None, 0)
            for rows in _batches(reading, table, after):
                copied += len(rows)
                with target.database.write() as connection:
                    _put(connection, table, [row[1:] for row in rows])
                    put_meta(connection, PROGRESS + table.name, json.dumps([rows[-1][0], copied]))
                progress(done + copied, total)
            done += counts[table.name]
        last: dict[str, int] = dict(run(reading, "SELECT name, seq FROM sqlite_sequence"))
    with target.database.write() as connection:
        for name in COUNTED:
            run(connection, "DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            run(connection, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, last.get(name, 0)))
    return counts


def compare(counts: dict[str, int], target: Store) -> None:
    """See that a copy has every row, each as it was sealed."""
    if (wrong := _wrong(counts, target)) is not None:
        target.note(SOURCE, store_id(target.key))
        raise StoreCorruptError(f"{wrong}; run it again to start over, or check the store: perdure verify")


def leave(source: Store, copied: str, where: str) -> None:
    """Mark a store as moved, so that nobody opens it again, if nothing was written since `begin` returned its state.

    `where` names the place of the copy in words, without a secret.
    """
    with source.database.ending() as connection:
        see_captured(source)
        if _state(source, connection) != copied:
            raise StoreBusyError("the store was written to in the meantime; stop the programs that use it, and retry")
        put_meta(connection, MOVED, where)


def is_begun(target: Store) -> bool:
    """Return whether a store is a copy, of the store with its key, that was not let in yet."""
    return (target.meta(SOURCE) or "").startswith(store_id(target.key)) and target.meta(MOVED) is not None


def finish(target: Store) -> None:
    """Let a copy be opened whose source was left, and drop the marks of the copying: it is not begun anew."""
    target.database.apply(run, "DELETE FROM meta WHERE key LIKE ? OR key IN (?, ?)", (f"{PROGRESS}%", SOURCE, MOVED))


def _see_empty(target: Store) -> None:
    nouns = {"facts": "memories"} | ({"said": "conversation lines"} if target.database.shared else {})
    with target.database.read() as connection:
        for table, noun in nouns.items():
            held: int = run(connection, f"SELECT count(*) FROM {table}")[0][0]
            if held:
                raise InputError(f"the target already has {held} {noun}; name another folder or store_tenant")


def _wrong(counts: dict[str, int], target: Store) -> str | None:
    with target.database.read() as connection:
        for table in TABLES:
            if (there := _count(connection, table)) != counts[table.name]:
                return f"the copy has {there} rows of {table.name}, not {counts[table.name]}"
        for damage in damages(connection):
            return f"a {damage.kind} of the copy does not match its seal: {damage.id} {damage.how}"
    return None


def _state(store: Store, connection: Connection) -> str:
    """Return the store's name and a hash of all that is copied, which differs once anything of it does.

    The journal tells of what is sealed, which is most of it. Use counts, receipts, cursors and the like change without
    it, so they are read: that takes a small part of the time of a copy.
    """
    state = hashlib.blake2b(key=store.key, digest_size=16)
    for table in TABLES:
        columns = tuple(UNTOLD.get(table.name, table.columns))
        number = f"SELECT count(*), max({table.key}) FROM {table.name}"
        for rows in _batches(connection, replace(table, columns=columns)) if columns else [run(connection, number)]:
            # Within a batch in an order of its own: roots of several scopes may have the same key.
            state.update("".join(sorted(map(repr, rows))).encode("utf-8", "surrogatepass"))
    if store.database.shared:
        state.update(repr(run(connection, "SELECT max(change) FROM conversations")).encode())
    return f"{store_id(store.key)} {state.hexdigest()}"


def _count(connection: Connection, table: Table) -> int:
    return int(run(connection, f"SELECT count(*) FROM {table.name} WHERE {table.only}")[0][0])


def _batches(reading: Connection, table: Table, after: Any = None) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows behind a key, or all, in batches, each row behind its own key."""
    columns = ", ".join((table.key, *table.columns))
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
    if table.name == "meta":
        for key, value in rows:
            put_meta(connection, key, value)
        return
    into = f"INSERT INTO {table.name} ({', '.join(table.columns)})"
    connection.executemany(f"{into} VALUES ({marks(table.columns)})", rows)
    if table.name == "facts":
        places = [table.columns.index(name) for name in ("seq", "text", "entity", "key", "value", "category")]
        words = [(row[places[0]], *(fts_text(row[place] or "") for place in places[1:])) for row in rows]
        dialect(connection).keep_words(connection, words)
