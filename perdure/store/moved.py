"""The marks of a store whose memories are no longer there: they were moved elsewhere, or purged as a whole."""

from __future__ import annotations

import time

from perdure.errors import StorePurgedError, StoreUnavailableError
from perdure.store.sql import Connection, Row, run

MOVED = "moved to"
"""Under this name a store says where its memories are now."""
PURGED = "purged"
"""Under this name a tenant says when all of it was purged, in epoch seconds."""
MARKS = "SELECT key, value FROM meta WHERE key IN (?, ?)"
"""Finds both."""


def refuse_moved(connection: Connection) -> None:
    """See that the memories of a store are still here.

    Raises:
        StoreUnavailableError: they were moved.
        StorePurgedError: they were purged.
    """
    refuse_marked(run(connection, MARKS, (MOVED, PURGED)))


def refuse_marked(rows: list[Row]) -> None:
    """See that a store has no mark, by what `MARKS` finds; see `refuse_moved`."""
    marks = dict[str, str](rows)
    if MOVED in marks:
        raise StoreUnavailableError(
            f"the memories were moved to {marks[MOVED]}; name that in the settings, or move them back:"
            " perdure move --to"
        )
    if PURGED in marks:
        day = time.strftime("%Y-%m-%d", time.gmtime(float(marks[PURGED])))
        raise StorePurgedError(f"all memories of this tenant were purged on {day}; name another store_tenant")
