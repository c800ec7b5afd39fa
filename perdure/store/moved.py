"""The marks of a store whose memories are no longer there: they were moved elsewhere, or purged as a whole."""

from __future__ import annotations

import time

from perdure.errors import StorePurgedError, StoreUnavailableError
from perdure.store.sql import Connection, Row, run

MOVED = "moved to"
"""Under this name a store says where its memories are now."""
PURGED = "purged"
"""Under this name a tenant says when all of it was purged, in epoch seconds."""


def refuse_moved(connection: Connection) -> None:
    """See that the memories of a store are still here.

    Raises:
        StoreUnavailableError: they were moved.
        StorePurgedError: they were purged.
    """
    marks = dict[str, str](run(connection, "SELECT key, value FROM meta WHERE key IN (?, ?)", (MOVED, PURGED)))
    if MOVED in marks:
        raise StoreUnavailableError(
            f"the memories were moved to {marks[MOVED]}; name that in the settings, or move them back:"
            " perdure move --to"
        )
    if PURGED in marks:
        refuse_purged([(marks[PURGED],)])


def refuse_purged(rows: list[Row]) -> None:
    """See that a store was not purged, by what stands under `PURGED`.

    Raises:
        StorePurgedError: it was.
    """
    if rows:
        day = time.strftime("%Y-%m-%d", time.gmtime(float(rows[0][0])))
        raise StorePurgedError(f"all memories of this tenant were purged on {day}; name another store_tenant")
