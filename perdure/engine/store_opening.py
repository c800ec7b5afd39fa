"""Opening the store that the settings name, for commands that do without an engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from perdure.engine.settings import Settings
from perdure.errors import StorePurgedError, StoreUnavailableError
from perdure.store.folder import MACHINE
from perdure.store.server_key import known_key
from perdure.store.store import Absent, ObjectStore, Server, Store, machine_prefix
from perdure.text.timestamps import zone_of


def server_of(settings: Settings) -> Server | None:
    """Return the database that holds the truth; None: it is in the data folder."""
    if settings.store_url is None:
        return None
    return Server(settings.store_url, settings.store_tenant, settings.store_direct_url, settings.ack == "database")


def objects_of(settings: Settings) -> ObjectStore | None:
    """Return where the LanceDB table is, if the settings name another place than the data folder."""
    return None if settings.lance_url is None else ObjectStore(settings.lance_url, settings.lance_storage_options)


def store_of(home: Path, settings: Settings, *, guest: bool = False, moved: bool = False, **given: Any) -> Store:
    """Open a store; see `Store`. A machine's folder of a store that was purged elsewhere loses what it has of it.

    `guest`: make no store where there is none; who asks so keeps no house, either. `moved`: on a server, open it even
    if its memories were moved elsewhere, to look into a copy. `given`: arguments of `Store`.
    """
    server = server_of(settings)
    if server is not None:
        server = replace(server, moved=moved)
    if guest:
        given["absent"] = "empty"
    try:
        return Store(home, server=server, objects=objects_of(settings), zone=zone_of(settings.timezone), **given)
    except StorePurgedError:
        if server is not None and _serves(home, server):
            from perdure.maintenance.teardown import clear

            clear(home)
        raise


def open_store(folder: Path, *, absent: Absent = "create") -> Store:
    """Open the store of a data folder, or the database that the settings name in its place; see `Store`."""
    return store_of(folder, Settings.load(), absent=absent)


def open_tenant(folder: Path) -> Store:
    """Open the store that the settings name to purge all of it, also if that was begun before; nothing is removed."""
    server = server_of(Settings.load())
    try:
        return Store(folder, server=server, absent="empty")
    except StorePurgedError:
        if server is None:
            raise
        return Store(folder, server=replace(server, moved=True))


def _serves(home: Path, server: Server) -> bool:
    """Return whether a folder is a machine's for this very tenant, with this very key; nothing is made there."""
    try:
        key = known_key(home)
        return key is not None and (home / MACHINE).exists() and bool(machine_prefix(home, server.tenant, key))
    except StoreUnavailableError:
        return False
