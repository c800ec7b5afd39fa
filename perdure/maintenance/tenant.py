"""Purging a tenant: all its rows on the server, and what the folders of its machines have of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from perdure.errors import InputError
from perdure.maintenance.certificate import BEYOND as OUTSIDE
from perdure.maintenance.certificate import SERVER
from perdure.maintenance.teardown import clear, remaining
from perdure.store.moved import PURGED
from perdure.store.store import Store

BEYOND = (
    SERVER,
    "folders of other machines, until a program opens them or is running there",
    "a store that another machine moved to this one, its backups and exports; run perdure purge --tenant there",
    *OUTSIDE,
)


@dataclass(frozen=True, slots=True)
class TenantPurge:
    """What was purged.

    Attributes:
        tenant: whose memories.
        at: when, epoch seconds; of a purge that was cut off, when it was begun.
        rows: how many each table had; those that went before it was cut off are not counted.
        left: rows of the tenant that a count has found since; 0 is what is certified.
        files: what was removed from this machine's folder, as paths in it.
        stays: what else perdure made there, such as the vault, or a store of the folder's own.
        beyond: what perdure cannot reach, in words.
        certificate: a hash of all that, made with the store's key, which nobody else can make.
    """

    tenant: str
    at: float
    rows: Mapping[str, int]
    left: int
    files: tuple[str, ...]
    stays: tuple[str, ...]
    beyond: tuple[str, ...]
    certificate: str = ""


def tenant_of(store: Store) -> str:
    """Return whose memories a store on a server holds.

    Raises:
        InputError: the store is in a folder.
    """
    if store.server is None:
        raise InputError("the store is in a folder, and has no tenant; `perdure uninstall` removes it as a whole")
    return store.server.tenant


def purged_at(store: Store) -> float | None:
    """Return when a tenant was purged, epoch seconds; None: it was not."""
    mark = store.meta(PURGED)
    return None if mark is None else float(mark)


def purge_tenant(store: Store) -> TenantPurge:
    """Remove all memories of a tenant, of every scope. There is no way back, and its name is not used again.

    Of a tenant that was purged already it removes what is left, and certifies that.

    Raises:
        InputError: the store is in a folder.
        StoreError: one of its kinds; either all rows went, or none. Called again, it goes on where it was.
    """
    tenant, now, before = tenant_of(store), store.clock.now(), purged_at(store)
    rows, left = store.database.erase(now)
    if before is not None:
        # The mark itself.
        rows = {table: count for table, count in rows.items() if table != "meta"}
    store.inbox.close()
    files = tuple(path.relative_to(store.folder).as_posix() for path in clear(store.folder, copies=True))
    stays = tuple(remaining(store.folder))
    done = TenantPurge(tenant, now if before is None else before, rows, left, files, stays, BEYOND)
    told = json.dumps(asdict(done), sort_keys=True).encode()
    return replace(done, certificate=hashlib.blake2b(told, key=store.key, digest_size=16).hexdigest())
