"""The schema of facts.db, as numbered steps. A step is never edited once it has been released."""

from __future__ import annotations

import secrets
from pathlib import Path

from perdure.errors import StoreCorruptError, StoreTooNewError, StoreUnavailableError
from perdure.failpoints import fail_point
from perdure.store.database import Database
from perdure.store.snapshot import snapshot, unused
from perdure.store.sql import Connection, run
from perdure.text.normalise import NORMALISER_VERSION

APPLICATION_ID = 0x70726472  # "prdr": tells our databases from others

_FIRST = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE facts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    why TEXT,
    category TEXT NOT NULL DEFAULT 'other',
    importance REAL NOT NULL DEFAULT 0.5,
    entity TEXT,
    key TEXT,
    value TEXT,
    entity_folded TEXT,
    key_folded TEXT,
    source TEXT NOT NULL DEFAULT 'conversation',
    channel TEXT NOT NULL DEFAULT 'unknown',
    created_at REAL NOT NULL,
    source_date REAL,
    decay_class TEXT NOT NULL DEFAULT 'stable',
    expires_at REAL,
    decay_freeze_until REAL,
    last_confirmed_at REAL,
    confidence REAL NOT NULL DEFAULT 1.0,
    summary TEXT,
    tags TEXT NOT NULL DEFAULT '',
    preserve_tags INTEGER NOT NULL DEFAULT 0,
    normalized_hash TEXT NOT NULL,
    recall_count INTEGER NOT NULL DEFAULT 0,
    access_count INTEGER NOT NULL DEFAULT 0,
    injected_count INTEGER NOT NULL DEFAULT 0,
    reinforced_count INTEGER NOT NULL DEFAULT 0,
    last_accessed REAL,
    last_accessed_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%fZ', last_accessed, 'unixepoch')) VIRTUAL,
    valid_from REAL,
    valid_until REAL,
    superseded_at REAL,
    superseded_by TEXT,
    supersedes_id TEXT,
    forgotten_at REAL,
    tier TEXT NOT NULL DEFAULT 'warm',
    scope TEXT NOT NULL DEFAULT 'global',
    scope_target TEXT NOT NULL DEFAULT '',
    embedding_model TEXT,
    provenance_session TEXT,
    source_turn TEXT,
    extraction_method TEXT,
    extraction_confidence REAL NOT NULL DEFAULT 1.0,
    pinned INTEGER NOT NULL DEFAULT 0,
    review_state TEXT NOT NULL DEFAULT 'approved',
    metadata TEXT NOT NULL DEFAULT '{}',
    change_seq INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX facts_category ON facts (category);
CREATE INDEX facts_entity ON facts (entity_folded, key_folded);
CREATE INDEX facts_created_at ON facts (created_at);
CREATE INDEX facts_expires_at ON facts (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX facts_decay_class ON facts (decay_class);
CREATE INDEX facts_tags ON facts (tags) WHERE tags <> '';
CREATE INDEX facts_source_date ON facts (source_date);
CREATE INDEX facts_last_accessed ON facts (last_accessed);
CREATE INDEX facts_superseded_at ON facts (superseded_at);
CREATE INDEX facts_validity ON facts (valid_from, valid_until);
CREATE INDEX facts_hash ON facts (normalized_hash);
CREATE INDEX facts_scope ON facts (scope, scope_target);

CREATE VIRTUAL TABLE facts_fts USING fts5 (
    text, entity, key, value, category,
    content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'
);
INSERT INTO facts_fts (facts_fts, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE facts_terms USING fts5vocab (facts_fts, 'row');

CREATE TABLE memory_links (
    id TEXT PRIMARY KEY,
    source_fact_id TEXT NOT NULL REFERENCES facts (id) ON DELETE CASCADE,
    target_fact_id TEXT NOT NULL REFERENCES facts (id) ON DELETE CASCADE,
    link_type TEXT NOT NULL,
    strength REAL NOT NULL DEFAULT 1.0 CHECK (strength BETWEEN 0 AND 1),
    created_at REAL NOT NULL,
    UNIQUE (source_fact_id, target_fact_id, link_type)
);
CREATE INDEX links_source ON memory_links (source_fact_id, link_type);
CREATE INDEX links_target ON memory_links (target_fact_id);
CREATE INDEX links_type ON memory_links (link_type);

CREATE TABLE embeddings (
    id TEXT PRIMARY KEY,
    identity TEXT NOT NULL,
    dims INTEGER NOT NULL,
    state TEXT NOT NULL
);
CREATE TABLE vectors (
    fact_id TEXT NOT NULL REFERENCES facts (id) ON DELETE CASCADE,
    embedding_id TEXT NOT NULL REFERENCES embeddings (id),
    vector BLOB NOT NULL,
    PRIMARY KEY (fact_id, embedding_id)
);

CREATE TABLE journal (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    action TEXT NOT NULL,
    fact_id TEXT NOT NULL,
    other_id TEXT,
    channel TEXT NOT NULL,
    host TEXT NOT NULL,
    session TEXT,
    batch TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '{}',
    seal BLOB
);
CREATE INDEX journal_fact ON journal (fact_id);
CREATE INDEX journal_unsealed ON journal (seq) WHERE seal IS NULL;

CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    fact_id TEXT NOT NULL,
    queued_at REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    parked TEXT
);

CREATE TABLE inbox_done (entry_id TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE inbox_parked (
    entry_id TEXT PRIMARY KEY, at REAL NOT NULL, error TEXT NOT NULL, entry TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE cursors (session TEXT PRIMARY KEY, tail TEXT NOT NULL, at REAL NOT NULL) WITHOUT ROWID;

CREATE TABLE receipts (
    id TEXT PRIMARY KEY,
    at REAL NOT NULL,
    session TEXT,
    scope TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX receipts_at ON receipts (at);

CREATE TABLE tombstones (key TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE purges (
    id TEXT PRIMARY KEY,
    asked_at REAL NOT NULL,
    state TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '{}',
    needles BLOB
);
CREATE TABLE seals (id TEXT PRIMARY KEY, seal BLOB NOT NULL) WITHOUT ROWID;
"""

_SECOND = """
CREATE TABLE file_roots (
    scope TEXT NOT NULL,
    scope_target TEXT NOT NULL,
    kind TEXT NOT NULL,
    path TEXT NOT NULL,
    pattern TEXT NOT NULL,
    PRIMARY KEY (scope, scope_target, kind, path)
) WITHOUT ROWID;
"""

_THIRD = """
CREATE TABLE proposals (
    id TEXT PRIMARY KEY,
    fact_id TEXT NOT NULL REFERENCES facts (id) ON DELETE CASCADE,
    evidence TEXT NOT NULL,
    state TEXT NOT NULL,
    made_at REAL NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX proposals_fact ON proposals (fact_id);
CREATE TABLE jobs (
    name TEXT PRIMARY KEY,
    last_run REAL,
    next_run REAL NOT NULL,
    took REAL,
    result TEXT,
    failures INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'waiting'
) WITHOUT ROWID;
"""


def _first(connection: Connection) -> None:
    run(connection, _FIRST)
    values = {"normaliser": str(NORMALISER_VERSION), "store_key": secrets.token_hex(32)}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", list(values.items()))


def _second(connection: Connection) -> None:
    run(connection, _SECOND)


def _third(connection: Connection) -> None:
    run(connection, _THIRD)


def _fourth(connection: Connection) -> None:
    run(connection, "ALTER TABLE receipts ADD COLUMN details BLOB")


def _fifth(connection: Connection) -> None:
    # What was written up to here followed the rules of lifetimes and of replacing that held then: see `earlier`.
    run(connection, "INSERT INTO meta SELECT 'earlier_rules', max(seq) FROM journal HAVING max(seq) IS NOT NULL")


def _sixth(connection: Connection) -> None:
    # A page of a list, and what to undo next, without a walk through all memories or all changes.
    run(connection, "CREATE INDEX facts_said ON facts (coalesce(source_date, created_at), seq)")
    run(connection, "CREATE INDEX journal_batch ON journal (batch)")
    run(connection, "CREATE INDEX facts_waiting ON facts (seq) WHERE review_state = 'pending'")
    undone = "json_extract(detail, '$.undoes')) WHERE action = 'undo'"
    run(connection, f"CREATE INDEX journal_undone ON journal ({undone}")


STEPS = (_first, _second, _third, _fourth, _fifth, _sixth)


def check(connection: Connection, path: Path) -> None:
    """See that a database is ours to change, before anything in it is.

    Raises:
        StoreTooNewError: a newer perdure wrote it.
        StoreCorruptError: it is a database of something else.
    """
    # In this order: another process may be creating it, and its mark is committed together with its tables.
    used = bool(run(connection, "SELECT 1 FROM sqlite_schema LIMIT 1"))
    version = _version(connection)
    owner = int(run(connection, "PRAGMA application_id")[0][0])
    if owner == APPLICATION_ID:
        if version > len(STEPS):
            raise StoreTooNewError(
                f"{path} has schema {version}, this perdure knows up to {len(STEPS)}; "
                "it was left untouched. Upgrade perdure"
            )
    elif version or used:
        raise StoreCorruptError(f"{path} is the database of another program; it was left untouched. Move it away")


def migrate(database: Database, *, keep: bool = True) -> None:
    """Bring the schema up to date, each step in a transaction of its own.

    Args:
        database: what to migrate.
        keep: before an older store with facts in it is changed, keep a copy of it in `backups/` beside it.

    Raises:
        StoreError: one of its kinds; the steps before are done, the one that failed is not.
    """
    with database.read() as connection:
        version = _version(connection)
    if version < len(STEPS) and database.refusal is not None:
        raise StoreUnavailableError(
            f"{database.path} was written by an older perdure and must be brought up to date before it can be read; "
            f"{database.refusal.partition(';')[0]}"
        )
    while version < len(STEPS):
        with database.write() as connection:
            # Another process may have done this step since: what counts is the version under the lock.
            version = _version(connection)
            if version < len(STEPS):
                fail_point("migrate.begun")
                if keep and version and _has_facts(connection):
                    _keep(database, version)
                keep = False
                STEPS[version](connection)
                fail_point("migrate.stepped")
                version += 1
                run(connection, f"PRAGMA user_version = {version}")
                run(connection, f"PRAGMA application_id = {APPLICATION_ID}")
        fail_point("migrate.committed")


def _has_facts(connection: Connection) -> bool:
    return bool(run(connection, "SELECT 1 FROM facts LIMIT 1"))


def _keep(database: Database, version: int) -> None:
    # Read beside the transaction that is to change it: its lock keeps everybody else from writing meanwhile.
    with database.read() as reader:
        snapshot(reader, unused(database.path.parent / "backups", f"facts-before-schema-{version + 1}"))


def _version(connection: Connection) -> int:
    return int(run(connection, "PRAGMA user_version")[0][0])
