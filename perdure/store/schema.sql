-- The schema of facts.db.

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
-- A page of a list, and what waits for review, without a walk through all memories.
CREATE INDEX facts_said ON facts (coalesce(source_date, created_at), seq);
CREATE INDEX facts_waiting ON facts (seq) WHERE review_state = 'pending';

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
-- What to undo next, without a walk through all changes.
CREATE INDEX journal_batch ON journal (batch);
CREATE INDEX journal_undone ON journal (json_extract(detail, '$.undoes')) WHERE action = 'undo';

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
    body TEXT NOT NULL,
    details BLOB
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

CREATE TABLE file_roots (
    scope TEXT NOT NULL,
    scope_target TEXT NOT NULL,
    kind TEXT NOT NULL,
    path TEXT NOT NULL,
    pattern TEXT NOT NULL,
    PRIMARY KEY (scope, scope_target, kind, path)
) WITHOUT ROWID;

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
