"""Purging a tenant: all its rows on the server, and what the folders of its machines have of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from perdure.care.teardown import clear
from perdure.errors import InputError
from perdure.store.store import Store

BEYOND = (
    "the server's log and its backups, until they have run out",
    "folders of other machines, until a program opens them or is running there",
)


@dataclass(frozen=True, slots=True)
class TenantPurge:
    """What was purged.

    Attributes:
        tenant: whose memories.
        at: when, epoch seconds.
        rows: how many each table had.
        left: rows of the tenant that a count has found since; 0 is what is certified.
        files: what was removed from this machine's folder.
        beyond: what perdure cannot reach, in words.
        certificate: a hash of all that, made with the store's key, which nobody else can make.
    """

    tenant: str
    at: float
    rows: Mapping[str, int]
    left: int
    files: tuple[str, ...]
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


def purge_tenant(store: Store) -> TenantPurge:
    """Remove all memories of a tenant, of every scope. There is no way back, and its name is not used again.

    Raises:
        InputError: the store is in a folder.
        StoreError: one of its kinds; either all rows went, or none.
    """
    tenant = tenant_of(store)
    now = store.clock.now()
    rows, left = store.database.erase(now)
    store.inbox.close()
    files = tuple(sorted(path.name for path in clear(store.folder)))
    done = TenantPurge(tenant, now, rows, left, files, BEYOND)
    told = json.dumps(asdict(done), sort_keys=True).encode()
    return replace(done, certificate=hashlib.blake2b(told, key=store.key, digest_size=16).hexdigest())
