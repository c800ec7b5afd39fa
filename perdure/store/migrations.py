"""The schema of facts.db, as numbered steps. A step is never edited once it has been released."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from perdure.errors import StoreCorruptError, StoreTooNewError, StoreUnavailableError
from perdure.failpoints import fail_point
from perdure.store.database import Database
from perdure.store.fact import SELECT, from_row
from perdure.store.forgotten import TABLE, note
from perdure.store.seals import store_key
from perdure.store.snapshot import snapshot, unused
from perdure.store.sql import Connection, run
from perdure.store.triggers import TABLES
from perdure.text.normalise import NORMALISER_VERSION

APPLICATION_ID = 0x70726472  # "prdr": tells our databases from others


def _made(connection: Connection) -> None:
    """Make an empty store."""
    run(connection, Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
    values = {"normaliser": str(NORMALISER_VERSION), "store_key": secrets.token_hex(32)}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", list(values.items()))


def _forgotten(connection: Connection) -> None:
    """Mark what was forgotten, so that nothing else brings it up."""
    run(connection, TABLE)
    columns = f"SELECT {SELECT} FROM facts WHERE forgotten_at IS NOT NULL"
    for fact in [from_row(row) for row in run(connection, columns)]:
        note(connection, store_key(connection), fact, fact.forgotten_at or 0.0)


def _begun(connection: Connection) -> None:
    """Find what is asked for when a session begins without a walk: what is pinned, and what it was given before."""
    run(connection, "CREATE INDEX facts_pinned ON facts (seq) WHERE pinned = 1")
    run(connection, "CREATE INDEX receipts_session ON receipts (session, scope, at)")


def _triggers(connection: Connection) -> None:
    """Let memories have triggers."""
    run(connection, TABLES)


STEPS: Sequence[Callable[[Connection], None]] = (_made, _forgotten, _begun, _triggers)
"""What brings the schema from each version to the next; the first one makes it."""


def check(connection: Connection, path: Path, mark: int = APPLICATION_ID, newest: int | None = None) -> None:
    """See that a database with our mark, of a version up to the newest, is ours to change, before anything in it is."""
    # In this order: another process may be creating it, and its mark is committed together with its tables.
    used = bool(run(connection, "SELECT 1 FROM sqlite_schema LIMIT 1"))
    version = _version(connection)
    owner = int(run(connection, "PRAGMA application_id")[0][0])
    newest = len(STEPS) if newest is None else newest
    if owner == mark:
        if version > newest:
            raise StoreTooNewError(
                f"{path} has schema {version}, this perdure supports up to {newest}; "
                "it was left untouched. Upgrade perdure"
            )
    elif owner or version or used:
        raise StoreCorruptError(f"{path} belongs to another program; it was left untouched. Move it elsewhere")


def migrate(database: Database, *, keep: bool = True) -> None:
    """Bring the schema up to date, each step in a transaction of its own.

    Unless `keep` is False, an older store with facts in it is first copied into `backups/` beside it.
    """
    version = database.query(_version)
    if version < len(STEPS) and database.refusal is not None:
        raise StoreUnavailableError(
            f"{database.path} was written by an older perdure and must be migrated before it can be read; "
            f"{database.refusal.partition(';')[0]}"
        )
    while version < len(STEPS):
        with database.write() as connection:
            # Another process may have done this step since: what counts is the version under the lock.
            version = _version(connection)
            if version < len(STEPS):
                fail_point("migrate.begun")
                if keep and version and run(connection, "SELECT 1 FROM facts LIMIT 1"):
                    # Beside this transaction, whose lock keeps everybody else from writing meanwhile.
                    with database.read() as reader:
                        snapshot(reader, unused(database.path.parent / "backups", f"facts-before-schema-{version + 1}"))
                keep = False
                STEPS[version](connection)
                fail_point("migrate.stepped")
                version += 1
                run(connection, f"PRAGMA user_version = {version}")
                run(connection, f"PRAGMA application_id = {APPLICATION_ID}")
        fail_point("migrate.committed")


def _version(connection: Connection) -> int:
    return int(run(connection, "PRAGMA user_version")[0][0])
