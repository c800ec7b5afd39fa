"""One tenant's part of a PostgreSQL database: transactions over a pool of connections."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg_pool import ConnectionPool

from perdure.errors import StoreClosedError, StoreError, StorePurgedError, StoreUnavailableError
from perdure.store.moved import PURGED, refuse_purged
from perdure.store.postgres import erase, lease, vectors
from perdure.store.postgres.connection import PostgresConnection, in_our_terms
from perdure.store.postgres.key import KEY_FILE, KEY_VARIABLE, key_of
from perdure.store.postgres.migrate import migrate, refusing_writes_elsewhere
from perdure.store.postgres.schema import TENANT
from perdure.store.sql import Row, run
from perdure.text.normalise import NORMALISER_VERSION

CONNECTIONS = 4
"""Of a process at the most: one writes, the others read."""
PATIENCE = 10.0
"""Seconds for which a writer waits for the others."""
REACH, REST = 2.0, 1.0
"""Seconds for which a connection is waited for, and for which none is asked for after that was in vain."""
WRITERS = 0x70726472
"""The lock of those who write for one tenant."""
# That the server is away is told by what raises; the pool would tell it to the host's terminal as well.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


class PostgresDatabase:
    """A tenant's tables. Usable from any thread."""

    shared = True

    def __init__(self, url: str, tenant: str, folder: Path, direct: str | None = None) -> None:
        """Open the database, and bring its schema up to date.

        Args:
            url: as libpq takes it, `postgresql://...`; its password is never told.
            tenant: whose rows are seen.
            folder: of this machine; the key lies there, unless the environment names it.
            direct: the address past a pooler, by which the schema is brought up to date; None: the same.

        Raises:
            StoreUnavailableError: it cannot be reached.
            StoreTooNewError: a newer perdure made its schema.
        """
        self.path = Path("postgresql")
        self.refusal: str | None = None
        self.displaced = False
        self._key, self._away = key_of(folder), 0.0
        self._tenant, self._process, self._closed = tenant, os.getpid(), False
        self._wrapped: WeakKeyDictionary[Any, PostgresConnection] = WeakKeyDictionary()
        wanted = refusing_writes_elsewhere(url)
        self._pool = ConnectionPool(
            url, min_size=1, max_size=CONNECTIONS, timeout=REACH, open=False,
            kwargs={"connect_timeout": int(PATIENCE), "application_name": "perdure", "prepare_threshold": None,
                    "cursor_factory": psycopg.ClientCursor, **({"target_session_attrs": wanted} if wanted else {})},
        )  # fmt: skip
        self.compares = migrate(direct or url)
        self._lease = lease.Lease(self)
        with ExitStack() as opened:
            self._pool.open()
            opened.callback(self._pool.close)
            self._begin()
            opened.pop_all()

    @contextmanager
    def write(self, *, durable: bool = True, keep: bool = True) -> Iterator[PostgresConnection]:
        """Run a transaction; see `Database.write`. Those who write for one tenant do so one after the other."""
        with self._taken() as (raw, connection):
            asynchronous = "" if durable else "SET LOCAL synchronous_commit = off; "
            told = raw.execute(
                f"SET LOCAL lock_timeout = {int(PATIENCE * 1000)}; {asynchronous}"
                "SELECT pg_advisory_xact_lock(%s, hashtext(%s)); SELECT value FROM meta WHERE key = %s",
                (WRITERS, self._tenant, PURGED),
            )
            while told.nextset():
                pass
            refuse_purged(told.fetchall())
            connection.in_transaction = True
            try:
                lease.check(connection)
                yield connection
                if keep:
                    raw.commit()
            finally:
                connection.in_transaction = False

    @contextmanager
    def beside(self) -> Iterator[PostgresConnection]:
        """Run a transaction that waits for no writer. Only for rows that no other transaction of the store changes."""
        with self._taken() as (raw, connection):
            yield connection
            raw.commit()

    @contextmanager
    def read(self, *, deadline: float | None = None) -> Iterator[PostgresConnection]:
        """Lend a connection that sees one state, for the block; see `Database.read`."""
        first = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
        if deadline is not None:
            first += f"; SET LOCAL statement_timeout = {max(1, int((deadline - time.monotonic()) * 1000))}"
        with self._taken(deadline, first) as (_, connection):
            yield connection

    def tidy(self, pause: Callable[[], None]) -> str:
        """Have the server look at its statistics; what was deleted its own housekeeping clears away."""
        filled = self.make_comparable(pause) if self.compares else 0
        self._outside("ANALYZE facts, facts_fts, facts_terms, facts_words, vectors, journal")
        if not self.compares:
            return "statistics are new"
        return f"statistics are new, {filled} vectors made comparable, {self._graphs()} scopes have a graph"

    def _graphs(self) -> int:
        """Make and remove graphs, so that each large scope has one; return how many there are."""
        with self.read() as connection:
            there, crowds = vectors.graphs(connection), vectors.crowds(connection)
        kept = {graph.name for graph, _, _ in crowds if there.get(graph.name)}
        for name in there.keys() - kept:
            self._outside(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        made = [(graph, dims) for graph, dims, count in crowds if graph.name not in kept and count > vectors.EXACT]
        for graph, dims in made:
            self._outside(graph.sql(dims))
        return len(kept) + len(made)

    def make_comparable(self, pause: Callable[[], None] = lambda: None) -> int:
        """Have all vectors comparable; return how many were looked at, since they were not."""
        while vectors.place(self):
            pause()
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
        with self.read() as connection:
            [(version,)] = run(connection, "SELECT current_setting('server_version')")
        took = 1000 * (time.monotonic() - began)
        vectors = "with pgvector" if self.compares else "without pgvector: each process holds its vectors"
        return f"PostgreSQL {version.split()[0]} {vectors}, {took:.1f} ms to ask"

    def erase(self, now: float) -> tuple[dict[str, int], int]:
        """Remove the tenant; return how many rows of each table went, and how many are left.

        Raises:
            StoreError: one of its kinds; either all of it went, or nothing.
        """
        with self.write() as connection:
            gone = erase.erase(connection, now)
        if self.compares:
            self._graphs()
        self.shed()
        with self.read() as connection:
            return gone, erase.left(connection)

    def shed(self, *, rows: bool = True) -> str | None:
        """Have the server clear away deleted rows; see `Backend.shed`. Its log and its backups are out of reach."""
        if rows:
            self._outside(
                "VACUUM facts, facts_fts, facts_terms, facts_words, vectors, journal, memory_links, receipts, outbox"
            )
        return None

    def _outside(self, sql: str) -> None:
        """Run what runs in no transaction."""
        with in_our_terms(), self._pool.connection() as raw:
            raw.commit()
            raw.autocommit = True
            try:
                raw.execute(sql)
            finally:
                raw.autocommit = False

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
            with suppress(StoreError):
                self._lease.give_up()
            self._closed = True
            self._pool.close()

    @contextmanager
    def _taken(
        self, deadline: float | None = None, first: str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
    ) -> Iterator[tuple[psycopg.Connection[Row], PostgresConnection]]:
        """Take a connection into a transaction of the tenant: here alone it is named."""
        if self._process != os.getpid():
            raise StoreClosedError("the database was opened before this process was forked; open it anew here")
        if self._closed:
            raise StoreClosedError("the database is closed")
        if time.monotonic() < self._away:
            raise StoreUnavailableError("the database could not be reached a moment ago")
        patience = PATIENCE if deadline is None else max(0.01, deadline - time.monotonic())
        with self._reached(), in_our_terms(), ExitStack() as taken:
            raw = self._begun(f"{first}; SELECT set_config(%s, %s, true)", min(patience, REACH))
            taken.callback(self._pool.putconn, raw)
            connection = self._wrapped.get(raw)
            if connection is None:
                connection = self._wrapped[raw] = PostgresConnection(raw, self._key, compares=self.compares)
            try:
                yield raw, connection
            finally:
                if not raw.closed:
                    raw.rollback()

    def _begun(self, first: str, patience: float) -> psycopg.Connection[Row]:
        """Return a connection in a transaction of the tenant; after a restart of the server old ones do not work."""
        until = time.monotonic() + patience
        while True:
            raw: psycopg.Connection[Row] = self._pool.getconn(max(0.001, until - time.monotonic()))
            try:
                raw.execute(first, (TENANT, self._tenant))
                return raw
            except psycopg.OperationalError:
                # It was broken, and is not taken back.
                self._pool.putconn(raw)
                if time.monotonic() >= until:
                    raise

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Let nobody wait for a server that was away a moment ago: a turn asks for several things."""
        try:
            yield
        except StorePurgedError:
            raise
        except StoreUnavailableError:
            self._away = time.monotonic() + REST
            raise

    def _begin(self) -> None:
        """Note what a new tenant has from the beginning, and see that the key is its own.

        Raises:
            StoreUnavailableError: what is there was written with another key.
        """
        name = hashlib.sha256(self._key).hexdigest()[:16]
        with self.write() as connection:
            run(connection, "INSERT OR IGNORE INTO meta VALUES (?, ?)", ("normaliser", str(NORMALISER_VERSION)))
            run(connection, "INSERT OR IGNORE INTO meta VALUES (?, ?)", ("key_name", name))
            [(known,)] = run(connection, "SELECT value FROM meta WHERE key = 'key_name'")
        if known != name:
            raise StoreUnavailableError(
                f"the database was written with another key; set {KEY_VARIABLE}, or copy {KEY_FILE} from a machine"
                " that has it"
            )
