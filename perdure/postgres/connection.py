"""A connection to PostgreSQL that runs the statements of the store, and its errors in our own terms."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from perdure.errors import (
    ExtensionError,
    SettingsError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from perdure.extras import how_to_install
from perdure.postgres.dialect import placed
from perdure.store.sql import Dialect, Row, patience

try:
    import psycopg
    from psycopg import errors
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import TransactionStatus
    from psycopg_pool import PoolTimeout
except ImportError as error:
    raise ExtensionError(
        f"the PostgreSQL client is not installed ({error}); run: {how_to_install('postgres')}"
    ) from error

NUL = "\U0010fffe"
"""Stands for NUL, with which the store parts the names in a key. It is no character, and in no text."""
REACH = 2
"""Seconds for which a connection is waited for; libpq takes no less."""
GRACE = 0.25
"""Seconds that the server has to break off by itself what has a deadline."""


class Impatient(psycopg.Connection[Row]):
    """A connection that waits for no answer without an end: a server that is frozen closes nothing."""

    deadline: float | None = None

    def wait(self, *given: Any, **named: Any) -> Any:
        """Wait for an answer as long as the thread has patience, and until the deadline; then close the connection."""
        seconds = patience()
        if self.deadline is not None:
            seconds = min(seconds, max(0.0, self.deadline - time.monotonic()) + GRACE)
        named["timeout"] = None if math.isinf(seconds) else seconds
        try:
            return super().wait(*given, **named)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                # What it would answer now belongs to a question that nobody asks any more.
                self.pgconn.finish()
            raise


class PostgresConnection:
    """A connection in a transaction of one tenant, as the store's statements know one."""

    def __init__(self, raw: psycopg.Connection[Row], key: bytes, dialect: Dialect) -> None:
        """Run statements on a connection of the driver's."""
        self._raw, self.key, self.dialect = raw, key, dialect
        self._changes = 0
        self.in_transaction = False

    def execute(self, statements: str, bindings: Any = None, /) -> Iterator[Any]:
        """Run a statement of the store, and return its rows."""
        cursor = self._raw.execute(placed(statements), list(map(_given, bindings or ())))
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
        self._raw.cursor().executemany(placed(statements), [list(map(_given, row)) for row in sequenceofbindings])
        return ()

    def last_insert_rowid(self) -> int:
        """Return the number of the row that was inserted last."""
        return int(self._raw.execute("SELECT current_setting('perdure.inserted')").fetchall()[0][0])

    def changes(self) -> int:
        """Return how many rows the last statement changed."""
        return self._changes


def _given(value: Any) -> Any:
    """Return a value as PostgreSQL takes it: its texts hold no NUL, and it takes a truth for no number."""
    if isinstance(value, str):
        return str(value).replace("\0", NUL)
    return int(value) if isinstance(value, bool) else value


def _found(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value.replace(NUL, "\0") if isinstance(value, str) and NUL in value else value


def options(url: str) -> dict[str, Any]:
    """Return with what a connection is made, beside its address.

    Of several servers the one is taken that can be written, unless the address says it itself. What is no address is
    not told in the error, as there may be a password in it.
    """
    try:
        told = conninfo_to_dict(url)
    except psycopg.Error:
        told = {}
    if not url.startswith(("postgresql://", "postgres://")) or not told:
        raise SettingsError(
            "store_url is not the address of a PostgreSQL database; write postgresql://USER@HOST/DATABASE"
        )
    made: dict[str, Any] = {
        "application_name": "perdure", "prepare_threshold": None, "cursor_factory": psycopg.ClientCursor,
        # A machine that is cut off is noticed within half a minute.
        "connect_timeout": REACH, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
        "tcp_user_timeout": 25_000
    }  # fmt: skip
    if "," in str(told.get("host") or ""):
        made["target_session_attrs"] = "read-write"
    return {name: value for name, value in made.items() if name not in told}


@contextmanager
def in_our_terms() -> Iterator[None]:
    """Raise what the driver raises as one of our errors; no text of a statement, and no address, is in it."""
    try:
        yield
    except (errors.QueryCanceled, errors.LockNotAvailable) as error:
        raise StoreBusyError("the database took too long and the statement was cancelled; retry") from error
    except (errors.DeadlockDetected, errors.SerializationFailure, errors.IdleInTransactionSessionTimeout) as error:
        raise StoreBusyError("the database rolled this change back because of a conflicting one; retry") from error
    except (errors.DiskFull, errors.OutOfMemory) as error:
        raise StoreFullError(
            "the database is out of space and did not store this change; free some on its server and retry"
        ) from error
    except errors.ReadOnlySqlTransaction as error:
        raise StoreUnavailableError(
            "the server is read-only; set store_url to the one that accepts writes, or to all, comma-separated"
        ) from error
    except (PoolTimeout, psycopg.OperationalError) as error:
        raise StoreUnavailableError(
            f"the database cannot be reached ({type(error).__name__}); check the server, and PERDURE_STORE_URL"
        ) from error
    except psycopg.Error as error:
        raise StoreError(f"the database rejected a statement ({type(error).__name__}); run perdure doctor") from error
