"""The marks of a store whose memories are no longer there: they were moved elsewhere, or purged as a whole."""

from __future__ import annotations

import time
from pathlib import Path

from perdure.errors import StorePurgedError, StoreUnavailableError
from perdure.store.access import opened
from perdure.store.seals import store_key
from perdure.store.sql import Connection, Row, run

MOVED = "moved to"
"""Under this name a store says where its memories are now."""
PURGED = "purged"
"""Under this name a tenant says when all of it was purged, in epoch seconds."""
MARKS = "SELECT key, value FROM meta WHERE key IN (?, ?)"
"""Finds both."""


def refuse_moved(connection: Connection) -> None:
    """See that the memories of a store are still here."""
    refuse_marked(run(connection, MARKS, (MOVED, PURGED)))


def refuse_marked(rows: list[Row]) -> None:
    """See that a store has no mark, by what `MARKS` finds; see `refuse_moved`."""
    marks = dict[str, str](rows)
    if MOVED in marks:
        raise StoreUnavailableError(
            f"the memories were moved to {marks[MOVED]}; use that in the settings, or move them back: perdure move --to"
        )
    if PURGED in marks:
        day = time.strftime("%Y-%m-%d", time.gmtime(float(marks[PURGED])))
        raise StorePurgedError(f"all memories of this tenant were purged on {day}; choose another store_tenant")


def refuse_own(folder: Path, key: bytes) -> None:
    """See that a folder that is to serve a shared store holds no memories of another one, which nobody would see."""
    path = folder / "facts.db"
    if not path.exists():
        return
    with opened(path, looks=True) as connection:
        if not run(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'facts'"):
            return
        if store_key(connection) != key and run(connection, "SELECT 1 FROM facts LIMIT 1"):
            refuse_moved(connection)
            raise StoreUnavailableError(
                f"the folder {folder} has memories of its own; move them to the server, with store_url unset:"
                " perdure move --to URL, or choose another folder with --home"
            )
