-- The index of files and conversations: made anew whenever its version, in perdure/files/index.py, changes.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,
    scope_target TEXT NOT NULL,
    kind TEXT NOT NULL,
    root TEXT NOT NULL,
    relative TEXT NOT NULL,
    path TEXT NOT NULL,
    source TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    hash TEXT NOT NULL,
    session TEXT,
    day REAL,
    skipped TEXT,
    sum BLOB NOT NULL,
    UNIQUE (scope, scope_target, kind, root, relative)
);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file_id INTEGER NOT NULL REFERENCES files (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    scope TEXT NOT NULL,
    scope_target TEXT NOT NULL,
    source TEXT NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    section TEXT NOT NULL,
    speaker TEXT,
    role TEXT,
    at REAL,
    text TEXT NOT NULL,
    digest TEXT NOT NULL,
    hash TEXT NOT NULL,
    sum BLOB NOT NULL
);
CREATE INDEX chunks_file ON chunks (file_id, place);
CREATE INDEX chunks_hash ON chunks (hash);
CREATE VIRTUAL TABLE chunks_fts USING fts5 (
    body, context, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'
);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE chunks_terms USING fts5vocab (chunks_fts, 'row');
CREATE VIRTUAL TABLE files_fts USING fts5 (
    body, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'
);
INSERT INTO files_fts (files_fts, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE files_terms USING fts5vocab (files_fts, 'row');
CREATE TABLE embedding_cache (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    model TEXT NOT NULL,
    space TEXT NOT NULL,
    hash TEXT NOT NULL,
    vectors BLOB NOT NULL,
    sum BLOB NOT NULL
);
CREATE UNIQUE INDEX embedding_cache_hash ON embedding_cache (space, hash);
