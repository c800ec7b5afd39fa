"""One tenant's part of a PostgreSQL database: transactions over a pool of connections."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from perdure.errors import InputError, StoreBusyError, StoreClosedError, StoreError, StoreUnavailableError
from perdure.postgres import lease, vectors
from perdure.postgres.connection import REACH, Impatient, PostgresConnection, in_our_terms, options
from perdure.postgres.dialect import PostgresDialect, placed
from perdure.postgres.migrate import migrate
from perdure.store.moved import MARKS, MOVED, PURGED, refuse_marked
from perdure.store.server_key import KEY_FILE, KEY_VARIABLE, key_of
from perdure.store.sql import Backend, Connection, Row, hurried, patience, run
from perdure.text.normalise import NORMALISER_VERSION

CONNECTIONS = 4
"""Of a process at the most: one writes, the others read."""
PATIENCE = 10.0
"""Seconds for which a writer waits for the others."""
REST = 1.0
"""Seconds for which no connection is asked for after that was in vain."""
RECONNECTS = 4.0
"""Seconds for which the pool tries again by itself, later and later; then who asks next has it try at once."""
STALE = 120
"""Seconds after which a writer that does nothing loses its lock: its machine may be cut off."""
TENANT = "perdure.tenant"
"""The setting of a transaction that names the tenant. Unset, there is no row."""
WRITERS, ENDS = 0x70726472, 0x70726474
"""The lock of those who write for one tenant, and the one of who moves or purges it, beside which nobody adds."""
_FIRST = ("memory_links", "proposals", "trigger_vectors", "triggers", "vectors", "said")
"""Tables whose rows point at others."""
# Said beside the wall of row-level security: where that does not hold, others' rows must stay all the same.
_OWN = "tenant = current_setting('perdure.tenant')"
_TABLES = (
    "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'"
    " WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname"
)
# That the server is away is told by what raises; the pool would tell it to the host's terminal as well.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


class PostgresDatabase(Backend):
    """A tenant's tables. Usable from any thread."""

    shared, displaced = True, False

    def __init__(self, url: str, tenant: str, folder: Path, direct: str | None = None, *, moved: bool = False) -> None:
        """Open the database, and bring its schema up to date.

        The key lies in the `folder` of this machine, unless the environment names it. `direct` is the address past a
        pooler, by which the schema is brought up to date. `moved` writes even if the memories were moved elsewhere, or
        purged.
        """
        if not tenant or "\0" in tenant:
            raise InputError(f"store_tenant {tenant!r} is not a valid name; give at least one character, and no NUL")
        self.path = Path("postgresql")
        self.refusal: str | None = None
        self._key, self._away, self._moved = key_of(folder), 0.0, moved
        self._tenant, self._process, self._closed = tenant, os.getpid(), False
        self._wrapped: WeakKeyDictionary[Any, PostgresConnection] = WeakKeyDictionary()
        # Threads that wait for the writers' lock would else hold all connections, and nobody could read.
        self._writing, self._room = threading.Lock(), threading.BoundedSemaphore(CONNECTIONS)
        self._reading = threading.local()
        self._pool = ConnectionPool(
            url, connection_class=Impatient, min_size=1, max_size=CONNECTIONS, timeout=REACH, open=False,
            reconnect_timeout=RECONNECTS, kwargs={**options(url), "autocommit": True}
        )  # fmt: skip
        self.compares = migrate(direct or url)
        self.dialect = PostgresDialect(compares=self.compares)
        self._lease = lease.Lease(self)
        with ExitStack() as opened:
            self._pool.open()
            opened.callback(self._pool.close)
            self._begin()
            opened.pop_all()

    @contextmanager
    def write(self, *, durable: bool = True, keep: bool = True) -> Iterator[PostgresConnection]:
        """Run a transaction; see `Database.write`. Those who write for one tenant do so one after the other."""
        with self._alone(), self._taken() as (raw, connection):
            asynchronous = "" if durable else "SET LOCAL synchronous_commit = off; "
            self._first(
                raw,
                f"SET LOCAL lock_timeout = {int(PATIENCE * 1000)}; {asynchronous}"
                f"SET LOCAL idle_in_transaction_session_timeout = {STALE * 1000};"
                " SELECT pg_advisory_xact_lock(?, hashtext(?))",
                (WRITERS, self._tenant),
            )
            connection.in_transaction = True
            try:
                lease.check(connection)
                yield connection
                if keep:
                    raw.commit()
            finally:
                connection.in_transaction = False

    @contextmanager
    def ending(self) -> Iterator[PostgresConnection]:
        """Run a write beside which nobody else adds anything, not even a turn."""
        with self.write() as connection:
            run(connection, "SELECT pg_advisory_xact_lock(?, hashtext(?))", (ENDS, self._tenant))
            yield connection

    @contextmanager
    def beside(self) -> Iterator[PostgresConnection]:
        """Run a transaction that waits for no writer. Only for rows that no other transaction of the store changes."""
        with self._taken() as (raw, connection):
            self._first(raw, "SELECT pg_advisory_xact_lock_shared(?, hashtext(?))", (ENDS, self._tenant))
            yield connection
            raw.commit()

    def _first(self, raw: psycopg.Connection[Row], locks: str, values: tuple[Any, ...]) -> None:
        """Begin to change something, if the memories are still here."""
        told = raw.execute(placed(f"{locks}; {MARKS}"), (*values, MOVED, PURGED))
        while told.nextset():
            pass
        if not self._moved:
            refuse_marked(told.fetchall())

    @contextmanager
    def read(self, *, deadline: float | None = None) -> Iterator[PostgresConnection]:
        """Lend a connection that sees one state, for the block; see `Database.read`."""
        raw, connection = getattr(self._reading, "taken", (None, None))
        # One on which a statement was broken off runs no other.
        if raw is not None and connection is not None and raw.info.transaction_status == TransactionStatus.INTRANS:
            with in_our_terms(), self._reached(deadline):
                yield connection
            return
        with self._snapshot(deadline) as (_, connection):
            yield connection

    @contextmanager
    def reading(self, *, deadline: float | None = None) -> Iterator[None]:
        """See `Backend.reading`; what is read in the block keeps to this deadline."""
        if getattr(self._reading, "taken", None) is not None:
            yield
            return
        with self._snapshot(deadline) as taken:
            self._reading.taken = taken
            try:
                yield
            finally:
                del self._reading.taken

    def _snapshot(self, deadline: float | None) -> AbstractContextManager[tuple[Impatient, PostgresConnection]]:
        """Take a connection into a transaction that sees one state."""
        first = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        if deadline is not None:
            first += f"; SET LOCAL statement_timeout = {max(1, int((deadline - time.monotonic()) * 1000))}"
        return self._taken(deadline, first)

    def tidy(self, pause: Callable[[], None]) -> str:
        """Have the server look at its statistics; what was deleted its own housekeeping clears away."""
        filled = self.make_comparable(pause) if self.compares else 0
        self._outside("ANALYZE facts, facts_fts, facts_terms, facts_words, vectors, journal")
        if not self.compares:
            return "statistics updated"
        return f"statistics updated, {filled} vectors made comparable, {self._graphs()} scopes have a graph"

    def _graphs(self) -> int:
        """Make and remove graphs, so that each large scope has one; return how many there are."""
        with self.read() as connection:
            there, crowds = vectors.graphs(connection), vectors.crowds(connection)
            # Of a process that is gone, perhaps: the server goes on all the same.
            making = vectors.being_made(connection)
        kept = {graph.name for graph, _, _ in crowds if there.get(graph.name)}
        there = {name: whole for name, whole in there.items() if name not in making}
        crowds = [each for each in crowds if each[0].name not in making]
        for name in there.keys() - kept:
            self._outside(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        made = [(graph, dims) for graph, dims, count in crowds if graph.name not in kept and count > vectors.EXACT]
        for graph, dims in made:
            self._outside(graph.sql(dims))
        return len(kept) + len(made)

    def make_comparable(self, pause: Callable[[], None] = lambda: None) -> int:
        """Have all vectors comparable; return how many were looked at, since they were not."""
        done, last = 0, 0
        while True:
            some, last = vectors.fill(self, last)
            done += some
            if not some:
                return done
            pause()

    def about(self) -> str:
        """Return the server's version, whether it compares vectors, and how long a question takes."""
        began = time.monotonic()
        [(version,)] = self.query(run, "SELECT current_setting('server_version')")
        took = 1000 * (time.monotonic() - began)
        vectors = "with pgvector" if self.compares else "without pgvector: each process holds its own vectors"
        return f"PostgreSQL {version.split()[0]} {vectors}, {took:.1f} ms per query"

    def erase(self, now: float) -> tuple[dict[str, int], int]:
        """Remove the tenant; return how many rows of each table went, and how many are left.

        Either all of it goes, or nothing.
        """
        with self.ending() as connection:
            gone = _erase(connection, now)
        if self.compares:
            self._graphs()
        self.shed()
        with self.read() as connection:
            return gone, sum(_counts(connection).values()) - 1  # the mark by which other machines learn that it is gone

    def shed(self, *, rows: bool = True) -> str | None:
        """Have the server clear away deleted rows; see `Backend.shed`. Its log and its backups are out of reach."""
        if rows:
            names = self.query(_tables)
            self._outside(f"VACUUM {', '.join(names)}")
        return None

    def _outside(self, sql: str) -> None:
        """Run what runs in no transaction."""
        with in_our_terms(), self._reached(), self._lent(REACH) as raw:
            raw.deadline = None
            raw.execute(sql)

    def lead(self) -> bool:
        """Return whether this process looks after the tenant; see `Backend.lead`."""
        return self._lease.take()

    def leading(self) -> AbstractContextManager[None]:
        """Have writes in the block refused once another process leads."""
        return self._lease.fenced()

    def check_place(self) -> None:
        """Nothing can be removed from under it."""

    def close(self) -> None:
        """Close all connections."""
        if not self._closed and self._process == os.getpid():
            with suppress(StoreError), hurried(REST):
                self._lease.give_up()
            self._closed = True
            self._pool.close(REST)

    def _see_open(self) -> None:
        if self._process != os.getpid():
            raise StoreClosedError(
                "the database was opened before this process was forked; open it again in this process"
            )
        if self._closed:
            raise StoreClosedError("the database is closed; open the store again")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Be the one thread of this process that writes."""
        # In a forked child nobody would ever let go of the lock.
        self._see_open()
        if not self._writing.acquire(timeout=PATIENCE):
            raise StoreBusyError("another thread has been writing for too long; retry")
        try:
            yield
        finally:
            self._writing.release()

    @contextmanager
    def _taken(
        self, deadline: float | None = None, first: str = "BEGIN ISOLATION LEVEL READ COMMITTED"
    ) -> Iterator[tuple[Impatient, PostgresConnection]]:
        """Take a connection into a transaction of the tenant: here alone it is named."""
        self._see_open()
        if time.monotonic() < self._away:
            raise StoreUnavailableError("the database could not be reached a moment ago; retry in a second")
        left = min(REACH, patience()) if deadline is None else max(0.01, deadline - time.monotonic())
        named = f"{first}; SELECT set_config(%s, %s, true)"
        with (
            in_our_terms(),
            self._reached(deadline),
            self._lent(min(left, REACH), named, (TENANT, self._tenant)) as raw,
        ):
            raw.deadline = deadline
            connection = self._wrapped.get(raw)
            if connection is None:
                connection = self._wrapped[raw] = PostgresConnection(raw, self._key, self.dialect)
            try:
                yield raw, connection
            finally:
                if not raw.closed:
                    raw.rollback()

    @contextmanager
    def _lent(self, seconds: float, first: str = "SELECT 1", values: tuple[Any, ...] = ()) -> Iterator[Impatient]:
        """Lend a connection on which the first statement worked: after a restart of the server old ones do not."""
        until = time.monotonic() + seconds
        if not self._room.acquire(timeout=seconds):
            raise StoreBusyError("all connections in this process are in use; retry")
        try:
            raw = self._begun(until, first, values)
            try:
                yield raw
            finally:
                self._pool.putconn(raw)
        finally:
            self._room.release()

    def _begun(self, until: float, first: str, values: tuple[Any, ...]) -> Impatient:
        while True:
            raw = self._pool.getconn(max(0.001, until - time.monotonic()))
            raw.deadline = until
            with ExitStack() as failed:
                # One that is broken the pool does not take back.
                failed.callback(self._pool.putconn, raw)
                try:
                    raw.execute(first, values)
                except psycopg.OperationalError:
                    if time.monotonic() >= until:
                        raise
                    continue
                failed.pop_all()
                return raw

    @contextmanager
    def _reached(self, deadline: float | None = None) -> Iterator[None]:
        """Let nobody wait for a server that was away a moment ago: a turn asks for several things.

        Whose own deadline passes soon does not know that it is away.
        """
        began = time.monotonic()
        try:
            yield
        except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable):
            raise
        except (PoolTimeout, psycopg.OperationalError):
            now = time.monotonic()
            if deadline is None or now - began >= REST:
                self._away = now + REST
            raise

    def _begin(self) -> None:
        """Note what a new tenant has from the beginning, and see that the key is its own."""
        begins = {"normaliser": str(NORMALISER_VERSION), "key_name": hashlib.sha256(self._key).hexdigest()[:16]}
        sql = "SELECT key, value FROM meta WHERE key IN (?, ?, ?, ?)"
        with hurried(), self.read() as connection:
            known = dict[str, str](run(connection, sql, (*begins, MOVED, PURGED)))
        if PURGED in known and not self._moved:
            refuse_marked([(PURGED, known[PURGED])])
        if not begins.keys() <= known.keys() and not {MOVED, PURGED} & known.keys():
            with self.write() as connection:
                for each in begins.items():
                    run(connection, "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", each)
                known = dict(run(connection, sql, (*begins, MOVED, PURGED)))
        if known.get("key_name", begins["key_name"]) != begins["key_name"]:
            raise StoreUnavailableError(
                f"the database was written with another key; set {KEY_VARIABLE}, or copy {KEY_FILE} from a machine"
                " that has it"
            )


def _tables(connection: Connection) -> list[str]:
    """Return the names of the tables that have rows of tenants."""
    return [name for (name,) in run(connection, _TABLES)]


def _counts(connection: Connection) -> dict[str, int]:
    """Return how many rows of the tenant each table has."""
    sql = "SELECT count(*) FROM {} WHERE " + _OWN
    return {name: run(connection, sql.format(name))[0][0] for name in _tables(connection)}


def _erase(connection: Connection, now: float) -> dict[str, int]:
    """Delete all rows of the tenant, but for a mark of when that was first done; return how many each table had."""
    marks = run(connection, "SELECT value FROM meta WHERE key = ?", (PURGED,))
    counts = _counts(connection)
    for name in sorted(counts, key=lambda name: (name not in _FIRST, name)):
        run(connection, f"DELETE FROM {name} WHERE {_OWN}")
    # What counts words counts while they go.
    run(connection, f"DELETE FROM counters WHERE {_OWN}")
    run(connection, "INSERT INTO meta VALUES (?, ?)", (PURGED, marks[0][0] if marks else repr(now)))
    return {name: count for name, count in counts.items() if count}
