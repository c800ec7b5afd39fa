"""The mark of a store whose memories were moved elsewhere: what it still has is a former state."""

from __future__ import annotations

from perdure.errors import StoreUnavailableError
from perdure.store.sql import Connection, run

MOVED = "moved to"
"""Under this name such a store says where they are now."""


def refuse_moved(connection: Connection) -> None:
    """See that the memories of a store are still here.

    Raises:
        StoreUnavailableError: they are not.
    """
    moved = run(connection, "SELECT value FROM meta WHERE key = ?", (MOVED,))
    if moved:
        raise StoreUnavailableError(
            f"the memories were moved to {moved[0][0]}; name that in the settings, or move them back: perdure move --to"
        )
