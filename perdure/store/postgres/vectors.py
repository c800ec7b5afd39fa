"""Vectors as pgvector compares them, beside the bytes that are sealed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from perdure.store.sql import Backend, Connection, run

NEARED = "INSERT OR REPLACE INTO vectors "
"""How a statement of the store begins that keeps a vector."""
MOST_DIMS = 16_000
"""Of a `halfvec`."""
EXACT = 20_000
"""Vectors of a scope that are all compared; `python -m bench.shared` prints what either way costs."""
FILLED = 100
"""Vectors that are made comparable at a time."""
_INTO = "INSERT INTO vectors "
_COLUMNS = "(near, fact_id, embedding_id, vector)"


def halfvec(blob: bytes) -> str | None:
    """Return a vector (float32, little endian) as PostgreSQL reads a `halfvec`; None: it is damaged, or too long."""
    import numpy as np

    if len(blob) % 4 or not 0 < len(blob) // 4 <= MOST_DIMS:
        return None
    values = np.frombuffer(blob, dtype="<f4")
    if not (np.isfinite(values).all() and (np.abs(values) < np.finfo(np.float16).max).all()):
        return None
    return "[" + ",".join(map("{:.5g}".format, values.tolist())) + "]"


def near(sql: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a translated statement that keeps a vector, and its values, so that it is kept for comparing, too."""
    blob = next(value for value in values.values() if isinstance(value, bytes))
    rest = sql.removeprefix(_INTO)
    for word, more in (("VALUES (", "VALUES (%(near)s, "), ("SELECT ", "SELECT CAST(%(near)s AS halfvec), ")):
        if rest.startswith(word):
            rest = more + rest.removeprefix(word)
    changed = rest.replace("DO UPDATE SET ", "DO UPDATE SET near = excluded.near, ", 1)
    return f"{_INTO}{_COLUMNS} {changed}", {**values, "near": halfvec(blob)}


def fill(database: Backend) -> int:
    """Make vectors comparable that a former perdure has written beside this one; return how many.

    Raises:
        StoreError: one of its kinds.
    """
    with database.read() as connection:
        rows = run(connection, "SELECT fact_id, embedding_id, vector FROM vectors WHERE near IS NULL ORDER BY rowid")
    known = [(halfvec(blob), *key, blob) for *key, blob in rows[: 10 * FILLED]]
    filled = [each for each in known if each[0] is not None][:FILLED]
    sql = "UPDATE vectors SET near = CAST(? AS halfvec) WHERE fact_id = ? AND embedding_id = ? AND vector = ?"
    with database.beside() as connection:
        connection.executemany(sql, filled)
    return len(filled)


def graph(embedding_id: str) -> str:
    """Return the name of the graph of a space's vectors."""
    return f"near_{hashlib.blake2b(embedding_id.encode(), digest_size=8).hexdigest()}"


def indexed(column: str, dims: int) -> str:
    """Return the expression that the graph is of."""
    return f"CAST({column} AS halfvec({dims}))"


def graph_sql(embedding_id: str, dims: int) -> str:
    """Return the statement that makes the graph of a space's vectors, while others read and write."""
    of = embedding_id.replace("'", "''")
    return (
        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {graph(embedding_id)} ON vectors"
        f" USING hnsw (({indexed('near', dims)}) halfvec_cosine_ops) WHERE embedding_id = '{of}' AND near IS NOT NULL"
    )


def crowded(connection: Connection) -> list[tuple[str, int]]:
    """Return the spaces, with their dimensions, of which one scope has more vectors than are all compared."""
    sql = (
        "SELECT e.id, e.dims FROM embeddings e WHERE e.state = 'active' AND EXISTS ("
        "SELECT 1 FROM facts f JOIN vectors v ON v.fact_id = f.id AND v.embedding_id = e.id"
        " GROUP BY f.scope, f.scope_target HAVING count(*) > ?)"
    )
    return [(name, dims) for name, dims in run(connection, sql, (EXACT,))]
