"""Opening the store that the settings name, for commands that do without an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perdure.care.teardown import clear
from perdure.engine.settings import Settings
from perdure.errors import StorePurgedError
from perdure.store.store import Absent, Server, Store


def server_of(settings: Settings) -> Server | None:
    """Return the database that holds the truth; None: it is in the data folder."""
    if settings.store_url is None:
        return None
    return Server(settings.store_url, settings.store_tenant, settings.store_direct_url, settings.ack == "database")


def store_of(home: Path, settings: Settings, **given: Any) -> Store:
    """Open a store; see `Store`. A folder whose memories were purged elsewhere loses what it has of them.

    Raises:
        PerdureError: it cannot be opened.
    """
    try:
        return Store(home, server=server_of(settings), **given)
    except StorePurgedError:
        clear(home)
        raise


def open_store(folder: Path, *, absent: Absent = "create") -> Store:
    """Open the store of a data folder, or the database that the settings name in its place; see `Store`.

    Raises:
        PerdureError: it cannot be opened, or a setting cannot be used.
    """
    return store_of(folder, Settings.load(), absent=absent)
