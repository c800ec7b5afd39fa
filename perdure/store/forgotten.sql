-- What was forgotten, by marks that tell it again.
CREATE TABLE IF NOT EXISTS forgotten (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    fact_id TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    scope_target TEXT NOT NULL,
    at REAL NOT NULL,
    marks TEXT NOT NULL
);
