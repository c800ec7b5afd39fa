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
FILLED = 500
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


def fill(database: Backend, after: int = 0) -> tuple[int, int]:
    """Make vectors comparable that a former perdure has written beside this one, or a copy has brought.

    Args:
        database: one that compares.
        after: only rows behind this one.

    Returns:
        How many were looked at, and the row of the last one.

    Raises:
        StoreError: one of its kinds.
    """
    sql = "SELECT rowid, vector FROM vectors WHERE near IS NULL AND rowid > ? ORDER BY rowid LIMIT ?"
    with database.read() as connection:
        rows = run(connection, sql, (after, FILLED))
    made = [(row, blob, text) for row, blob in rows if (text := halfvec(blob)) is not None]
    if made:
        sql = (
            "UPDATE vectors SET near = CAST(made.near AS halfvec)"
            " FROM unnest(CAST(? AS bigint[]), CAST(? AS bytea[]), CAST(? AS text[])) AS made (row, vector, near)"
            " WHERE vectors.rowid = made.row AND vectors.vector = made.vector"
        )
        with database.beside() as connection:
            run(connection, sql, [list(column) for column in zip(*made, strict=True)])
    return len(rows), rows[-1][0] if rows else after


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
