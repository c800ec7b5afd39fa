"""Vectors as pgvector compares them, beside the bytes that are sealed, and the nearest ones, found by the database.

No process holds them in memory, so several machines share them. In a scope of usual size every vector is compared. A
larger one has a graph of its own (HNSW), which is walked until enough are found that may be seen: of a graph of all
vectors, a question off the scope's topic found few. What is found is then compared exactly.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perdure.index.vector_index import SPARE, Survey, VectorHit, all_cosines, cosines, scan, surveyed
from perdure.recent import Recent
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, enumerated
from perdure.store.sql import Backend, Connection, run

if TYPE_CHECKING:
    from perdure.embed.base import Vector, Vectors

MOST_DIMS = 16_000
"""Of a `halfvec`."""
EXACT = 10_000
"""Vectors of a scope that are all compared; `python -m bench.shared` prints what either way costs."""
SPARSE = 5_000
"""With fewer a scope loses its graph again."""
FILLED = 500
"""Vectors that are made comparable at a time."""


def halfvec(blob: bytes) -> str | None:
    """Return a vector (float32, little endian) as PostgreSQL reads a `halfvec`; None: it is damaged, or too long."""
    import numpy as np

    if len(blob) % 4 or not 0 < len(blob) // 4 <= MOST_DIMS:
        return None
    values = np.frombuffer(blob, dtype="<f4")
    if not (np.isfinite(values).all() and (np.abs(values) < np.finfo(np.float16).max).all()):
        return None
    return "[" + ",".join(map("{:.5g}".format, values.tolist())) + "]"


def fill(database: Backend, after: int = 0) -> tuple[int, int]:
    """Make vectors comparable that were written before the database had pgvector, or that a copy has brought.

    Only rows behind `after` count. Return how many were looked at, and the row of the last one.
    """
    sql = "SELECT rowid, vector FROM vectors WHERE near IS NULL AND rowid > ? ORDER BY rowid LIMIT ?"
    rows = database.query(run, sql, (after, FILLED))
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
    """A graph of the vectors of one space in one scope that has too many to compare all."""

    name: str  # of the index; it begins with what those of the tenant begin with
    embedding_id: str
    crowd: str  # the scope, as it stands beside its vectors

    @property
    def condition(self) -> str:
        """What holds for just its vectors, in the words by which the planner knows the graph again."""
        return f"embedding_id = {_quoted(self.embedding_id)} AND crowd = {_quoted(self.crowd)} AND near IS NOT NULL"

    def sql(self, dims: int) -> str:
        """Return the statement that makes it, while others read and write."""
        return (
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {self.name} ON vectors"
            f" USING hnsw (({indexed(dims)}) halfvec_cosine_ops) WITH (ef_construction = 200)"
            f" WHERE {self.condition}"
        )


def indexed(dims: int) -> str:
    """Return the expression that a graph is of."""
    return f"CAST(near AS halfvec({dims}))"


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
    return "'" + text.replace("'", "''") + "'"


LOOK = 60.0
"""Seconds for which it is taken as known which scopes have a graph."""
UNFILLED = 2_000
"""Vectors from before the database had pgvector that are read and compared here until they are made comparable."""
WALK = (
    "SET LOCAL hnsw.iterative_scan = strict_order", "SET LOCAL hnsw.ef_search = 400",
    "SET LOCAL hnsw.max_scan_tuples = 200000", "SET LOCAL hnsw.scan_mem_multiplier = 4", "SET LOCAL enable_sort = off"
)  # fmt: skip
"""How far the graph is walked for what may be seen."""
_SEEN = "WITH seen AS MATERIALIZED (SELECT facts.id FROM facts WHERE {condition}) "
"""What may be seen is looked for first: a scope has few rows of all, whatever the planner takes it for."""
_OF = "JOIN vectors v ON v.fact_id = seen.id AND v.embedding_id = ? AND v.near IS NOT NULL"


class DatabaseIndex:
    """The vectors of one space, compared by the database. Usable from any thread."""

    def __init__(self, database: Backend, embedding_id: str, dims: int) -> None:
        self._database, self._embedding_id, self._dims = database, embedding_id, dims
        self._lock = threading.Lock()
        self._known: Recent[frozenset[Scope], tuple[float, Mapping[Scope, Graph]]] = Recent(1024)

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        """Return up to `limit` facts that the view's audience may read, nearest first."""
        with self._database.read() as connection:
            view = replace(view, audience=enumerated(connection, view.audience))
            graphs = self._graphs(connection, view.audience)
            found = []
            rest = view.audience.scopes - graphs.keys()
            if rest or not graphs:
                audience = replace(view.audience, scopes=rest)
                found += self._compared(connection, query, replace(view, audience=audience), limit + SPARE)
            for each in graphs.values():
                found += self._walked(connection, query, view, limit + SPARE, each)
            fresh = self._unfilled(connection)
        exact = cosines(self._database, query, found, self._embedding_id)
        hits = [VectorHit(fact_id, exact[fact_id]) for fact_id in found if fact_id in exact]
        if fresh:
            hits += scan(self._database, self._embedding_id, query, view, limit, among=fresh)
            fill(self._database)
        return sorted(hits, key=lambda hit: -hit.cosine)[:limit]

    def survey(self, queries: Vectors, view: View, limit: int) -> Survey:
        """Return up to `limit` facts that are nearest to any of the queries, and how far the queries are from all."""
        import numpy as np

        with self._database.read() as connection:
            graphs = self._graphs(connection, enumerated(connection, view.audience))
        if graphs:
            return surveyed(self._database, self._embedding_id, self, queries, view, limit)
        condition, values = view.sql(self._database.dialect)
        parts = range(len(queries))
        near = ", ".join(f"1 - (v.near <=> CAST(? AS halfvec)) AS c{part}" for part in parts)
        around = ", ".join(f"sum(c{part}) OVER (), sum(c{part} * c{part}) OVER ()" for part in parts)
        best = ", ".join(f"c{part}" for part in parts)
        sql = (
            f"{_SEEN.format(condition=condition)} SELECT id, count(*) OVER (), {around}"
            f" FROM (SELECT seen.id AS id, {near} FROM seen {_OF}) AS compared"
            f" ORDER BY greatest({best}) DESC LIMIT ?"
        )
        bound = (*values, *(halfvec(query.tobytes()) for query in queries), self._embedding_id, limit + SPARE)
        rows = self._database.query(run, sql, bound)
        found = all_cosines(self._database, queries, [row[0] for row in rows], self._embedding_id)
        ids = sorted(found, key=lambda fact_id: -max(found[fact_id]))[:limit]
        exact = np.array([found[fact_id] for fact_id in ids], dtype=np.float32).reshape(len(ids), len(queries)).T
        sums = np.array(rows[0][2:] if rows else [0.0, 0.0] * len(queries), dtype=np.float32).reshape(-1, 2)
        count = rows[0][1] if rows else 0
        return Survey(ids, exact, sums[:, 0], sums[:, 1], count, count)

    def close(self) -> None:
        """Nothing is held."""

    def _compared(self, connection: Connection, query: Vector, view: View, limit: int) -> list[str]:
        """Return what is nearest in what may be seen."""
        condition, values = view.sql(self._database.dialect)
        sql = (
            f"{_SEEN.format(condition=condition)} SELECT seen.id FROM seen {_OF}"
            " ORDER BY v.near <=> CAST(? AS halfvec) LIMIT ?"
        )
        given = halfvec(query.tobytes())
        return [row[0] for row in run(connection, sql, (*values, self._embedding_id, given, limit))]

    def _walked(self, connection: Connection, query: Vector, view: View, limit: int, graph: Graph) -> list[str]:
        """Return what a graph leads to of what may be seen."""
        for setting in WALK:
            run(connection, setting)
        condition, values = view.sql(self._database.dialect)
        near = f"{indexed(self._dims)} <=> CAST(? AS halfvec({self._dims}))"
        sql = (
            f"SELECT facts.id FROM facts JOIN vectors v ON v.fact_id = facts.id"
            f" WHERE {graph.condition} AND {condition} ORDER BY {near} LIMIT ?"
        )
        return [row[0] for row in run(connection, sql, (*values, halfvec(query.tobytes()), limit))]

    def _unfilled(self, connection: Connection) -> list[str]:
        sql = "SELECT fact_id FROM vectors WHERE near IS NULL AND embedding_id = ? LIMIT ?"
        return [fact_id for (fact_id,) in run(connection, sql, (self._embedding_id, UNFILLED))]

    def _graphs(self, connection: Connection, audience: Audience) -> Mapping[Scope, Graph]:
        """Return the graphs of those scopes of an audience that have one."""
        now = time.monotonic()
        with self._lock:
            looked, found = self._known.get(audience.scopes) or (float("-inf"), {})
            if now - looked > LOOK:
                there = graphs(connection)
                found = {}
                for scope in audience.scopes if there else ():
                    [(crowd,)] = run(connection, "SELECT crowd_of(current_setting('perdure.tenant'), ?, ?)", scope)
                    made = graph(connection, self._embedding_id, crowd)
                    if there.get(made.name):
                        found[scope] = made
                self._known.put(audience.scopes, (now, found))
            return found
