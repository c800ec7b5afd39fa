"""Nearest vectors: the protocol, and the exact index that holds all vectors in memory."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from perdure.store.database import Database, run
from perdure.store.journal import newest
from perdure.store.scope import Scope
from perdure.store.search import View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A fact found by its vector, with the cosine of the two."""

    id: str
    cosine: float


class VectorIndex(Protocol):
    """Finds the facts whose vectors are nearest.

    What it returns is a hint: the reader checks each hit against the database, so an index may lag behind, but
    not leak.
    """

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        """Return up to `limit` facts that the view's audience may read, nearest first.

        Args:
            query: float32 of shape (dims,), length one.
            view: whose facts, of which time.
            limit: at least 1.
        """
        ...

    def close(self) -> None:
        """Release what the index holds."""
        ...


def cosines(database: Database, query: Vector, ids: Iterable[str], embedding_id: str) -> dict[str, float]:
    """Return the cosine of the query and each of these facts that has a vector in this space."""
    import numpy as np

    wanted = list(ids)
    marks = ", ".join("?" * len(wanted))
    sql = f"SELECT fact_id, vector FROM vectors WHERE embedding_id = ? AND fact_id IN ({marks})"
    with database.read() as connection:
        rows = run(connection, sql, (embedding_id, *wanted))
    return {fact_id: float(query @ np.frombuffer(blob, dtype="<f4")) for fact_id, blob in rows}


class ExactIndex:
    """All vectors of one space in one matrix; compares with every one of them.

    Follows the database by the journal: before each search only what changed since the last one is read.
    """

    def __init__(self, database: Database, embedding_id: str, dims: int) -> None:
        self._database = database
        self._embedding_id = embedding_id
        self._dims = dims
        self._lock = threading.Lock()
        self._seen = 0
        self._reset(1024)

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        """Return up to `limit` facts that the view's audience may read, nearest first."""
        import numpy as np

        with self._lock:
            self._refresh()
            count = len(self._ids)
            allowed = np.isin(self._scopes[:count], [self._code(scope) for scope in view.audience.scopes])
            if view.as_of is None:
                allowed &= self._expires[:count] > view.now
                if not view.include_superseded:
                    allowed &= self._current[:count]
            rows = np.flatnonzero(allowed)
            if not rows.size:
                return []
            scores = self._matrix[:count] @ query
            best = rows[np.argsort(-scores[rows], kind="stable")[:limit]]
            return [VectorHit(self._ids[row], float(scores[row])) for row in best]

    def close(self) -> None:
        """Drop the matrix."""
        with self._lock:
            self._reset(0)

    def _reset(self, capacity: int) -> None:
        import numpy as np

        self._ids: list[str] = []
        self._rows: dict[str, int] = {}
        self._codes: dict[Scope, int] = {}
        self._matrix = np.zeros((capacity, self._dims), dtype=np.float32)
        self._scopes = np.zeros(capacity, dtype=np.int32)
        self._current = np.zeros(capacity, dtype=bool)
        self._expires = np.zeros(capacity, dtype=np.float64)

    def _refresh(self) -> None:
        with self._database.read() as connection:
            last = newest(connection)
            if last == self._seen:
                return
            changed = "SELECT DISTINCT fact_id FROM journal WHERE seq > ? AND seq <= ?"
            rows = connection.execute(
                "SELECT f.id, f.scope, f.scope_target, f.forgotten_at IS NULL, f.superseded_at IS NULL, f.expires_at,"
                f" v.vector FROM facts f JOIN vectors v ON v.fact_id = f.id AND v.embedding_id = ?"
                f" WHERE f.id IN ({changed})",
                (self._embedding_id, self._seen, last),
            )
            for row in rows:
                self._put(*row)
            self._seen = last

    def _put(
        self,
        fact_id: str,
        kind: str,
        target: str,
        kept: int,
        current: int,
        expires: float | None,
        blob: bytes,
    ) -> None:
        import numpy as np

        row = self._rows.get(fact_id)
        if row is None:
            row = len(self._ids)
            self._grow(row + 1)
            self._ids.append(fact_id)
            self._rows[fact_id] = row
        self._matrix[row] = np.frombuffer(blob, dtype="<f4")
        # A forgotten fact keeps its row under a code that no audience has.
        self._scopes[row] = self._code(Scope(kind, target)) if kept else -1
        self._current[row] = bool(current)
        self._expires[row] = math.inf if expires is None else expires

    def _grow(self, needed: int) -> None:
        import numpy as np

        have = len(self._scopes)
        if needed <= have:
            return
        more = max(1024, have)
        self._matrix = np.concatenate([self._matrix, np.zeros((more, self._dims), dtype=np.float32)])
        self._scopes = np.concatenate([self._scopes, np.zeros(more, dtype=np.int32)])
        self._current = np.concatenate([self._current, np.zeros(more, dtype=bool)])
        self._expires = np.concatenate([self._expires, np.zeros(more, dtype=np.float64)])

    def _code(self, scope: Scope) -> int:
        return self._codes.setdefault(scope, len(self._codes))
