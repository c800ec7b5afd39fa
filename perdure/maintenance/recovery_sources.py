"""Where the texts of a store can be found once facts.db is lost: exports, backups, what of it can be read, LanceDB."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from perdure.errors import InputError, StoreError
from perdure.hooks.types import Channel
from perdure.lance.table import rows_in
from perdure.maintenance.backup import backups, backups_folder
from perdure.maintenance.exchange_file import ExportFile
from perdure.maintenance.importing import Incoming, Load
from perdure.store.access import opened
from perdure.store.database import Database
from perdure.store.fact import SELECT, Fact, from_row
from perdure.store.links import Link
from perdure.store.migrations import check, migrate
from perdure.store.scope import Scope
from perdure.store.seals import is_intact, store_key
from perdure.store.snapshot import snapshot
from perdure.store.sql import Connection, run

EXPORTS = ("exports/facts-????-??-??.jsonl", "backups/memory-backup-????-??-??.jsonl")
ORIGIN = "recovered_from"
"""Under this name the metadata of a recovered memory says where it came from."""
CHUNK = 200
LINK_COLUMNS = "id, source_fact_id, target_fact_id, link_type, strength, created_at"
_COLUMNS = ("id", "text", "category", "scope", "importance", "created_at", "expires_at")


@dataclass(frozen=True, slots=True)
class Source:
    """Something that holds memories of a store.

    Attributes:
        name: its path from the data folder.
        kind: "facts.db", "export", "backup" or "lancedb".
        at: when it was written, epoch seconds.
        load: what it holds. Called and used up inside of a `recover`; raises InputError or StoreError.
    """

    name: str
    kind: str
    at: float
    load: Callable[[], Load]


def sources(folder: Path, key: bytes | None, scratch: Path, *, salvage: bool) -> Iterator[Source]:
    """Yield what there is, in the order in which it is believed; of exports and backups the newest first.

    What the store's key vouches for keeps its channel. What nothing vouches for waits for review.

    Args:
        folder: the data folder.
        key: of the store; None: nothing can be vouched for.
        scratch: an existing folder for copies.
        salvage: whether facts.db itself is damaged and may be read row by row.
    """
    facts = folder / "facts.db"
    if salvage and facts.is_file():
        yield Source("facts.db", "facts.db", facts.stat().st_mtime, partial(_database, facts, key, "facts.db"))
    yield from _exports(folder, key)
    yield from _backups(folder, key, scratch)
    for path in sorted((folder / "lancedb").glob("*.lance"), key=_written, reverse=True):
        yield Source(f"lancedb/{path.name}", "lancedb", _written(path), partial(_table, path))


def key_of_backups(folder: Path) -> bytes | None:
    """Return the key of the newest backup of a folder that remembers none; None if there is no backup."""
    for file in backups(folder):
        if file.kind == "backup":
            try:
                with opened(file.path, looks=True) as connection:
                    return store_key(connection)
            except StoreError:
                continue
    return None


def _exports(folder: Path, key: bytes | None) -> Iterator[Source]:
    # The day stands in the name: a copied file has another time.
    found = sorted((path for pattern in EXPORTS for path in folder.glob(pattern)), key=lambda path: path.stem[-10:])
    for path in reversed(found):
        name = path.relative_to(folder).as_posix()
        yield Source(name, "export", _written(path), partial(_export, path, key, name))


def _export(path: Path, key: bytes | None, name: str) -> Load:
    load = ExportFile(path).load(key or b"")
    return replace(load, facts=lambda: (_named(item, name, load.sealed) for item in load.facts()))


def _backups(folder: Path, key: bytes | None, scratch: Path) -> Iterator[Source]:
    # Not those that were kept before a restore: from these somebody has gone back on purpose.
    for file in backups(folder):
        if file.kind in ("backup", "before a migration"):
            name = f"{backups_folder(folder).name}/{file.path.name}"
            yield Source(name, "backup", file.at, partial(_copied, file.path, key, name, scratch))


def _copied(path: Path, key: bytes | None, name: str, scratch: Path) -> Load:
    """Read a copy, brought up to the present schema: the backup stays as it is."""
    copy = scratch / path.name
    if not copy.exists():
        with opened(path, looks=True) as source:
            check(source, path)
            if store_key(source) != key:
                raise InputError(f"{path} is a backup of another store")
            snapshot(source, copy)
        database = Database(copy)
        try:
            migrate(database, keep=False)
        finally:
            database.close()
    return _database(copy, key, name)


def _database(path: Path, key: bytes | None, name: str) -> Load:
    """Return what of a facts.db can be read; what does not fit its seal, and rows without one, wait for review."""

    def facts() -> Iterator[Incoming]:
        with opened(path, looks=True) as connection:
            for fact in _readable(connection):
                sealed = key is not None and _intact(connection, key, fact.id)
                yield _named(Incoming(fact), name, sealed)

    def links() -> Iterator[Link]:
        with opened(path, looks=True) as connection:
            for row in _links(connection):
                if key is not None and _intact(connection, key, f"{row[1]}/l/{row[0]}"):
                    yield Link(*row)

    with opened(path, looks=True) as connection:
        total = sum(1 for _ in _readable(connection))
    return Load("perdure", total, facts, links, sealed=True)


def _links(connection: Connection) -> list[tuple[Any, ...]]:
    try:
        return run(connection, f"SELECT {LINK_COLUMNS} FROM memory_links ORDER BY rowid")
    except (apsw.Error, UnicodeDecodeError):
        return []


def _readable(connection: Connection) -> Iterator[Fact]:
    [(last,)] = run(connection, "SELECT coalesce(max(seq), 0) FROM facts")
    for start in range(0, last, CHUNK):
        try:
            rows = run(connection, f"SELECT {SELECT} FROM facts WHERE seq > ? AND seq <= ?", (start, start + CHUNK))
        except (apsw.Error, UnicodeDecodeError):
            rows = [row for seq in range(start + 1, start + CHUNK + 1) for row in _row(connection, seq)]
        for row in rows:
            try:
                yield from_row(row)
            except (ValueError, TypeError):
                continue


def _row(connection: Connection, seq: int) -> list[tuple[Any, ...]]:
    try:
        return run(connection, f"SELECT {SELECT} FROM facts WHERE seq = ?", (seq,))
    except (apsw.Error, UnicodeDecodeError):
        return []


def _intact(connection: Connection, key: bytes, seal_id: str) -> bool:
    try:
        return is_intact(connection, key, seal_id)
    except apsw.Error:
        return False


def _table(path: Path) -> Load:
    rows = rows_in(path, _COLUMNS)

    def facts() -> Iterator[Incoming]:
        for row in rows:
            scope = Scope.parse(row["scope"])
            fact = Fact(
                row["text"],
                id=row["id"],
                category=row["category"],
                importance=row["importance"],
                created_at=row["created_at"],
                expires_at=None if math.isinf(row["expires_at"]) else row["expires_at"],
                scope=scope.kind,
                scope_target=scope.target,
                extraction_method="rescued",
            )
            yield _named(Incoming(fact), f"lancedb/{path.name}", sealed=False)

    return Load("lancedb", len(rows), facts, lambda: (), sealed=True)


def _named(incoming: Incoming, name: str, sealed: bool) -> Incoming:
    fact = replace(incoming.fact, metadata={**incoming.fact.metadata, ORIGIN: name})
    if not sealed:
        fact = replace(fact, channel=Channel.IMPORT, review_state="pending", pinned=False)
    return replace(incoming, fact=fact)


def _written(path: Path) -> float:
    return path.stat().st_mtime
