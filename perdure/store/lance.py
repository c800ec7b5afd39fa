"""The LanceDB table: derived from SQLite, fed by the worker process, rebuilt at will."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.errors import StoreUnavailableError
from perdure.store.database import Database, run
from perdure.store.fact import live_sql
from perdure.store.folder import prepare_folder
from perdure.store.scope import Scope
from perdure.store.vector_index import VectorHit

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import Table

    from perdure.store.search import View
    from perdure.store.vector_index import Vector

OPTIMIZE_AFTER = 32
KEEP_VERSIONS = timedelta(hours=1)
LanceRow = dict[str, Any]


def rows_of(database: Database, fact_ids: Sequence[str], embedding_id: str, now: float) -> list[LanceRow]:
    """Return the rows that the table should hold for these facts: the live ones that have a vector."""
    condition, values = live_sql(now)
    marks = ", ".join("?" * len(fact_ids))
    sql = (
        "SELECT facts.id, facts.text, v.vector, facts.importance, facts.category, facts.scope, facts.scope_target,"
        " facts.created_at, facts.expires_at FROM facts JOIN vectors v ON v.fact_id = facts.id AND v.embedding_id = ?"
        f" WHERE facts.id IN ({marks}) AND {condition}"
    )
    with database.read() as connection:
        found = run(connection, sql, (embedding_id, *fact_ids, *values))
    return [
        {"id": id_, "text": text, "vector": vector, "importance": importance, "category": category,
         "scope": str(Scope(kind, target)), "created_at": created_at,
         "expires_at": math.inf if expires_at is None else expires_at}
        for id_, text, vector, importance, category, kind, target, created_at, expires_at in found
    ]  # fmt: skip


class LanceIndex:
    """Approximate nearest vectors from a LanceDB folder. Importing lancedb takes seconds of CPU: keep it off a turn."""

    def __init__(self, folder: Path, embedding_id: str, dims: int, *, create: bool = True) -> None:
        """Open the table of one vector space.

        Args:
            folder: where LanceDB keeps its files.
            embedding_id: the vector space.
            dims: its dimensions.
            create: make the table if it is not there. Only the worker does: its umask keeps the files private.

        Raises:
            StoreUnavailableError: LanceDB cannot be imported, or the folder cannot be used.
        """
        self._dims = dims
        self._name = f"memories_{embedding_id}"
        self._writes = 0
        try:
            import lancedb

            self._db = lancedb.connect(prepare_folder(folder))
            self._table = self._open(create)
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            raise StoreUnavailableError(
                f"LanceDB folder {folder} cannot be opened ({type(error).__name__}); "
                "recall uses the exact index meanwhile. Delete the folder to have it rebuilt"
            ) from error

    def apply(self, upserts: Sequence[LanceRow], deletes: Sequence[str]) -> None:
        """Make the table hold these rows and none of the deleted ids. Repeating it changes nothing."""
        if upserts:
            # `add` would duplicate rows when a batch is repeated after a kill.
            merge = self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            merge.execute(self._arrow(upserts))
            self._writes += 1
        if deletes:
            self._table.delete(_among("id", deletes))
            self._writes += 1
        if self._writes >= OPTIMIZE_AFTER:
            self.optimize()

    def optimize(self) -> None:
        """Merge the fragments that single writes leave; versions that open readers may hold stay for an hour."""
        self._table.optimize(cleanup_older_than=KEEP_VERSIONS)
        self._writes = 0

    @property
    def fragmented(self) -> bool:
        """Whether there were writes since the last `optimize`."""
        return self._writes > 0

    def ids(self) -> set[str]:
        """Return the ids of all rows."""
        return set(self._table.search().select(["id"]).limit(None).to_arrow()["id"].to_pylist())

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        """Return up to `limit` facts that the view's audience may read, nearest first. Holds live facts only."""
        from lancedb.expr import col, lit

        allowed = _among("scope", [str(scope) for scope in sorted(view.audience.scopes)])
        allowed = allowed & (col("expires_at") > lit(view.now))
        self._table.checkout_latest()  # type: ignore[no-untyped-call]
        found = (
            self._table.search(query, query_type="vector")
            .distance_type("cosine")  # type: ignore[attr-defined]
            .where(allowed, prefilter=True)
            .select(["id", "_distance"])
            .limit(limit)
            .to_arrow()
        )
        return [VectorHit(row["id"], 1.0 - row["_distance"]) for row in found.to_pylist()]

    def close(self) -> None:
        """Release the table."""
        self._table.close() if hasattr(self._table, "close") else None

    def _open(self, create: bool) -> Table:
        if not create or self._name in self._db.list_tables().tables:
            return self._db.open_table(self._name)
        return self._db.create_table(self._name, schema=self._schema(), exist_ok=True)

    def _schema(self) -> pa.Schema:
        import pyarrow as pa

        # Without this mark, concurrent merges of one new id duplicate it.
        key = {"lance-schema:unenforced-primary-key": "true"}
        return pa.schema([
            pa.field("id", pa.string(), nullable=False, metadata=key),
            pa.field("text", pa.string()),
            pa.field("vector", pa.list_(pa.float32(), self._dims)),
            pa.field("importance", pa.float32()),
            pa.field("category", pa.string()),
            pa.field("scope", pa.string()),
            pa.field("created_at", pa.float64()),
            pa.field("expires_at", pa.float64()),
        ])  # fmt: skip

    def _arrow(self, rows: Sequence[LanceRow]) -> pa.Table:
        import numpy as np
        import pyarrow as pa

        schema = self._schema()
        flat = np.concatenate([np.frombuffer(row["vector"], dtype="<f4") for row in rows])
        columns = [
            pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.float32()), self._dims)
            if name == "vector"
            else pa.array([row[name] for row in rows], schema.field(name).type)
            for name in schema.names
        ]
        return pa.Table.from_arrays(columns, schema=schema)


def _among(column: str, values: Sequence[str]) -> Any:
    from lancedb.expr import col, lit

    return col(column).isin([lit(value) for value in values])
