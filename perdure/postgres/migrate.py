"""Brings the schema of a PostgreSQL database up to date, step by step, beside processes that are at work in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg

from perdure.errors import StoreBusyError, StoreTooNewError, StoreUnavailableError
from perdure.postgres.connection import Impatient, in_our_terms, options
from perdure.store.sql import Row, hurried

STEPS: Sequence[Path] = tuple(
    Path(__file__).with_name(f"{name}.sql") for name in ("schema", "forgotten", "begun", "triggers")
)
"""What brings the schema from each version to the next; the first one makes it."""
MIGRATION = 0x70726473
"""The lock of who brings the schema up to date."""
LOCKED, TRIES = 2.0, 15
"""Seconds for which a step waits for a table, as all others then wait behind it, and how often it tries."""
_BLIND = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
_NEAR = "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('vectors') AND attname = 'near' AND NOT attisdropped"
_BROUGHT = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector' AND installed_version IS NULL"
_COMPARABLE = """
ALTER TABLE vectors ADD COLUMN near halfvec;
CREATE INDEX vectors_far ON vectors (tenant, rowid) WHERE near IS NULL;
"""
"""Makes vectors comparable in the database, where it has pgvector."""


def migrate(url: str) -> bool:
    """Run the steps that a database has not had yet, each as a whole; return whether it has pgvector.

    The address is of the database itself, not of a pooler before it, if there is one.
    """
    with in_our_terms(), Impatient.connect(url, **options(url)) as raw:
        raw.autocommit = True
        # Mostly there is nothing to do, and nobody needs to wait for a lock to see that.
        with hurried():
            if raw.execute(_BLIND).fetchall() != [(False,)]:
                raise StoreUnavailableError(
                    "the role in store_url is a superuser, or has BYPASSRLS, and would see the memories of all tenants;"
                    " name one that has neither, and owns the database"
                )
            version, near = _version(raw), bool(raw.execute(_NEAR).fetchall())
        for _ in STEPS[version:]:
            _patiently(raw, _step)
        if not near:
            _patiently(raw, _see_near)
            near = bool(raw.execute(_NEAR).fetchall())
        return near


def _version(raw: psycopg.Connection[Row]) -> int:
    if raw.execute("SELECT to_regclass('perdure_schema')").fetchall() == [(None,)]:
        return 0
    if raw.execute("SELECT to_regclass('perdure_steps')").fetchall() != [(None,)]:
        raise StoreUnavailableError(
            "the database was created before perdure's first release; export its memories with the version that made it"
            " and import them into a new one"
        )
    [(version,)] = raw.execute("SELECT version FROM perdure_schema").fetchall()
    if version > len(STEPS):
        raise StoreTooNewError(
            f"the database has schema {version}, this perdure supports up to {len(STEPS)}; upgrade perdure"
        )
    return int(version)


def _patiently(raw: psycopg.Connection[Row], change: Callable[[psycopg.Connection[Row]], None]) -> None:
    """Change the schema as soon as nobody is in the way for long."""
    for last in [False] * (TRIES - 1) + [True]:
        try:
            with raw.transaction():
                raw.execute(f"SET LOCAL lock_timeout = {int(LOCKED * 1000)}")
                raw.execute("SELECT pg_advisory_xact_lock(%s, 0)", (MIGRATION,))
                change(raw)
            return
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            if last:
                raise StoreBusyError(
                    "the schema of the database must be migrated, but another program has locked its tables, such as"
                    " pg_dump or another start of perdure; retry when it has finished"
                ) from error
            time.sleep(LOCKED / 4)


def _step(raw: psycopg.Connection[Row]) -> None:
    """Do the next step, if no other process has done it meanwhile."""
    version = _version(raw)
    if version < len(STEPS):
        raw.execute(STEPS[version].read_bytes())
        raw.execute("UPDATE perdure_schema SET version = %s", (version + 1,))


def _see_near(raw: psycopg.Connection[Row]) -> None:
    """See to it that the database compares vectors, if its owner may."""
    try:
        with raw.transaction():
            if raw.execute(_BROUGHT).fetchall():
                raw.execute("CREATE EXTENSION vector")
            if raw.execute("SELECT to_regtype('halfvec') IS NOT NULL").fetchall()[0][0]:
                raw.execute(_COMPARABLE)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.DuplicateColumn):
        return
