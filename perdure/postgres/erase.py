"""Removing a tenant: every row of it in every table, but for a mark by which other machines learn that it is gone."""

from __future__ import annotations

from perdure.store.moved import PURGED
from perdure.store.sql import Connection, run

FIRST = ("memory_links", "proposals", "vectors", "said")
"""Tables whose rows point at others."""
# Said beside the wall of row-level security: where that does not hold, others' rows must stay all the same.
_OWN = "tenant = current_setting('perdure.tenant')"
_TABLES = (
    "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'"
    " WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname"
)


def tables(connection: Connection) -> list[str]:
    """Return the names of the tables that have rows of tenants."""
    return [name for (name,) in run(connection, _TABLES)]


def erase(connection: Connection, now: float) -> dict[str, int]:
    """Delete all rows of the tenant; return how many each table had.

    Args:
        connection: of a write.
        now: epoch seconds; it stands in the mark, unless one of an earlier time is there.
    """
    names = tables(connection)
    marks = run(connection, "SELECT value FROM meta WHERE key = ?", (PURGED,))
    counts = {name: run(connection, f"SELECT count(*) FROM {name} WHERE {_OWN}")[0][0] for name in names}
    for name in sorted(names, key=lambda name: (name not in FIRST, name)):
        run(connection, f"DELETE FROM {name} WHERE {_OWN}")
    # What counts words counts while they go.
    run(connection, f"DELETE FROM counters WHERE {_OWN}")
    run(connection, "INSERT INTO meta VALUES (?, ?)", (PURGED, marks[0][0] if marks else repr(now)))
    return {name: count for name, count in counts.items() if count}


def left(connection: Connection) -> int:
    """Return how many rows of the tenant there are, beside the mark."""
    counts = [run(connection, f"SELECT count(*) FROM {name} WHERE {_OWN}")[0][0] for name in tables(connection)]
    return int(sum(counts)) - 1
