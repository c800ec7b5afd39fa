"""One tenant's part of a PostgreSQL database: connections, transactions, and errors in our own terms."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from perdure.errors import (
    ExtensionError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreTooNewError,
    StoreUnavailableError,
)
from perdure.store.folder import private_file
from perdure.store.postgres.dialect import translated
from perdure.store.postgres.schema import STEPS, TENANT
from perdure.store.postgres.words import query, rank, vector
from perdure.store.sql import Row, run
from perdure.text.normalise import NORMALISER_VERSION

try:
    import psycopg
    from psycopg import errors
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as error:
    raise ExtensionError(
        f"PostgreSQL's client is not installed ({error}); run: pip install 'perdure[postgres]'"
    ) from error

CONNECTIONS = 4
"""Of a process at the most: one writes, the others read."""
PATIENCE = 10.0
"""Seconds for which a writer waits for the others."""
REACH, REST = 2.0, 1.0
"""Seconds for which a connection is waited for, and for which none is asked for after that was in vain."""
NUL = "\U0010fffe"
"""Stands for NUL, with which the store parts the names in a key. It is no character, and in no text."""
WRITERS, MIGRATION = 0x70726472, 0x70726473
"""Locks: of those who write for one tenant, and of who brings the schema up to date."""
KEY_VARIABLE, KEY_FILE, KEY_BYTES = "PERDURE_STORE_KEY", "store.key", 32
_INDEX = "INSERT INTO facts_fts (rowid, text, entity, key, value, category)"


class PostgresConnection:
    """A connection in a transaction of one tenant, as the store's statements know one."""

    def __init__(self, raw: psycopg.Connection[Row], key: bytes) -> None:
        self._raw = raw
        self.key = key
        self._changes = 0
        self.in_transaction = False

    def execute(self, statements: str, bindings: Any = None, /) -> Iterator[Any]:
        """Run a statement of the store, and return its rows."""
        if statements.startswith(_INDEX):
            row, *columns = bindings
            statements = "INSERT INTO facts_fts (rowid, terms, words) VALUES (?, CAST(? AS tsvector), ?)"
            bindings = (row, *vector(columns))
        made = translated(statements)
        placed = enumerate(() if isinstance(bindings, Mapping) else bindings or ())
        named = bindings if isinstance(bindings, Mapping) else {f"p{at}": each for at, each in placed}
        values = {name: _given(value) for name, value in named.items()}
        sql = made.sql
        if made.query is not None:
            values[f"p{made.query}"], words = query(values[f"p{made.query}"])
            if made.ranked:
                order, more = self._rank(words)
                sql = sql.replace("facts_fts.rank", order)
                values |= more
        cursor = self._raw.execute(sql, values or None)
        self._changes = cursor.rowcount
        rows = cursor.fetchall() if cursor.description is not None else []
        return iter([tuple(map(_found, row)) for row in rows])

    def __enter__(self) -> PostgresConnection:
        """What is read is of one moment in any case."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Nothing is to be done."""

    def executemany(self, statements: str, sequenceofbindings: Any, /) -> Iterable[Any]:
        """Run a statement once for each row of values."""
        for bindings in sequenceofbindings:
            self.execute(statements, bindings)
        return ()

    def last_insert_rowid(self) -> int:
        """Return the number of the row that was inserted last."""
        return int(self._raw.execute("SELECT current_setting('perdure.inserted')").fetchall()[0][0])

    def changes(self) -> int:
        """Return how many rows the last statement changed."""
        return self._changes

    def _rank(self, words: Sequence[str]) -> tuple[str, Mapping[str, str]]:
        sql = "SELECT term, doc FROM facts_terms WHERE term = ANY (%s)"
        documents: dict[str, int] = dict(self._raw.execute(sql, (list(words),)).fetchall())
        sql = "SELECT name, value FROM counters WHERE name IN ('rows of words', 'words')"
        counted: dict[str, int] = dict(self._raw.execute(sql).fetchall())
        rows = int(counted.get("rows of words", 0))
        return rank(words, documents, rows, counted.get("words", 0) / max(1, rows))


class PostgresDatabase:
    """A tenant's tables. Usable from any thread."""

    shared = True

    def __init__(self, url: str, tenant: str, folder: Path) -> None:
        """Open the database, and bring its schema up to date.

        Args:
            url: as libpq takes it, `postgresql://...`; its password is never told.
            tenant: whose rows are seen.
            folder: of this machine; the key lies there, unless the environment names it.

        Raises:
            StoreUnavailableError: it cannot be reached.
            StoreTooNewError: a newer perdure made its schema.
        """
        self.path = Path("postgresql")
        self.refusal: str | None = None
        self.displaced = False
        self._key, self._away = _key(folder), 0.0
        self._tenant, self._process, self._closed = tenant, os.getpid(), False
        self._wrapped: WeakKeyDictionary[Any, PostgresConnection] = WeakKeyDictionary()
        self._pool = ConnectionPool(
            url, min_size=1, max_size=CONNECTIONS, timeout=REACH, open=False, check=ConnectionPool.check_connection,
            kwargs={"connect_timeout": int(PATIENCE), "application_name": "perdure", "prepare_threshold": None,
                    "cursor_factory": psycopg.ClientCursor},
        )  # fmt: skip
        with ExitStack() as opened:
            self._pool.open()
            opened.callback(self._pool.close)
            self._migrate()
            self._begin()
            opened.pop_all()

    @contextmanager
    def write(self, *, durable: bool = True, keep: bool = True) -> Iterator[PostgresConnection]:
        """Run a transaction; see `Database.write`. Those who write for one tenant do so one after the other."""
        with self._taken() as (raw, connection):
            raw.execute(f"SET LOCAL lock_timeout = {int(PATIENCE * 1000)}")
            raw.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (WRITERS, self._tenant))
            if not durable:
                raw.execute("SET LOCAL synchronous_commit = off")
            connection.in_transaction = True
            try:
                yield connection
                if keep:
                    raw.commit()
            finally:
                connection.in_transaction = False
                raw.rollback()

    @contextmanager
    def read(self, *, deadline: float | None = None) -> Iterator[PostgresConnection]:
        """Lend a connection that sees one state, for the block; see `Database.read`."""
        with self._taken(deadline, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY") as (raw, connection):
            try:
                if deadline is not None:
                    left = max(1, int((deadline - time.monotonic()) * 1000))
                    raw.execute(f"SET LOCAL statement_timeout = {left}")
                yield connection
            finally:
                raw.rollback()

    def tidy(self, pause: Callable[[], None]) -> str:
        """Have the server look at its statistics; what was deleted its own housekeeping clears away."""
        self._outside("ANALYZE facts, facts_fts, vectors, journal")
        return "statistics are new"

    def shed(self, *, rows: bool = True) -> str | None:
        """Have the server clear away deleted rows; see `Backend.shed`. Its log and its backups are out of reach."""
        if rows:
            self._outside("VACUUM facts, facts_fts, facts_terms, vectors, journal, memory_links, receipts, outbox")
        return None

    def _outside(self, sql: str) -> None:
        """Run what runs in no transaction."""
        with _in_our_terms(), self._pool.connection() as raw:
            raw.commit()
            raw.autocommit = True
            try:
                raw.execute(sql)
            finally:
                raw.autocommit = False

    def check_place(self) -> None:
        """Nothing can be removed from under it."""

    def close(self) -> None:
        """Close all connections."""
        if not self._closed and self._process == os.getpid():
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
        with self._reached(), _in_our_terms(), self._pool.connection(timeout=min(patience, REACH)) as raw:
            connection = self._wrapped.get(raw)
            if connection is None:
                connection = self._wrapped[raw] = PostgresConnection(raw, self._key)
            raw.execute(first)
            raw.execute("SELECT set_config(%s, %s, true)", (TENANT, self._tenant))
            yield raw, connection

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Let nobody wait for a server that was away a moment ago: a turn asks for several things."""
        try:
            yield
        except StoreUnavailableError:
            self._away = time.monotonic() + REST
            raise

    def _migrate(self) -> None:
        with _in_our_terms(), self._pool.connection() as raw:
            raw.execute("SELECT pg_advisory_xact_lock(%s, 0)", (MIGRATION,))
            raw.execute("CREATE TABLE IF NOT EXISTS perdure_schema (version integer NOT NULL)")
            rows = raw.execute("SELECT version FROM perdure_schema").fetchall()
            version = int(rows[0][0]) if rows else 0
            if version > len(STEPS):
                raise StoreTooNewError(
                    f"the database has schema {version}, this perdure knows up to {len(STEPS)}; upgrade perdure"
                )
            for step in STEPS[version:]:
                raw.execute(step)
            raw.execute("DELETE FROM perdure_schema")
            raw.execute("INSERT INTO perdure_schema VALUES (%s)", (len(STEPS),))

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


def _given(value: Any) -> Any:
    """Return a value as PostgreSQL takes it: its texts hold no NUL, and it takes a truth for no number."""
    if isinstance(value, str):
        return str(value).replace("\0", NUL)
    return int(value) if isinstance(value, bool) else value


def _found(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value.replace(NUL, "\0") if isinstance(value, str) and NUL in value else value


def _key(folder: Path) -> bytes:
    """Return the secret of the store: from the environment, or the file that is made once.

    Raises:
        StoreUnavailableError: it is no key.
    """
    path, named = folder / KEY_FILE, os.environ.get(KEY_VARIABLE)
    if not named and not path.exists():
        made = folder / f"{KEY_FILE}.{secrets.token_hex(4)}"
        private_file(made)
        made.write_text(secrets.token_hex(KEY_BYTES), encoding="ascii")
        # Whole or not at all, and another process may have been first.
        with suppress(FileExistsError):
            os.link(made, path)
        made.unlink()
    where, text = (KEY_VARIABLE, named) if named else (str(path), path.read_text(encoding="ascii", errors="replace"))
    if re.fullmatch(rf"[0-9a-fA-F]{{{2 * KEY_BYTES}}}", text.strip()) is None:
        raise StoreUnavailableError(f"{where} is no key: it has to be {2 * KEY_BYTES} hex digits")
    return bytes.fromhex(text.strip())


@contextmanager
def _in_our_terms() -> Iterator[None]:
    try:
        yield
    except (errors.QueryCanceled, errors.LockNotAvailable) as error:
        raise StoreBusyError("the database took too long and was broken off; retry") from error
    except (errors.DiskFull, errors.OutOfMemory) as error:
        raise StoreFullError("the database has no room left and kept nothing of this change") from error
    except (PoolTimeout, psycopg.OperationalError) as error:
        raise StoreUnavailableError(f"the database cannot be reached ({type(error).__name__})") from error
    except psycopg.Error as error:
        raise StoreError(f"the database refused a statement ({type(error).__name__})") from error
