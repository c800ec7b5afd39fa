"""The vector spaces of a store: the one that answers, the one that is being built, and those that were left."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.errors import NotFoundError
from perdure.store import outbox
from perdure.store.seals import seal_vector
from perdure.store.sql import Connection, Row, dialect, get_meta, put_meta, run

ACTIVE = "active"
"""Its vectors answer queries. At most one space."""
BUILDING = "building"
"""The worker gives every fact a vector in it. At most one space."""
RETIRED = "retired"
"""Was active once; its vectors are kept for a way back."""
ABANDONED = "abandoned"
"""Its building was stopped; what was built is kept, in case it goes on."""
PRUNED = "pruned"
"""Its vectors are deleted. The row stays: it says that this store has left this space."""

_ERROR = "switch_error"
_COLUMNS = "e.id, e.dims, e.identity"
_SINCE = "LEFT JOIN meta m ON m.key = 'space:' || e.id"


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """What vectors can be compared: the id of an embedder's identity, their length, and its description."""

    id: str
    dims: int
    description: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its model and dimensions, for people."""
        return f"{self.description.get('model', 'unknown')} ({self.dims} dimensions)"


@dataclass(frozen=True, slots=True)
class SpaceState:
    """A space and how it stands."""

    space: VectorSpace
    state: str  # "active", "building", "retired", "abandoned" or "pruned"
    since: float | None  # epoch seconds; None if it has been so from the beginning
    vectors: int  # how many facts have a vector in it


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A fact that has no vector in a space: its row, id, and the columns that its vector is made from."""

    seq: int
    id: str
    text: str
    entity: str | None
    key: str | None


def active(connection: Connection) -> VectorSpace | None:
    """Return the space that answers queries, or None while the store has none."""
    return _one(connection, ACTIVE)


def building(connection: Connection) -> VectorSpace | None:
    """Return the space that is being built, or None."""
    return _one(connection, BUILDING)


def every(connection: Connection) -> list[SpaceState]:
    """Return all spaces that the store has or had, oldest first."""
    counts: dict[str, int] = dict(run(connection, "SELECT embedding_id, count(*) FROM vectors GROUP BY embedding_id"))
    rows = run(connection, f"SELECT {_COLUMNS}, e.state, m.value FROM embeddings e {_SINCE} ORDER BY e.rowid")
    return [
        SpaceState(_space(row[:3]), row[3], None if row[4] is None else float(row[4]), counts.get(row[0], 0))
        for row in rows
    ]


def adopt(connection: Connection, space: VectorSpace) -> bool:
    """Bind the store to a space if it has none yet; return whether this is the store's space.

    What the description of the store's own space lacks, or has otherwise, is taken over: it may say how its
    embedder is made, and this one was made just now.
    """
    theirs = active(connection)
    if theirs is None:
        _enter(connection, space, ACTIVE, None)
        return True
    if theirs.id == space.id and not is_told(theirs, space):
        description = {**theirs.description, **space.description}
        run(connection, "UPDATE embeddings SET identity = ? WHERE id = ?", (json.dumps(description), space.id))
    return theirs.id == space.id


def is_told(theirs: VectorSpace, space: VectorSpace) -> bool:
    """Return whether a store's space is described as `space` is, so that adopting that one changes nothing."""
    return theirs.id == space.id and {**theirs.description, **space.description} == theirs.description


def note(connection: Connection, space_id: str, name: str, values: Mapping[str, Any]) -> None:
    """Keep values with the description of a space, beside what it has by that name."""
    sql = "UPDATE embeddings SET identity = json_patch(identity, ?) WHERE id = ?"
    run(connection, sql, (json.dumps({name: dict(values)}), space_id))


def begin(connection: Connection, space: VectorSpace, now: float) -> bool:
    """Begin to build a space, or go on with it; one that is being built instead is abandoned.

    Return False if there is nothing to build: it is the store's space already, or is now, as there was none.
    """
    if adopt(connection, space):
        return False
    other = building(connection)
    if other is not None and other.id != space.id:
        _set_state(connection, other.id, ABANDONED, now)
    _enter(connection, space, BUILDING, now)
    report(connection, None)
    return True


def begin_if_new(connection: Connection, space: VectorSpace, now: float) -> bool:
    """Begin to build a space that this store has never had, unless another is being built; return whether.

    For switches that nobody asked for by hand: two processes with different models must not take turns,
    and what was rolled back must stay so.
    """
    known = run(connection, "SELECT 1 FROM embeddings WHERE id = ?", (space.id,))
    return not known and building(connection) is None and begin(connection, space, now)


def activate(connection: Connection, space_id: str, now: float) -> None:
    """Let a space answer from now on. The one that did so far is retired, and the derived index is made anew."""
    former = active(connection)
    if former is not None:
        _set_state(connection, former.id, RETIRED, now)
    _set_state(connection, space_id, ACTIVE, now)
    report(connection, None)
    own = "SELECT v.embedding_id FROM vectors v WHERE v.fact_id = facts.id AND v.embedding_id = ?"
    run(connection, f"UPDATE facts SET embedding_model = ({own})", (space_id,))
    # Facts that are not live too: the table of a space that was left may still hold them.
    outbox.queue_every(connection, now)


def rollback(connection: Connection, now: float) -> VectorSpace:
    """Stop the building of a space, or else make the space active again that was so before.

    Return the space that answers from now on.
    """
    present, begun = active(connection), building(connection)
    if present is not None and begun is not None:
        _set_state(connection, begun.id, ABANDONED, now)
        report(connection, None)
        return present
    former = _one(connection, RETIRED)
    if former is None:
        raise NotFoundError("this store has no vectors of a previous model; switch to one: perdure model switch")
    activate(connection, former.id, now)
    return former


def prunable(connection: Connection, before: float) -> list[SpaceState]:
    """Return the spaces that were left at a time or before it and still have vectors, or could get some."""
    left = (RETIRED, ABANDONED)
    return [
        each
        for each in every(connection)
        if (each.state in left and (each.since or 0.0) <= before) or (each.state == PRUNED and each.vectors)
    ]


def prune(connection: Connection, space_id: str, now: float) -> None:
    """Give up a space that was left. Its vectors are then deleted with `drop_vectors`."""
    _set_state(connection, space_id, PRUNED, now)


def drop_vectors(connection: Connection, space_id: str, after: int, limit: int) -> int | None:
    """Delete some vectors of a pruned space, from a row on; return the last row of them, None at the end."""
    sql = (
        "SELECT v.rowid FROM vectors v WHERE v.rowid > ? AND v.embedding_id = ?"
        " AND EXISTS (SELECT 1 FROM embeddings e WHERE e.id = v.embedding_id AND e.state = ?)"
        " ORDER BY v.rowid LIMIT ?"
    )
    rows = run(connection, sql, (after, space_id, PRUNED, limit))
    connection.executemany("DELETE FROM vectors WHERE rowid = ?", rows)
    if not rows:
        sql = (
            "DELETE FROM trigger_vectors WHERE embedding_id = ?"
            " AND EXISTS (SELECT 1 FROM embeddings e WHERE e.id = embedding_id AND e.state = ?)"
        )
        run(connection, sql, (space_id, PRUNED))
    return rows[-1][0] if rows else None


def unembedded(
    connection: Connection, space_id: str, after: int, limit: int, skip: Sequence[str] = ()
) -> list[Unembedded]:
    """Return facts that have no vector in a space: former versions too, forgotten ones not.

    Only rows behind `after` count, in their order.
    """
    sql = (
        "SELECT f.seq, f.id, f.text, f.entity, f.key FROM facts f WHERE f.seq > ? AND f.forgotten_at IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.fact_id = f.id AND v.embedding_id = ?)"
        " AND f.id NOT IN (SELECT value FROM json_each(?)) ORDER BY f.seq LIMIT ?"
    )
    return [Unembedded(*row) for row in run(connection, sql, (after, space_id, json.dumps(list(skip)), limit))]


def put(connection: Connection, space_id: str, fact_id: str, blob: bytes) -> None:
    """Keep a vector of a space that does not answer yet. Does nothing if the fact is gone."""
    dialect(connection).keep_vector(connection, fact_id, space_id, blob)
    seal_vector(connection, fact_id, space_id)


def progress(connection: Connection, space_id: str) -> tuple[int, int]:
    """Return how many facts have a vector in a space, and how many should."""
    sql = (
        "SELECT count(*) FILTER (WHERE EXISTS"
        " (SELECT 1 FROM vectors v WHERE v.fact_id = f.id AND v.embedding_id = ?)), count(*)"
        " FROM facts f WHERE f.forgotten_at IS NULL"
    )
    done, total = run(connection, sql, (space_id,))[0]
    return done, total


def report(connection: Connection, problem: str | None) -> None:
    """Note why the building of a space does not go on; None: it does."""
    put_meta(connection, _ERROR, problem)


def problem(connection: Connection) -> str | None:
    """Return why the building of a space does not go on, or None."""
    return get_meta(connection, _ERROR)


def _one(connection: Connection, state: str) -> VectorSpace | None:
    sql = (
        f"SELECT {_COLUMNS} FROM embeddings e {_SINCE} WHERE e.state = ?"
        " ORDER BY CAST(m.value AS DOUBLE PRECISION) DESC, e.rowid DESC LIMIT 1"
    )
    rows = run(connection, sql, (state,))
    return _space(rows[0]) if rows else None


def _space(row: Row) -> VectorSpace:
    return VectorSpace(row[0], row[1], json.loads(row[2]))


def _enter(connection: Connection, space: VectorSpace, state: str, now: float | None) -> None:
    sql = (
        "INSERT INTO embeddings (id, identity, dims, state) VALUES (?, ?, ?, ?)"
        f" {dialect(connection).on_conflict('id')} DO UPDATE SET identity = excluded.identity"
    )
    run(connection, sql, (space.id, json.dumps(dict(space.description)), space.dims, state))
    if now is not None:
        _set_state(connection, space.id, state, now)


def _set_state(connection: Connection, space_id: str, state: str, now: float) -> None:
    run(connection, "UPDATE embeddings SET state = ? WHERE id = ?", (state, space_id))
    put_meta(connection, f"space:{space_id}", repr(now))
