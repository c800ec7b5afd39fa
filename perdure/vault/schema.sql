CREATE TABLE keys (
    generation INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    entry TEXT NOT NULL,
    salt BLOB NOT NULL,
    cost INTEGER NOT NULL,
    nonce BLOB NOT NULL,
    proof BLOB NOT NULL
) STRICT;
CREATE TABLE records (
    id TEXT PRIMARY KEY,
    service TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL,
    generation INTEGER NOT NULL REFERENCES keys (generation),
    nonce BLOB NOT NULL,
    ciphertext BLOB NOT NULL,
    UNIQUE (service, kind, name),
    UNIQUE (generation, nonce)
) STRICT;
