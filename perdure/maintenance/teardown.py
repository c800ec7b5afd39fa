"""Removing a data folder: what perdure made in it, and nothing else."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import apsw

from perdure.errors import InputError, StoreBusyError, StoreError, StoreUnavailableError
from perdure.maintenance.certificate import BEYOND as OUTSIDE
from perdure.maintenance.certificate import SERVER
from perdure.store.access import opened
from perdure.store.folder import MACHINE, PRESENCE, STAGES, alone, was_opened
from perdure.store.moved import MOVED, PURGED
from perdure.store.rollback_guard import FILE, Remembered, Truth, holds_something, judge
from perdure.store.seals import store_key
from perdure.store.server_key import known_key
from perdure.store.sql import run
from perdure.store.store import Store

MADE = (
    "facts.db*", "index-*.db*", "vault.db*", "lancedb", "lancedb-purged", "lancedb.sha256*", "inbox", "transcripts",
    "backups", "exports", *STAGES, "remembered.json*", "*.lock", "store.key*", f"{MACHINE}*", PRESENCE,
)  # fmt: skip
"""What perdure makes in a data folder. The folder may hold other files: it is the user's choice."""
DERIVED = ("index-*.db*", "inbox", "transcripts")
"""What a machine's folder has of a shared store."""
COPIES = ("facts.db*", "lancedb", "lancedb-purged", "lancedb.sha256*", "backups", "exports", *STAGES, f"{FILE}*")
"""What a folder has of a store that was moved to a shared one."""
BEYOND = (
    SERVER,
    "folders of other machines, until a program opens them there",
    "a store that another machine moved to this one, its backups and exports; run perdure purge --tenant there",
    *OUTSIDE,
)


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a data folder."""

    made: Sequence[Path]  # what perdure made, sorted
    others: Sequence[Path]  # what it did not; it stays
    size: int  # of what perdure made, in bytes


def contents(folder: Path) -> Contents:
    """Return what is in a data folder."""
    if not was_opened(folder) and judge(folder).truth is Truth.NEW:
        raise InputError(f"{folder} has no store; give its folder with --home")
    made = sorted({path for pattern in MADE for path in folder.glob(pattern)})
    files = [file for path in made for file in ([path] if path.is_file() else path.rglob("*"))]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return Contents(made, sorted(set(folder.iterdir()) - set(made)), size)


def remove(folder: Path) -> Contents:
    """Remove what perdure made in a data folder, and the folder if nothing else is in it. There is no way back."""
    found = contents(folder)
    try:
        with alone(folder) as free:
            if not free:
                raise StoreBusyError(f"{folder} is in use; close the programs that have it open, and retry")
            # First what tells that there was a store, then the truth: what is left after a kill is none any more.
            first = {FILE: 0, "facts.db": 1}
            for path in sorted(found.made, key=lambda path: (first.get(path.name, 2), path.name)):
                if path.name != PRESENCE:
                    _remove(path)
        # Here lies the lock that was just held.
        _remove(folder / PRESENCE)
        if not found.others:
            folder.rmdir()
    except OSError as error:
        raise StoreUnavailableError(f"{folder} cannot be removed ({error.strerror}); check its permissions") from error
    return found


def doomed(folder: Path, *, copies: bool = False) -> list[Path]:
    """Return what a machine's folder has of a shared store that was purged as a whole.

    Nothing, if the folder holds a store of its own as well. With `copies` also a store that was moved to that one,
    with its backups and exports.
    """
    if _has_own(folder, known_key(folder)):
        return []
    patterns = (*DERIVED, *COPIES) if copies else DERIVED
    return sorted(path for pattern in patterns for path in folder.glob(pattern))


def clear(folder: Path, *, copies: bool = False) -> list[Path]:
    """Remove what a folder has of a shared store that was purged as a whole, and return that; see `doomed`."""
    gone = doomed(folder, copies=copies)
    for path in gone:
        _remove(path)
    return gone


def remaining(folder: Path) -> list[str]:
    """Return the names of what else a machine's folder holds that perdure made, such as the vault."""
    made = {path for pattern in MADE for path in folder.glob(pattern) if path.suffix != ".lock"}
    return sorted({path.name for path in made - {*doomed(folder, copies=True)}} - {PRESENCE, MACHINE, "store.key"})


def _has_own(folder: Path, key: bytes | None) -> bool:
    """Return whether a folder holds a store beside the shared one with that key; one that was moved there is none."""
    if not holds_something(folder):
        remembered = Remembered.read(folder)
        return remembered is not None and remembered.key != key
    try:
        with opened(folder / "facts.db", looks=True) as connection:
            moved = run(connection, "SELECT 1 FROM meta WHERE key = ?", (MOVED,))
            return not moved or store_key(connection) != key
    except (StoreError, apsw.Error):
        return True  # nobody knows


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, onerror=_unless_gone)
    else:
        path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class TenantPurge:
    """What was purged."""

    tenant: str  # whose memories
    at: float  # when, epoch seconds; of a purge that was cut off, when it was begun
    rows: Mapping[str, int]  # how many each table had; those that went before it was cut off are not counted
    left: int  # rows of the tenant that a count has found since; 0 is what is certified
    files: tuple[str, ...]  # what was removed from this machine's folder, as paths in it
    stays: tuple[str, ...]  # what else perdure made there, such as the vault, or a store of the folder's own
    beyond: tuple[str, ...]  # what perdure cannot reach, in words
    certificate: str = ""  # a hash of all that, made with the store's key, which nobody else can make


def tenant_of(store: Store) -> str:
    """Return whose memories a store on a server holds."""
    if store.server is None:
        raise InputError("the store is in a folder and has no tenant; `perdure uninstall` removes it entirely")
    return store.server.tenant


def purged_at(store: Store) -> float | None:
    """Return when a tenant was purged, epoch seconds; None: it was not."""
    mark = store.meta(PURGED)
    return None if mark is None else float(mark)


def purge_tenant(store: Store) -> TenantPurge:
    """Remove all memories of a tenant, of every scope. There is no way back, and its name is not used again.

    Of a tenant that was purged already it removes what is left, and certifies that.
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


def _unless_gone(function: object, path: str, raised: tuple[type[BaseException], BaseException, object]) -> None:
    # A thread of this process may be about to remove the same.
    if not isinstance(raised[1], FileNotFoundError):
        raise raised[1]
