"""Opening the store that the settings name, for commands that do without an engine."""

from __future__ import annotations

from pathlib import Path

from perdure.engine.settings import Settings
from perdure.store.store import Absent, Store


def open_store(folder: Path, *, absent: Absent = "create") -> Store:
    """Open the store of a data folder, or the database that the settings name in its place; see `Store`.

    Raises:
        PerdureError: it cannot be opened, or a setting cannot be used.
    """
    settings = Settings.load()
    return Store(folder, absent=absent, url=settings.store_url, tenant=settings.store_tenant)
