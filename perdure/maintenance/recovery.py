"""Bringing a lost store back: a new facts.db is put together beside the old one, and takes its place as a whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import apsw

from perdure.clock import Clock, SystemClock
from perdure.errors import InputError, StoreBusyError, StoreCorruptError, StoreError, StoreUnavailableError
from perdure.hooks.types import Channel
from perdure.maintenance.backup import backups, backups_folder, buried, drop_purged, put_in_place
from perdure.maintenance.exchange import ExportFile
from perdure.maintenance.exports import daily_files
from perdure.maintenance.importing import Incoming, Load, bring_in
from perdure.parts import part
from perdure.store import outbox
from perdure.store.access import CLOSE, opened
from perdure.store.database import Database
from perdure.store.fact import SELECT, Fact, from_row
from perdure.store.folder import alone, prepare_folder
from perdure.store.history import REMOVALS
from perdure.store.inbox import waiting_in
from perdure.store.links import COLUMNS, Link
from perdure.store.migrations import check, migrate
from perdure.store.rollback_guard import Remembered, Truth, Verdict, judge
from perdure.store.seals import is_intact, store_key
from perdure.store.snapshot import snapshot
from perdure.store.sql import Connection, Row, marks, run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.store.triggers import Trigger

ORIGIN = "recovered_from"
"""Under this name the metadata of a recovered memory says where it came from."""
CHUNK = 200
_COLUMNS = ("id", "text", "category", "scope", "importance", "created_at", "expires_at")
HOST = "recover"
"""Stands in the journal with what was brought back."""
_KEEPS = (Truth.SOUND, Truth.OLDER, Truth.REKEYED)
"""Truths that are a beginning of what they should be: what is missing is added to them."""
_ONE_OF = ("export", "backup")
"""Of these the newest that can be read is enough: an older one has what was removed since."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something that holds memories of a store."""

    name: str  # its path from the data folder
    kind: str  # "facts.db", "export", "backup" or "lancedb"
    at: float  # when it was written, epoch seconds
    # what it holds. Called and used up inside of a `recover`; raises InputError or StoreError.
    load: Callable[[], Load]


def sources(folder: Path, key: bytes | None, scratch: Path, *, salvage: bool) -> Iterator[Source]:
    """Yield what there is, in the order in which it is believed; of exports and backups the newest first.

    What the store's key vouches for keeps its channel. What nothing vouches for waits for review. `salvage`: facts.db
    itself is damaged and may be read row by row.
    """
    facts = folder / "facts.db"
    if salvage and facts.is_file():
        yield Source("facts.db", "facts.db", facts.stat().st_mtime, partial(_database, facts, key, "facts.db"))
    for path in daily_files(folder):
        name = path.relative_to(folder).as_posix()
        yield Source(name, "export", _written(path), partial(_export, path, key, name))
    # Not those that were kept before a restore: from these somebody has gone back on purpose.
    for file in backups(folder):
        if file.kind in ("backup", "before a migration"):
            name = f"{backups_folder(folder).name}/{file.path.name}"
            yield Source(name, "backup", file.at, partial(_copied, file.path, key, name, scratch))
    for path in sorted((folder / "lancedb").glob("*.lance"), key=_written, reverse=True):
        yield Source(f"lancedb/{path.name}", "lancedb", _written(path), partial(_table, path))


def _key_of_backups(folder: Path) -> bytes | None:
    """Return the key of the newest backup of a folder that remembers none; None if there is no backup."""
    for file in backups(folder):
        if file.kind == "backup":
            try:
                with opened(file.path, looks=True) as connection:
                    return store_key(connection)
            except StoreError:
                continue
    return None


def _export(path: Path, key: bytes | None, name: str) -> Load:
    load = ExportFile(path).load(key or b"")
    return replace(load, facts=lambda: (_named(item, name, load.sealed) for item in load.facts()))


def _copied(path: Path, key: bytes | None, name: str, scratch: Path) -> Load:
    """Read a copy, brought up to the present schema: the backup stays as it is."""
    copy = scratch / path.name
    if not copy.exists():
        with opened(path, looks=True) as source:
            check(source, path)
            if store_key(source) != key:
                raise InputError(f"{path} is a backup of another store")
            snapshot(source, copy)
        with closing(Database(copy)) as database:
            migrate(database, keep=False)
    return _database(copy, key, name)


def _database(path: Path, key: bytes | None, name: str) -> Load:
    """Return what of a facts.db can be read; what does not match its seal, and rows without one, wait for review."""

    def facts() -> Iterator[Incoming]:
        with opened(path, looks=True) as connection:
            for fact in _readable(connection):
                sealed = key is not None and _intact(connection, key, fact.id)
                yield _named(Incoming(fact), name, sealed)

    def links() -> Iterator[Link]:
        with opened(path, looks=True) as connection:
            for row in _legible(connection, f"SELECT {COLUMNS} FROM memory_links ORDER BY rowid") or ():
                if key is not None and _intact(connection, key, f"{row[1]}/l/{row[0]}"):
                    yield Link(*row)

    def triggers() -> Iterator[Trigger]:
        with opened(path, looks=True) as connection:
            sql = "SELECT id, fact_id, text, origin, created_at FROM triggers WHERE removed_at IS NULL ORDER BY rowid"
            for row in _legible(connection, sql) or ():
                if key is not None and _intact(connection, key, f"{row[1]}/t/{row[0]}"):
                    yield Trigger(*row)

    with opened(path, looks=True) as connection:
        total = sum(1 for _ in _readable(connection))
    return Load("perdure", total, facts, links, sealed=True, triggers=triggers)


def _readable(connection: Connection) -> Iterator[Fact]:
    [(last,)] = run(connection, "SELECT coalesce(max(seq), 0) FROM facts")
    sql = f"SELECT {SELECT} FROM facts WHERE seq > ? AND seq <= ?"
    for start in range(0, last, CHUNK):
        rows = _legible(connection, sql, start, start + CHUNK)
        if rows is None:
            rows = [row for seq in range(start, start + CHUNK) for row in _legible(connection, sql, seq, seq + 1) or ()]
        for row in rows:
            try:
                yield from_row(row)
            except (ValueError, TypeError):
                continue


def _legible(connection: Connection, sql: str, *values: int) -> list[Row] | None:
    """Return the rows of a database that may be damaged; None if any of them cannot be read."""
    try:
        return run(connection, sql, values)
    except (apsw.Error, UnicodeDecodeError):
        return None


def _intact(connection: Connection, key: bytes, seal_id: str) -> bool:
    try:
        return is_intact(connection, key, seal_id)
    except apsw.Error:
        return False


def _table(path: Path) -> Load:
    table = part("lance.table")
    rows = table.rows_in(path, _COLUMNS)

    def facts() -> Iterator[Incoming]:
        return (_named(Incoming(table.fact_of(row)), f"lancedb/{path.name}", sealed=False) for row in rows)

    return Load("lancedb", len(rows), facts, lambda: (), sealed=True)


def _named(incoming: Incoming, name: str, sealed: bool) -> Incoming:
    fact = replace(incoming.fact, metadata={**incoming.fact.metadata, ORIGIN: name})
    if not sealed:
        fact = replace(fact, channel=Channel.IMPORT, review_state="pending", pinned=False)
    return replace(incoming, fact=fact)


def _written(path: Path) -> float:
    return path.stat().st_mtime


@dataclass(frozen=True, slots=True)
class Brought:
    """What one source brings back."""

    source: str  # its path from the data folder
    kind: str  # "facts.db", "export", "backup" or "lancedb"
    at: float  # when it was written, epoch seconds
    holds: int = 0  # memories in it
    brings: int = 0  # memories that nothing before it had
    waits: int = 0  # whether they wait for review: nothing vouches for them
    purged: int = 0  # memories that stay gone, because they were purged
    problem: str | None = None  # why it cannot be used; None: it can


@dataclass(slots=True)
class Recovery:
    """What a recovery did, or would do."""

    truth: Truth  # how facts.db was; see `perdure.store.rollback_guard.Truth`
    said: str  # that in a sentence
    facts: int = 0  # memories that were there to begin with
    # what each source brings, in the order in which they were asked
    brought: list[Brought] = field(default_factory=list)
    purged: int = 0  # memories of facts.db itself that were purged since, and go
    turns: int = 0  # acknowledged turns in the inbox; the next start of a host captures them
    conversations: int = 0  # recorded conversations; `perdure distill` finds in them what is still missing
    applied: bool = False  # whether facts.db was changed
    kept: Path | None = None  # where the former facts.db lies now; None if there was none

    @property
    def total(self) -> int:
        """How many memories there are afterwards."""
        return self.facts + sum(source.brings for source in self.brought)


def recover(folder: Path, *, apply: bool = False, accept: bool = False, clock: Clock | None = None) -> Recovery:
    """Put together what is left of a store, and say what that is.

    What was purged never comes back. Killed at any moment, facts.db is the former one or the new one. Without `apply`
    nothing is changed; `accept` takes facts.db as it is, or begins an empty one, and looks nowhere else.
    """
    clock = clock or SystemClock()
    if judge(folder).truth is Truth.NEW:
        raise InputError(f"{folder} has no store, and never had one; give the right folder with --home")
    with alone(folder) as free, _stage(folder) as stage:
        if not free:
            raise StoreBusyError(f"{folder} is in use; {CLOSE}")
        verdict = judge(folder, thorough=True)
        if accept and verdict.truth is Truth.DAMAGED:
            raise InputError(f"facts.db in {folder} cannot be read, so it cannot be accepted as it is; use --apply")
        found = Recovery(verdict.truth, verdict.said, turns=waiting_in(folder / "inbox"))
        found.conversations = sum(1 for _ in (folder / "transcripts").rglob("*.jsonl"))
        key = _begin(folder, stage, verdict, found, clock, keep=accept)
        if not accept:
            _bring(folder, stage, key, found, clock, salvage=verdict.truth is Truth.DAMAGED)
        useful = verdict.lost or any(source.brings for source in found.brought)
        if (apply or accept) and useful:
            found.kept = put_in_place(folder, stage / "facts.db", clock)
            found.applied = True
    return found


@contextmanager
def _stage(folder: Path) -> Iterator[Path]:
    # What a kill has left there would be taken for a part of this.
    stage = folder / "recovering"
    shutil.rmtree(stage, ignore_errors=True)
    try:
        yield prepare_folder(stage)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _begin(folder: Path, stage: Path, verdict: Verdict, found: Recovery, clock: Clock, *, keep: bool) -> bytes | None:
    """Make the database that all is brought into; return the key by which sources are vouched for."""
    remembered = verdict.remembered
    key = remembered.key if remembered is not None and remembered.key else _key_of_backups(folder)
    taken = verdict.truth in _KEEPS or (keep and verdict.truth is Truth.FOREIGN)
    if taken:
        with opened(folder / "facts.db", looks=True) as source:
            snapshot(source, stage / "facts.db")
    with closing(Database(stage / "facts.db")) as database:
        migrate(database, keep=False)
        with database.write() as connection:
            if key is not None and verdict.truth is not Truth.SOUND and not (taken and verdict.truth is Truth.FOREIGN):
                run(connection, "UPDATE meta SET value = ? WHERE key = 'store_key'", (key.hex(),))
            found.purged = drop_purged(connection, _graves(folder, verdict, remembered), clock.now())
            outbox.begin_anew(connection, clock.now())
            [(found.facts,)] = run(connection, "SELECT count(*) FROM facts")
    return key


def _graves(folder: Path, verdict: Verdict, remembered: Remembered | None) -> dict[bytes, set[str]]:
    graves = {} if verdict.truth is Truth.FOREIGN else dict(buried(folder / "facts.db"))
    if remembered is not None and remembered.key:
        graves[remembered.key] = set().union(*graves.values(), remembered.tombstones)
    return graves


def _bring(folder: Path, stage: Path, key: bytes | None, found: Recovery, clock: Clock, *, salvage: bool) -> None:
    scratch = prepare_folder(stage / "copies")
    read: set[str] = set()
    with closing(Store(stage, clock=clock)) as store:
        with store.database.read() as connection:
            sql = f"SELECT DISTINCT fact_id FROM journal WHERE action IN ({marks(REMOVALS)})"
            rows = run(connection, sql, REMOVALS)
            [(since,)] = run(connection, "SELECT coalesce(max(at), 0) FROM journal")
        removed = frozenset(row[0] for row in rows)
        for source in sources(folder, key, scratch, salvage=salvage):
            if source.kind in _ONE_OF and source.kind in read:
                continue
            brought = _one(store, source, removed, since)
            found.brought.append(brought)
            if brought.problem is None:
                read.add(source.kind)
                since = max(since, source.at)


def _one(store: Store, source: Source, removed: frozenset[str], since: float) -> Brought:
    brought = Brought(source.name, source.kind, source.at)
    try:
        load = source.load()
        chosen = replace(load, facts=lambda: (item for item in load.facts() if item.fact.id not in removed))
        report = bring_in(store, chosen, host=HOST)
        _forget(store, load, since)
    except (InputError, StoreCorruptError, StoreUnavailableError) as error:
        return replace(brought, problem=str(error))
    sql = f"SELECT count(*) FROM facts WHERE review_state = 'pending' AND json_extract(metadata, '$.{ORIGIN}') = ?"
    [(waits,)] = store.database.query(run, sql, (source.name,))
    return replace(brought, holds=load.total, brings=report.added, waits=waits, purged=report.purged)


def _forget(store: Store, load: Load, since: float) -> None:
    """Forget what was forgotten after the sources before this one were written."""
    facts = (item.fact for item in load.facts() if item.fact.channel is not Channel.IMPORT)
    late = {fact.id: fact.forgotten_at for fact in facts if (fact.forgotten_at or 0.0) > since}
    with store.write(Author(Channel.IMPORT, host=HOST)) as tx:
        for fact_id, forgotten_at in late.items():
            if run(tx.connection, "SELECT 1 FROM facts WHERE id = ? AND forgotten_at IS NULL", (fact_id,)):
                tx.change(fact_id, "forget", {"forgotten_at": forgotten_at}, reason="forgotten before it was lost")
