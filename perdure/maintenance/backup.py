"""Backups of facts.db: taken while the store is in use, put back while it is not."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from perdure.clock import Clock, SystemClock
from perdure.errors import InputError, StoreBusyError, StoreCorruptError, StoreUnavailableError
from perdure.hooks.types import Channel
from perdure.maintenance.exports import daily_files
from perdure.store import outbox
from perdure.store.access import CLOSE, opened
from perdure.store.database import Database
from perdure.store.folder import LANCE_SUMS, alone, prepare_folder, private_file, sync_folder, vault_file
from perdure.store.migrations import check, migrate
from perdure.store.rollback_guard import Place, Remembered, arrived, going_to
from perdure.store.seals import is_purged, seal, seal_fact, store_key
from perdure.store.snapshot import check_intact, copy_pages, snapshot, unused
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction

if TYPE_CHECKING:
    import apsw

_KINDS = {
    "facts-before-restore-": "before a restore", "facts-before-schema-": "before a migration",
    "facts-damaged-": "damaged", "facts-": "backup", "vault-": "vault",
}  # fmt: skip
"""What a file in `backups/` is, by the first of these that its name begins with."""


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A file in `backups/`, or a daily export in `exports/`."""

    path: Path
    kind: str  # "backup", "vault", "before a migration", "before a restore", "damaged", or "export"
    at: float  # when it was written, epoch seconds
    size: int


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did, or would do."""

    facts: int  # how many facts, of whatever state, the backup holds
    purged: int  # how many of these were purged since, and did not come back
    kept: Path | None  # where the former facts.db lies now; None if there was none, or in a dry run
    # whether the vault came back, or would: only where there is none. One that is there is never replaced.
    vault: bool = False


def backups_folder(folder: Path) -> Path:
    """Return where a data folder keeps its backups."""
    return folder / "backups"


def backup(store: Store, target: Path | None = None) -> Path:
    """Copy facts.db as it is at this moment; whoever writes goes on writing. The copy is checked.

    The derived LanceDB table is not in it, as it can be rebuilt; the vectors it is rebuilt from are. A vault is
    copied into a file of its own beside it, encrypted as it is: see `vault_of`. Without a target it goes to
    `backups/facts-<UTC time>.db`; a failed one leaves nothing behind.
    """
    if store.database.shared:
        raise StoreUnavailableError(
            "the memories are in PostgreSQL; back them up with pg_dump as a superuser, or copy them: perdure export"
        )
    if target is None:
        target = unused(backups_folder(store.folder), f"facts-{_stamp(store.clock)}")
    vault, copy = vault_file(store.folder), vault_of(target)
    if vault.exists():
        with opened(vault) as connection:
            snapshot(connection, copy)
    try:
        with store.database.read() as connection:
            return snapshot(cast("apsw.Connection", connection), target)
    except BaseException:
        if vault.exists():
            copy.unlink(missing_ok=True)
        raise


def vault_of(backup_file: Path) -> Path:
    """Return where the vault that belongs to a backup lies: `facts-X.db` has `vault-X.db`, `X.db` has `vault-X.db`."""
    return backup_file.with_name(f"vault-{backup_file.name.removeprefix('facts-')}")


def backups(folder: Path) -> list[BackupFile]:
    """Return the files in `backups/` of a data folder and its daily exports, newest first."""
    kinds = dict.fromkeys(daily_files(folder), "export")
    for path in backups_folder(folder).glob("*"):
        kind = next((kind for prefix, kind in _KINDS.items() if path.name.startswith(prefix)), None)
        if kind is not None and path.suffix == ".db":
            kinds[path] = kind
    stats = ((path, kind, path.stat()) for path, kind in kinds.items())
    found = [BackupFile(path, kind, stat.st_mtime, stat.st_size) for path, kind, stat in stats]
    return sorted(found, key=lambda file: (-file.at, file.path.name))


def restore(folder: Path, backup_file: Path, *, dry_run: bool = False, clock: Clock | None = None) -> Restored:
    """Put a backup in the place of facts.db. The former one is kept in `backups/`.

    The backup is checked first. facts.db changes in one transaction: killed at any moment, it holds the former
    facts or those of the backup. What was purged since the backup was made does not come back.
    """
    if not backup_file.is_file():
        raise InputError(f"there is no backup {backup_file}; `perdure backup list` lists those in the data folder")
    path = folder / "facts.db"
    with opened(backup_file, looks=True) as source:
        check(source, backup_file)
        check_intact(source, backup_file)
        vault = vault_of(backup_file).is_file() and not vault_file(folder).exists()
        if dry_run:
            return Restored(_facts(source), 0, None, vault)
        prepare_folder(folder)
        staged = folder / "restoring" / "facts.db"
        # What a kill has left there would be taken for the log of the new file.
        shutil.rmtree(staged.parent, ignore_errors=True)
        snapshot(source, staged)
    clock = clock or SystemClock()
    try:
        with alone(folder) as free:
            if not free:
                raise StoreBusyError(f"{folder} is in use; {CLOSE}")
            facts, purged = _prepare(staged, path, clock.now())
            kept = put_in_place(folder, staged, clock)
            if vault:
                with opened(vault_of(backup_file), looks=True) as source:
                    snapshot(source, vault_file(folder))
    finally:
        shutil.rmtree(staged.parent, ignore_errors=True)
    return Restored(facts, purged, kept, vault)


def put_in_place(folder: Path, staged: Path, clock: Clock) -> Path | None:
    """Let a finished database take the place of facts.db, for one who is alone; return where the former one is kept."""
    path = folder / "facts.db"
    with opened(staged, looks=True) as source:
        going_to(folder, Place.of(source))
    kept = _replace(path, staged, _stamp(clock))
    # Its header is zeroed, so nothing is undone from it any more; the rest is pages of the former facts.
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
    with opened(path, looks=True) as connection:
        arrived(folder, connection, clock.now())
    # The table is of the former facts; each of the new ones waits in the outbox for a new one.
    shutil.rmtree(folder / "lancedb", ignore_errors=True)
    (folder / LANCE_SUMS).unlink(missing_ok=True)
    sync_folder(folder)
    return kept


def _prepare(staged: Path, present: Path, now: float) -> tuple[int, int]:
    with closing(Database(staged)) as database:
        migrate(database, keep=False)
        with database.write() as connection:
            purged = drop_purged(connection, buried(present), now)
            outbox.begin_anew(connection, now)
            return _facts(connection), purged


def buried(present: Path) -> Mapping[bytes, set[str]]:
    """Return the tombstones of a store by their keys: those in its facts.db, and those that its folder remembers."""
    found: dict[bytes, set[str]] = {}
    remembered = Remembered.read(present.parent)
    if remembered is not None and remembered.tombstones:
        found[remembered.key] = set(remembered.tombstones)
    if present.is_file():
        # Of a damaged one the folder remembers them.
        with suppress(StoreCorruptError), opened(present, looks=True) as source:
            if run(source, "SELECT 1 FROM sqlite_schema WHERE name = 'tombstones'"):
                tombstones = {row[0] for row in run(source, "SELECT key FROM tombstones")}
                found.setdefault(store_key(source), set()).update(tombstones)
    return found


def drop_purged(connection: Connection, graves: Mapping[bytes, set[str]], now: float) -> int:
    """Remove from a copy of a store what was purged since it was made; return how many facts that were."""
    tombstones = [(tombstone,) for some in graves.values() for tombstone in some]
    connection.executemany("INSERT INTO tombstones VALUES (?) ON CONFLICT DO NOTHING", tombstones)
    facts = run(connection, "SELECT seq, id, text FROM facts") if tombstones else []
    gone = [(seq, fact_id) for seq, fact_id, text in facts if any(is_purged(connection, key, text) for key in graves)]
    tx = Transaction(connection, now, Author(Channel.CLI, host="restore"))
    linked = set()
    for seq, fact_id in gone:
        linked.update(run(connection, "SELECT source_fact_id FROM memory_links WHERE target_fact_id = ?", (fact_id,)))
        run(connection, "DELETE FROM facts_fts WHERE rowid = ?", (seq,))
        run(connection, "DELETE FROM facts WHERE seq = ?", (seq,))
        tx.journal("purge", fact_id)
    seal(connection)
    for (source,) in linked:
        seal_fact(connection, source)
    return len(gone)


def _replace(path: Path, staged: Path, stamp: str) -> Path | None:
    folder = backups_folder(path.parent)
    kept = None
    parts = [part for part in (path, path.with_name(f"{path.name}-wal")) if part.exists() and part.stat().st_size]
    there = path in parts
    if parts and not (there and _is_database(path)):
        kept = _move_away(path, unused(prepare_folder(folder), f"facts-damaged-{stamp}"))
    if not path.exists():
        private_file(path)
    with opened(staged, looks=True) as source, opened(path) as target:
        _lock(target)
        if there and kept is None:
            kept = _keep(target, unused(prepare_folder(folder), f"facts-before-restore-{stamp}"))
        copy_pages(source, target)
        check_intact(target, path)
    return kept


def _lock(connection: Connection) -> None:
    # To leave WAL mode takes that nobody else has the file open, even idle. The exclusive lock is held until
    # the connection is closed: who opens the file meanwhile waits, and then sees the restored one.
    run(connection, "PRAGMA locking_mode = EXCLUSIVE")
    run(connection, "PRAGMA journal_mode = DELETE")
    run(connection, "BEGIN EXCLUSIVE")
    run(connection, "COMMIT")


def _keep(connection: apsw.Connection, target: Path) -> Path:
    # Not checked, as a damaged database is kept as well. And not copied as a file: closing a file drops the
    # locks that this process holds on it.
    private_file(target)
    with opened(target) as copied:
        copy_pages(connection, copied)
    sync_folder(target.parent)
    return target


def _move_away(path: Path, target: Path) -> Path:
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(target.with_name(target.name + suffix))
    return target


def _is_database(path: Path) -> bool:
    try:
        with opened(path, looks=True) as connection:
            run(connection, "SELECT count(*) FROM sqlite_schema")
    except StoreCorruptError:
        return False
    return True


def _facts(connection: Connection) -> int:
    return int(run(connection, "SELECT count(*) FROM facts")[0][0])


def _stamp(clock: Clock) -> str:
    return datetime.fromtimestamp(clock.now(), UTC).strftime("%Y%m%dT%H%M%SZ")
