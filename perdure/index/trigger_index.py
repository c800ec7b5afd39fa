"""The triggers that are nearest to a prompt, and the memories they stand for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.embed.base import Vectors
from perdure.heap import give_back
from perdure.index.vector_index import CHUNK, NOBODY, RoundedMatrix, highest, roomier
from perdure.store.scope import Scope
from perdure.store.search import View
from perdure.store.sql import Backend, Connection, newest, run
from perdure.store.triggers import vectors

MOST = 4
"""Triggers of a memory that are looked at."""
FEWER = 2
"""The same where more than `CROWD` memories have any."""
CROWD = 50_000
DEAD = 4_096
"""Rows that stand for nothing any more, beyond which all is read again if they are most."""


@dataclass(frozen=True, slots=True)
class TriggerSurvey:
    """How near a prompt is to the triggers in the scopes of a view, each by the part that is nearest to it."""

    ids: Sequence[str]  # memories, the one with the nearest trigger first; the reader checks them
    # `total`, `squares`: of the cosines with all `count` triggers, and of their squares.
    total: float
    squares: float
    count: int
    each: int  # triggers of a memory that are looked at


class TriggerIndex:
    """The triggers of one space in one rounded matrix, those alone that may bring their memory up.

    Follows the database by the journal, as `ExactIndex` does. It knows scopes, but not what is over. Usable from any
    thread.
    """

    def __init__(self, database: Backend, embedding_id: str, dims: int) -> None:
        self._database, self._embedding_id, self._dims = database, embedding_id, dims
        self._lock = threading.Lock()
        self._reset()

    def survey(self, queries: Vectors, view: View, limit: int, seen: int = 0) -> TriggerSurvey | None:
        """Return up to `limit` memories with the nearest triggers; None: there are no triggers to be seen.

        Args:
            queries: float32 of shape (parts, dims), rows of length one.
            view: whose scopes count.
            limit: at least 1.
            seen: the newest number of the journal, if it is known; 0: it is looked up.
        """
        import numpy as np

        with self._lock:
            if not seen or seen > self._seen:
                self._refresh()
            count = len(self._owners)
            if not count:
                return None
            codes = [self._codes[scope] for scope in view.audience.among(self._codes)]
            # The last place stands for NOBODY.
            readable = np.zeros(len(self._codes) + 1, dtype=bool)
            readable[codes] = True
            rows = np.flatnonzero(readable[self._scopes[:count]])
            if not len(rows):
                return None
            some = None if len(rows) == count else rows
            scores = np.max([self._matrix.products(query, some) for query in queries], axis=0)
            scores = np.nan_to_num(scores, nan=0.0, posinf=0.0, neginf=0.0)
            near = rows[highest(scores, limit * self._each)].tolist()
            ids = list(dict.fromkeys(self._owners[row] for row in near))[:limit]
            squares = float(np.vecdot(scores, scores))
            return TriggerSurvey(ids, float(scores.sum()), squares, len(scores), self._each)

    def close(self) -> None:
        """Drop the matrix; a later survey would read it again."""
        with self._lock:
            self._reset()

    def _reset(self) -> None:
        import numpy as np

        self._seen = 0
        self._owners: list[str] = []
        self._rows: dict[str, list[int]] = {}
        self._dead = 0
        self._codes: dict[Scope, int] = {}
        self._matrix = RoundedMatrix(self._dims)
        self._scopes = np.zeros(0, dtype=np.int32)
        self._each = MOST

    def _refresh(self) -> None:
        with self._database.read() as connection:
            last = newest(connection)
            if last == self._seen:
                return
            changed = self._changed(connection, last)
            for fact_id in changed:
                self._drop(fact_id)
            crowded = self._each == MOST and len(self._rows) + len(changed) > CROWD
            if crowded or self._dead > max(DEAD, len(self._owners) // 2):
                self._reset()
                changed = self._changed(connection, last)
            self._each = FEWER if len(changed) + len(self._rows) > CROWD else self._each
            first = not self._owners
            if first:
                self._matrix = RoundedMatrix(self._dims, self._expected(connection, len(changed)))
            for start in range(0, len(changed), CHUNK):
                self._put(connection, changed[start : start + CHUNK])
            self._seen = last
        if first:
            give_back()

    def _expected(self, connection: Connection, memories: int) -> int:
        """Return how many triggers of so many memories may be looked at."""
        sql = "SELECT count(*) FROM trigger_vectors WHERE embedding_id = ?"
        return min(self._each * memories, int(run(connection, sql, (self._embedding_id,))[0][0]))

    def _changed(self, connection: Connection, last: int) -> list[str]:
        """Return the memories whose triggers are to be read: all that have any, or those that the journal names."""
        if not self._seen:
            return [row[0] for row in run(connection, "SELECT DISTINCT fact_id FROM triggers ORDER BY fact_id")]
        sql = "SELECT DISTINCT fact_id FROM journal WHERE seq > ? AND seq <= ?"
        return [row[0] for row in run(connection, sql, (self._seen, last))]

    def _put(self, connection: Connection, fact_ids: Sequence[str]) -> None:
        import numpy as np

        found = vectors(connection, self._embedding_id, self._dims, each=self._each, fact_ids=fact_ids)
        places = np.flatnonzero(found.counts).tolist()
        if not places:
            return
        start = len(self._owners)
        rows = list(range(start, start + len(places)))
        self._matrix.put(rows, found.vectors[places])
        self._scopes = roomier(self._scopes, rows[-1] + 1)
        for row, place in zip(rows, places, strict=True):
            self._owners.append(found.fact_ids[place])
            self._rows.setdefault(found.fact_ids[place], []).append(row)
            self._scopes[row] = self._codes.setdefault(found.scopes[place], len(self._codes))

    def _drop(self, fact_id: str) -> None:
        for row in self._rows.pop(fact_id, ()):
            self._matrix.drop(row)
            self._scopes[row] = NOBODY
            self._dead += 1
