"""Vectors as pgvector compares them, beside the bytes that are sealed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perdure.store.sql import Backend, Connection, run

NEARED = "INSERT OR REPLACE INTO vectors "
"""How a statement of the store begins that keeps a vector."""
MOST_DIMS = 16_000
"""Of a `halfvec`."""
EXACT = 10_000
"""Vectors of a scope that are all compared; `python -m bench.shared` prints what either way costs."""
SPARSE = 5_000
"""With fewer a scope loses its graph again."""
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
    """Make vectors comparable that were written before the database had pgvector, or that a copy has brought.

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


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph of the vectors of one space in one scope that has too many to compare all.

    Attributes:
        name: of the index; it begins with what those of the tenant begin with.
        embedding_id: the space.
        crowd: the scope, as it stands beside its vectors.
    """

    name: str
    embedding_id: str
    crowd: str

    @property
    def condition(self) -> str:
        """What holds for just its vectors, in the words by which the planner knows the graph again."""
        return f"embedding_id = {_quoted(self.embedding_id)} AND crowd = {_quoted(self.crowd)} AND near IS NOT NULL"

    def sql(self, dims: int) -> str:
        """Return the statement that makes it, while others read and write."""
        return (
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {self.name} ON vectors"
            f" USING hnsw (({indexed('near', dims)}) halfvec_cosine_ops) WITH (ef_construction = 200)"
            f" WHERE {self.condition}"
        )


def indexed(column: str, dims: int) -> str:
    """Return the expression that a graph is of."""
    return f"CAST({column} AS halfvec({dims}))"


def graphs(connection: Connection) -> dict[str, bool]:
    """Return the names of the tenant's graphs, and whether each is whole, or its making was cut off."""
    sql = (
        "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " WHERE i.indrelid = CAST('vectors' AS regclass) AND starts_with(c.relname, ?)"
    )
    return dict(run(connection, sql, (_prefix(connection),)))


def being_made(connection: Connection) -> set[str]:
    """Return the names of graphs that the server is making."""
    sql = (
        "SELECT c.relname FROM pg_stat_progress_create_index p JOIN pg_class c ON c.oid = p.index_relid"
        " WHERE p.datname = current_database()"
    )
    return {name for (name,) in run(connection, sql)}


def graph(connection: Connection, embedding_id: str, crowd: str) -> Graph:
    """Return the graph that a scope's vectors of a space have, or would have."""
    space = hashlib.blake2b(embedding_id.encode(), digest_size=8).hexdigest()
    return Graph(f"{_prefix(connection)}{crowd}_{space}", embedding_id, crowd)


def crowds(connection: Connection) -> list[tuple[Graph, int, int]]:
    """Return the graph of each scope that has, or may keep, one, with the vectors' dimensions and their count."""
    sql = (
        "SELECT v.embedding_id, v.crowd, e.dims, count(*) FROM vectors v JOIN embeddings e ON e.id = v.embedding_id"
        " WHERE e.state = 'active' AND v.near IS NOT NULL GROUP BY 1, 2, 3 HAVING count(*) > ?"
    )
    rows = run(connection, sql, (SPARSE,))
    return [(graph(connection, space, crowd), dims, count) for space, crowd, dims, count in rows]


def _prefix(connection: Connection) -> str:
    [(own,)] = run(connection, "SELECT crowd_of(current_setting('perdure.tenant'), '', '')")
    return f"near_{own}_"


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
