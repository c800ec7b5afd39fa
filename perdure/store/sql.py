"""What the statements of this folder are run on: a connection of whichever engine holds the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

Row = tuple[Any, ...]
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Connection(Protocol):
    """A connection in a transaction. `apsw.Connection` is one."""

    @property
    def in_transaction(self) -> bool:
        """Whether what was changed can still be taken back."""

    def __enter__(self) -> Any:
        """Read all that follows in the state of one moment, until the block ends."""

    def __exit__(self, kind: Any, failure: Any, where: Any, /) -> Any:
        """See later states again."""

    def execute(self, statements: str, bindings: Any = None, /) -> Iterable[Any]:
        """Run SQL with values for its question marks, and return its rows."""

    def executemany(self, statements: str, sequenceofbindings: Any, /) -> Iterable[Any]:
        """Run SQL once for each row of values."""

    def last_insert_rowid(self) -> int:
        """Return the number of the row that was inserted last."""

    def changes(self) -> int:
        """Return how many rows the last statement changed."""


class Dialect:
    """What each engine says in words of its own, here SQLite's. All other statements are in words of all engines."""

    raw_ids = "SELECT CAST(id AS BLOB) FROM facts NOT INDEXED"
    """Reads the ids of all facts as bytes, past every index: both may be damaged."""

    def by_index(self, name: str) -> str:
        """Return what stands behind the name of a table that is to be read by an index."""
        return f"INDEXED BY {name}"

    def on_conflict(self, *key: str) -> str:
        """Return how an insertion begins to say what is done about a row that has the same key."""
        return f"ON CONFLICT ({', '.join(key)})"

    def in_scopes(self, table: str, count: int) -> str:
        """Return the condition that a row is of one of so many scopes; the values are each one's kind and target."""
        return f"({table}.scope, {table}.scope_target) IN (VALUES {', '.join(['(?, ?)'] * count)})"

    def matching(self, match: str) -> tuple[str, tuple[Any, ...]]:
        """Return the condition on `facts_fts` that a query of FTS5 stands for, and its values."""
        return "facts_fts MATCH ?", (match,)

    def rank(self, connection: Connection, match: str) -> tuple[str, tuple[Any, ...]]:
        """Return how well a row of `facts_fts` fits the query, lower is better, and the values in it."""
        return "facts_fts.rank", ()

    def keep_words(self, connection: Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        """Keep the words of facts: the row of each, and its five texts as `fts_text` returns them."""
        sql = "INSERT INTO facts_fts (rowid, text, entity, key, value, category) VALUES (?, ?, ?, ?, ?, ?)"
        connection.executemany(sql, rows)

    def keep_vector(self, connection: Connection, fact_id: str, space_id: str, blob: bytes) -> None:
        """Give a fact its vector of a space, in the place of one that it has. Does nothing if the fact is gone."""
        # Anew, in a row of its own: readers ask what is behind the last row that they know.
        sql = "INSERT OR REPLACE INTO vectors SELECT id, ?, ? FROM facts WHERE id = ?"
        run(connection, sql, (space_id, blob, fact_id))


_SQLITE = Dialect()


def dialect(connection: Connection) -> Dialect:
    """Return the words of the engine that a connection is to."""
    found: Dialect = getattr(connection, "dialect", _SQLITE)
    return found


class Backend(Protocol):
    """The database that holds the truth. Usable from any thread."""

    path: Path  # the file, or what stands for it in messages
    refusal: str | None  # why it can only be read; None: it can be written
    compares: bool  # whether it finds nearest vectors itself
    dialect: Dialect  # what its engine says in words of its own

    @property
    def displaced(self) -> bool:
        """Whether another file, or none, stands where the open one stood."""

    def write(self, *, durable: bool = True, keep: bool = True) -> AbstractContextManager[Connection]:
        """Run a transaction: all of it is kept when the block ends, none of it if the block raises.

        Without `durable` it does not wait for the disk: only for what may be lost, such as counters. Without `keep` it
        only tries: nothing of what the block does is kept.
        """

    def read(self, *, deadline: float | None = None) -> AbstractContextManager[Connection]:
        """Lend a connection to read with, for the block.

        A running statement is broken off at the `deadline` (`time.monotonic()`), with `StoreBusyError`.
        """

    def reading(self, *, deadline: float | None = None) -> AbstractContextManager[None]:
        """Have all that this thread reads in the block see one state, on one connection."""

    def query(self, function: Callable[Concatenate[Connection, _P], _R], *given: _P.args, **named: _P.kwargs) -> _R:
        """Return what a function reads on a connection of its own, from these other arguments."""
        with self.read() as connection:
            return function(connection, *given, **named)

    def pages(self, sql: str, values: Sequence[Any], size: int) -> Iterator[list[Row]]:
        """Yield the rows of a statement, so many at a time, at least one page: nothing is held open in between.

        They are in the order of their first column, a number above 0. The last two marks of the statement are the
        number behind which a page begins, and its size.
        """
        after = 0
        while True:
            rows = self.query(run, sql, (*values, after, size))
            yield rows
            if len(rows) < size:
                return
            after = rows[-1][0]

    def apply(self, function: Callable[Concatenate[Connection, _P], _R], *given: _P.args, **named: _P.kwargs) -> _R:
        """Return what a function does in a transaction of its own, with these other arguments."""
        with self.write() as connection:
            return function(connection, *given, **named)

    def jot(self, function: Callable[Concatenate[Connection, _P], _R], *given: _P.args, **named: _P.kwargs) -> _R:
        """Return what a function does in a transaction of its own that a power cut may undo."""
        with self.write(durable=False) as connection:
            return function(connection, *given, **named)

    def ending(self) -> AbstractContextManager[Connection]:
        """Run a transaction beside which nobody else adds anything, not even a turn.

        A file has one writer at a time; so it is with `beside`.
        """
        return self.write()

    def beside(self) -> AbstractContextManager[Connection]:
        """Run a transaction that waits for no writer, on rows that no other one changes."""
        return self.write()

    @property
    def shared(self) -> bool:
        """Whether it is a server's, which other machines ask as well, and no file of this one."""

    def tidy(self, pause: Callable[[], None]) -> str:
        """Look after statistics and free room, with pauses between the parts; return one line about it."""

    def shed(self, *, rows: bool = True) -> str | None:
        """Leave nothing of what was deleted: of `rows` in the tables, and in the log of changes.

        Return what it has to wait for; None: it is done.
        """

    def lead(self) -> bool:
        """Return whether this process is the one, of all machines, that looks after the database now.

        To be called again and again: who is not heard of loses that. Who leads among the processes of one machine is
        told by a lock in the folder, which is held until death.
        """
        return True

    def leading(self) -> AbstractContextManager[None]:
        """Have writes in the block refused with `StoreBusyError` once another process leads."""
        return nullcontext()

    def about(self) -> str:
        """Return a line about the engine, for people, without an address."""

    def erase(self, now: float) -> tuple[dict[str, int], int]:
        """Remove all that is in it; return how many rows of each table went, and how many are left.

        Either all of it goes, or nothing.
        """

    def check_place(self) -> None:
        """See that the open file still stands where it did."""

    def close(self) -> None:
        """Close all connections."""


def run(connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[Row]:
    """Run SQL to its end and return all rows.

    A cursor that is not consumed leaves out what follows the first statement.
    """
    return list(connection.execute(sql, values))


def put(connection: Connection, table: str, **values: Any) -> None:
    """Insert a row, or give these values to the one that has the same key, which is the first of them."""
    key, *others = values
    changed = ", ".join(f"{name} = excluded.{name}" for name in others)
    into = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks(values)})"
    run(connection, f"{into} {dialect(connection).on_conflict(key)} DO UPDATE SET {changed}", tuple(values.values()))


def marks(values: Sized) -> str:
    """Return a question mark for each of some values; what is in a list of none is never there."""
    return ", ".join("?" * len(values)) or "NULL"


def newest(connection: Connection) -> int:
    """Return the number of the last change in the journal; 0 in an empty store."""
    return int(run(connection, "SELECT coalesce(max(seq), 0) FROM journal")[0][0])


def get_meta(connection: Connection, key: str) -> str | None:
    """Return a value that belongs to the store as a whole; None: there is none of this name."""
    rows = run(connection, "SELECT value FROM meta WHERE key = ?", (key,))
    return rows[0][0] if rows else None


def put_meta(connection: Connection, key: str, value: str | None) -> None:
    """Keep a value that belongs to the store as a whole; None drops it."""
    if value is None:
        run(connection, "DELETE FROM meta WHERE key = ?", (key,))
    else:
        put(connection, "meta", key=key, value=value)


TURN = 2.0
"""Seconds, in a turn. A server that is frozen ends no connection by itself."""
_patience: ContextVar[float] = ContextVar("perdure_patience", default=math.inf)


def patience() -> float:
    """Return for how many seconds this thread waits for one answer; without an end where it may make an index."""
    return _patience.get()


@contextmanager
def hurried(seconds: float = TURN) -> Iterator[None]:
    """Wait for no answer longer than that in the block."""
    before = _patience.set(min(seconds, _patience.get()))
    try:
        yield
    finally:
        _patience.reset(before)
