"""Removing a tenant: every row of it in every table, but for a mark by which other machines learn that it is gone."""

from __future__ import annotations

from perdure.store.moved import PURGED
from perdure.store.sql import Connection, run

FIRST = ("memory_links", "proposals", "vectors", "said")
"""Tables whose rows point at others."""
_TABLES = (
    "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'"
    " WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname"
)


def erase(connection: Connection, now: float) -> dict[str, int]:
    """Delete all rows of the tenant; return how many each table had.

    Args:
        connection: of a write.
        now: epoch seconds; it stands in the mark.
    """
    tables = [name for (name,) in run(connection, _TABLES)]
    counts = {name: run(connection, f"SELECT count(*) FROM {name}")[0][0] for name in tables}
    for name in sorted(tables, key=lambda name: (name not in FIRST, name)):
        run(connection, f"DELETE FROM {name}")
    # What counts words counts while they go.
    run(connection, "DELETE FROM counters")
    run(connection, "INSERT INTO meta VALUES (?, ?)", (PURGED, repr(now)))
    return {name: count for name, count in counts.items() if count}


def left(connection: Connection) -> int:
    """Return how many rows of the tenant there are, beside the mark."""
    tables = [name for (name,) in run(connection, _TABLES)]
    return sum(int(run(connection, f"SELECT count(*) FROM {name}")[0][0]) for name in tables) - 1
