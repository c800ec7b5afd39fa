"""The LanceDB table: derived from SQLite, fed by the worker process, rebuilt at will; in the folder or elsewhere."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perdure.errors import InputError, StoreUnavailableError
from perdure.extras import how_to_install
from perdure.failpoints import fail_point
from perdure.hooks.types import Channel
from perdure.index.vector_index import VectorHit
from perdure.store.fact import Fact, live_sql
from perdure.store.folder import prepare_folder
from perdure.store.scope import Scope
from perdure.store.sql import Backend, run
from perdure.store.store import ObjectStore, Store

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from lancedb.db import DBConnection
    from lancedb.table import Table
    from numpy.typing import NDArray

    from perdure.embed.base import Vector
    from perdure.store.search import View

OPTIMIZE_AFTER = 32
KEEP_VERSIONS = timedelta(hours=1)
PROBES, EVERY = 40, 0
"""Parts of the approximate index that are looked through, of about 8,000 vectors each; all of them."""
REFINE = 3
"""So many times more candidates than asked for are compared once more with their full vectors."""
_DELETE_CHUNK = 500
_INDEX_BYTES, METADATA_BYTES = 512 << 20, 2 << 20
"""What LanceDB keeps at hand of its indexes, a byte for each number of a vector, and of its files. Each change of the
table adds to that and takes nothing away before these are reached; by default they are 6 GB and 1 GB."""
LANCE_ERRORS = (OSError, RuntimeError, ValueError)
"""What LanceDB raises for everything that goes wrong in it; ArrowInvalid is a ValueError."""
_PANICS = frozenset({"RustPanic", "PanicException"})
LanceRow = dict[str, Any]
Place = Path | ObjectStore
"""Where tables are."""
_Found = TypeVar("_Found")


def rows_of(database: Backend, fact_ids: Sequence[str], embedding_id: str, now: float) -> list[LanceRow]:
    """Return the rows that the table should hold for these facts: the live ones that have a vector."""
    condition, values = live_sql(now)
    sql = (
        "SELECT facts.id, facts.text, v.vector, facts.importance, facts.category, facts.scope, facts.scope_target,"
        " facts.created_at, facts.expires_at FROM facts JOIN vectors v ON v.fact_id = facts.id AND v.embedding_id = ?"
        f" WHERE facts.id IN (SELECT value FROM json_each(?)) AND {condition}"
    )
    found = database.query(run, sql, (embedding_id, json.dumps(list(fact_ids)), *values))
    return [
        {"id": id_, "text": text, "vector": vector, "importance": importance, "category": category,
         "scope": str(Scope(kind, target)), "created_at": created_at,
         "expires_at": math.inf if expires_at is None else expires_at}
        for id_, text, vector, importance, category, kind, target, created_at, expires_at in found
    ]  # fmt: skip


class LanceIndex:
    """Approximate nearest vectors from a LanceDB folder. Importing lancedb takes seconds of CPU: keep it off a turn."""

    def __init__(self, place: Place, embedding_id: str, dims: int, *, create: bool = True, generation: int = 0) -> None:
        """Open the table of one vector space.

        Only the worker makes (`create`) one that is not there: its umask keeps the files private.
        """
        self._dims = dims
        self._name = table_name(embedding_id, generation)
        self._prefix = table_name(embedding_id, 0)
        self.writes = 0  # since the last `optimize`; each leaves a fragment that costs every search
        with _translated("opened"):
            import lancedb

            self._session = lancedb.Session(_INDEX_BYTES, METADATA_BYTES)
            self._db = _connected(place, create=create, session=self._session)
            self._table = self._open(create)

    def apply(self, upserts: Sequence[LanceRow], deletes: Sequence[str]) -> None:
        """Make the table hold these rows and none of the deleted ids. Repeating it changes nothing."""
        if upserts:
            rows = self._arrow(upserts)
            with _translated("written"):
                # `add` would duplicate rows when a batch is repeated after a kill.
                merge = self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
                merge.execute(rows)
            fail_point("lance.merged")
            self.writes += 1
        if deletes:
            with _translated("written"):
                for start in range(0, len(deletes), _DELETE_CHUNK):
                    self._table.delete(_among("id", deletes[start : start + _DELETE_CHUNK]))
            fail_point("lance.deleted")
            self.writes += 1

    def optimize(self) -> None:
        """Merge the fragments that single writes leave; versions that open readers may hold stay for an hour."""
        fail_point("lance.optimizing")
        with _translated("optimized"):
            self._table.optimize(cleanup_older_than=KEEP_VERSIONS)
        fail_point("lance.optimized")
        self.writes = 0

    def train(self) -> None:
        """Build the approximate index, and the scalar ones that its filters use, from all rows."""
        from lancedb.index import Bitmap, BTree, IvfSq

        with _translated("trained"):
            self._table.create_index("vector", config=IvfSq(distance_type="cosine"), replace=True)
            self._table.create_index("scope", config=Bitmap(), replace=True)
            self._table.create_index("expires_at", config=BTree(), replace=True)

    def index_words(self) -> None:
        """Build the full-text index from the texts of all rows; `optimize` adds those that are written later."""
        from lancedb.index import FTS

        with _translated("indexed by words"):
            # Function words are left out of queries already, and "IT" and "WHO" are none.
            words = FTS(language="English", stem=True, remove_stop_words=False, max_token_length=None)
            self._table.create_index("text", config=words, replace=True)

    def drop_others(self) -> None:
        """Remove the tables of other generations of this space."""
        with _translated("cleared"):
            for name in self._db.list_tables().tables:
                if f"{name}_".startswith(f"{self._prefix}_") and name != self._name:
                    self._db.drop_table(name)

    @property
    def version(self) -> int:
        """The number of the table's last change that this handle knows."""
        with _translated("read"):
            return int(self._table.version)

    @property
    def size(self) -> int:
        """How many rows the table has."""
        with _translated("read"):
            return int(self._table.count_rows())

    @property
    def cached(self) -> int:
        """How many bytes LanceDB keeps at hand."""
        return int(self._session.size_bytes)

    def ids(self) -> set[str]:
        """Return the ids of all rows."""
        return {fact_id for chunk in self.chunks(["id"]) for fact_id in chunk["id"].to_pylist()}

    def chunks(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield all rows, some thousand at a time."""
        with _translated("read"):
            self._table.checkout_latest()  # type: ignore[no-untyped-call]
            yield from self._table.search().select(list(columns)).limit(None).to_batches()

    def search(self, query: Vector, view: View, limit: int, *, at_least: int = 0) -> list[VectorHit]:
        """Return up to `limit` facts that the view's audience may read, nearest first. Holds live facts only.

        `query`: float32 of shape (dims,), length one; `limit`: at least 1.
        """
        return self._looked(lambda: self._nearest(query, view, limit, at_least))

    def words(self, terms: Sequence[str], view: View, limit: int, *, at_least: int = 0) -> list[tuple[str, float]]:
        """Return up to `limit` facts of the view's audience that hold one of the terms, best first, each with its BM25.

        `limit`: at least 1. Rows that came in behind the last `optimize` are read through.
        """
        return self._looked(lambda: self._sharing(terms, view, limit, at_least))

    def close(self) -> None:
        """Release the table."""
        self._table.close() if hasattr(self._table, "close") else None

    def _looked(self, look: Callable[[], _Found]) -> _Found:
        with _translated("searched"):
            try:
                return look()
            except RuntimeError as error:
                if "Not found" not in str(error):
                    raise
                # The files of the version at hand were cleaned up by another process: the next look finds the new ones.
                return look()

    def _allowed(self, view: View, at_least: int) -> Any:
        """See that the table is at a version, and return the condition that rows are the audience's."""
        self._table.checkout_latest()  # type: ignore[no-untyped-call]
        if self._table.version < at_least:
            raise RuntimeError(f"the table is at version {self._table.version}, but was at {at_least}")
        return _among("scope", [str(scope) for scope in sorted(view.audience.scopes)])

    def _sharing(self, terms: Sequence[str], view: View, limit: int, at_least: int) -> list[tuple[str, float]]:
        allowed = self._allowed(view, at_least)
        found: list[dict[str, Any]] = (
            self._table.search(" ".join(terms), query_type="fts", fts_columns="text")
            .where(allowed, prefilter=True)
            .select(["id", "_score"])
            .limit(limit)
            .to_arrow()
            .to_pylist()
        )
        return [(row["id"], row["_score"]) for row in found]

    def _nearest(self, query: Vector, view: View, limit: int, at_least: int) -> list[VectorHit]:
        from lancedb.expr import col, lit

        allowed = self._allowed(view, at_least)
        found = self._probed(query, allowed, limit)
        if any(row["expires_at"] <= view.now for row in found):
            # Seldom so: to leave out all that has expired takes longer than the search.
            found = self._probed(query, allowed & (col("expires_at") > lit(view.now)), limit)
        return [VectorHit(row["id"], 1.0 - row["_distance"]) for row in found]

    def _probed(self, query: Vector, allowed: Any, limit: int) -> list[dict[str, Any]]:
        for most in (PROBES, EVERY):
            found: list[dict[str, Any]] = (
                self._table.search(query, query_type="vector")
                .distance_type("cosine")  # type: ignore[attr-defined]
                .where(allowed, prefilter=True)
                .minimum_nprobes(PROBES)
                .maximum_nprobes(most)
                .refine_factor(REFINE)
                .select(["id", "expires_at", "_distance"])
                .limit(limit)
                .to_arrow()
                .to_pylist()
            )
            # A small scope lies in few parts of the index, or there is no more of it.
            if len(found) >= limit:
                break
        return found

    def _open(self, create: bool) -> Table:
        if not create or self._name in self._db.list_tables().tables:
            return self._db.open_table(self._name)
        fail_point("lance.creating")
        return self._db.create_table(self._name, schema=self._schema(), exist_ok=True)

    def _schema(self) -> pa.Schema:
        import pyarrow as pa

        # Without this mark, concurrent merges of one new id duplicate it.
        key = {"lance-schema:unenforced-primary-key": "true"}
        text, number, time = pa.string(), pa.float32(), pa.float64()
        return pa.schema([
            pa.field("id", text, nullable=False, metadata=key), ("text", text),
            ("vector", pa.list_(number, self._dims)), ("importance", number), ("category", text), ("scope", text),
            ("created_at", time), ("expires_at", time),
        ])  # fmt: skip

    def _arrow(self, rows: Sequence[LanceRow]) -> pa.Table:
        import numpy as np
        import pyarrow as pa

        schema = self._schema()
        flat = np.concatenate([self._checked(row) for row in rows])
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.float32()), self._dims)
        try:
            columns = [
                vectors if name == "vector" else pa.array([row[name] for row in rows], schema.field(name).type)
                for name in schema.names
            ]
        except (TypeError, ValueError) as error:
            # SQLite keeps any type in any column, once it is damaged. The error quotes the value: it stops here.
            raise InputError(f"one of {len(rows)} rows has a wrong type ({type(error).__name__})") from None
        return pa.Table.from_arrays(columns, schema=schema)

    def _checked(self, row: LanceRow) -> NDArray[np.float32]:
        # LanceDB takes infinite numbers, and one vector that is too short would shift all that come after it.
        import numpy as np

        blob: bytes = row["vector"]
        if len(blob) != 4 * self._dims:
            raise InputError(
                f"the vector of memory {row['id']} has {len(blob)} bytes, not the {4 * self._dims} of its"
                " vector space; embed it again"
            )
        vector = np.frombuffer(blob, dtype="<f4")
        if not np.isfinite(vector).all():
            raise InputError(f"the vector of memory {row['id']} has non-finite numbers; embed it again")
        return vector


def fact_of(row: LanceRow, channel: Channel = Channel.UNKNOWN) -> Fact:
    """Return the fact that a row still tells of."""
    scope = Scope.parse(row["scope"])
    same = {name: row[name] for name in ("text", "id", "category", "importance", "created_at")}
    expires_at = None if math.isinf(row["expires_at"]) else row["expires_at"]
    return Fact(
        **same, channel=channel, expires_at=expires_at, scope=scope.kind, scope_target=scope.target,
        extraction_method="rescued",
    )  # fmt: skip


def rows_in(table: Path, columns: Sequence[str] | None = None) -> list[LanceRow]:
    """Return all rows of a table that nobody is known to write to, such as `lancedb/memories_x.lance`.

    `columns`: None: all but `vector`.
    """
    with _translated("read"):
        import lancedb

        opened = lancedb.connect(table.parent).open_table(table.stem)
        wanted = columns or [name for name in opened.schema.names if name != "vector"]
        rows: list[LanceRow] = opened.search().select(list(wanted)).limit(None).to_arrow().to_pylist()
        return rows


def _connected(place: Place, *, create: bool = False, session: Any = None) -> DBConnection:
    import lancedb

    if isinstance(place, ObjectStore):
        return lancedb.connect(place.url, storage_options=dict(place.options), session=session)
    # One that is there and only read may be where nothing can be written.
    there = not create and place.is_dir()
    return lancedb.connect(place if there else prepare_folder(place), session=session)


def place_of(store: Store) -> Place:
    """Return where a store's tables are."""
    return store.objects or store.lance_folder


def url_of(place: Place) -> str:
    """Return where tables are as `IndexState` has it: empty if in the data folder."""
    return place.url if isinstance(place, ObjectStore) else ""


def names_at(place: Place) -> list[str]:
    """Return the names of the tables at a place; where it cannot be reached, StoreUnavailableError."""
    with _translated("reached"):
        return list(_connected(place).list_tables().tables)


def drop_at(place: Place, of: Iterable[str] | None = None) -> None:
    """Remove the tables at a place, or those of some vector spaces, with all their versions."""
    starts = ("",) if of is None else tuple(f"{table_name(space_id, 0)}_" for space_id in of)
    with _translated("removed"):
        connection = _connected(place)
        for name in connection.list_tables().tables:
            if f"{name}_".startswith(starts):
                connection.drop_table(name)


def table_name(embedding_id: str, generation: int) -> str:
    """Return the name of a table: each generation of a space has its own."""
    return f"memories_{embedding_id}" + (f"_{generation}" if generation else "")


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise StoreUnavailableError(
            f"the LanceDB table cannot be {what}: {error.name} is not installed; run: {how_to_install('lancedb')}"
        ) from error
    except BaseException as error:
        # Its native code panics on some damaged files, with errors whose classes cannot be imported. A message
        # may quote a row, or what a storage answers to a key, so only its kind is passed on.
        kind = type(error).__name__
        if isinstance(error, (ImportError, *LANCE_ERRORS)) or kind in _PANICS:
            error.args = ()
            raise StoreUnavailableError(
                f"the LanceDB table cannot be {what} ({kind}); SQLite is searched meanwhile, and a damaged table is "
                "rebuilt in the background"
            ) from error
        raise


def _among(column: str, values: Sequence[str]) -> Any:
    from lancedb.expr import col, lit

    return col(column).isin([lit(value) for value in values])
