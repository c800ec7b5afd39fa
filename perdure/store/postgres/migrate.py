"""Brings the schema of a PostgreSQL database up to date, step by step, beside processes that are at work in it."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from perdure.errors import StoreTooNewError
from perdure.store.postgres.connection import in_our_terms
from perdure.store.postgres.schema import LEAST, NEAR, STEPS

MIGRATION = 0x70726473
"""The lock of who brings the schema up to date."""
PATIENCE = 10
"""Seconds for which a connection is waited for."""
_NEAR = "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('vectors') AND attname = 'near' AND NOT attisdropped"
_BROUGHT = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector' AND installed_version IS NULL"


def migrate(url: str) -> bool:
    """Run the steps that a database has not had yet, each as a whole.

    `perdure_schema` names the oldest perdure that can work with the schema, `perdure_steps` what was done: so a
    perdure of the former version goes on, and may be started, beside this one.

    Args:
        url: of the database itself, not of a pooler before it, if there is one.

    Returns:
        Whether the database compares vectors: it has pgvector.

    Raises:
        StoreUnavailableError: it cannot be reached.
        StoreTooNewError: a newer perdure made its schema, and this one cannot work with it.
    """
    client = psycopg.ClientCursor
    with (
        in_our_terms(),
        psycopg.connect(url, connect_timeout=PATIENCE, cursor_factory=client) as raw,
        raw.transaction(),
    ):
        raw.execute("SELECT pg_advisory_xact_lock(%s, 0)", (MIGRATION,))
        raw.execute("CREATE TABLE IF NOT EXISTS perdure_schema (version integer NOT NULL)")
        raw.execute(
            "CREATE TABLE IF NOT EXISTS perdure_steps (step integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"
        )
        rows = raw.execute("SELECT version FROM perdure_schema").fetchall()
        least = int(rows[0][0]) if rows else 0
        if least > len(STEPS):
            raise StoreTooNewError(
                f"the database asks for schema {least}, this perdure knows up to {len(STEPS)}; upgrade perdure"
            )
        found = raw.execute("SELECT max(step) FROM perdure_steps").fetchall()
        done = max(least, int(found[0][0] or 0))
        for number, step in enumerate(STEPS[done:], done + 1):
            raw.execute(step)
            raw.execute("INSERT INTO perdure_steps (step) VALUES (%s)", (number,))
        if done < len(STEPS):
            raw.execute("DELETE FROM perdure_schema")
            raw.execute("INSERT INTO perdure_schema VALUES (%s)", (LEAST,))
        return _compares(raw)


def refusing_writes_elsewhere(url: str) -> str | None:
    """Return which of several servers is connected to: the one that takes writes; None: the address says it itself."""
    told = conninfo_to_dict(url)
    several = "," in str(told.get("host") or "")
    return "read-write" if several and "target_session_attrs" not in told else None


def _compares(raw: psycopg.Connection) -> bool:
    """Return whether vectors can be compared in the database, and see to it if its owner may."""
    if raw.execute(_NEAR).fetchall():
        return True
    try:
        with raw.transaction():
            if raw.execute(_BROUGHT).fetchall():
                raw.execute("CREATE EXTENSION vector")
            if not raw.execute("SELECT to_regtype('halfvec') IS NOT NULL").fetchall()[0][0]:
                return False
            raw.execute(NEAR)
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True
