"""SQLite itself, for tests of what only it can do."""

from __future__ import annotations

import apsw

from perdure.store.sql import Connection


def as_sqlite(connection: Connection) -> apsw.Connection:
    """Return a store's connection as SQLite's."""
    assert isinstance(connection, apsw.Connection)
    return connection
