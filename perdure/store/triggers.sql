-- Short texts that say in which situations a memory matters. One that was taken away stays, for undo.
CREATE TABLE IF NOT EXISTS triggers (
    id TEXT PRIMARY KEY,
    fact_id TEXT NOT NULL REFERENCES facts (id) ON DELETE CASCADE,
    text TEXT NOT NULL,
    origin TEXT NOT NULL,
    created_at REAL NOT NULL,
    removed_at REAL
);
CREATE INDEX IF NOT EXISTS triggers_fact ON triggers (fact_id);
CREATE TABLE IF NOT EXISTS trigger_vectors (
    trigger_id TEXT NOT NULL REFERENCES triggers (id) ON DELETE CASCADE,
    embedding_id TEXT NOT NULL REFERENCES embeddings (id),
    vector BLOB NOT NULL,
    PRIMARY KEY (trigger_id, embedding_id)
);
