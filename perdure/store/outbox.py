"""The list of facts whose row in the derived vector index is out of date. Never aged out."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from perdure.store.database import run

MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Batch:
    """A part of the outbox: the facts in it, and the last entry it covers."""

    fact_ids: tuple[str, ...]
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OutboxState:
    """How far the index is behind: entries waiting, entries given up, and since when the oldest waits."""

    waiting: int
    parked: int
    oldest: float | None


def next_batch(connection: apsw.Connection, limit: int) -> Batch:
    """Return the oldest entries that are not parked."""
    rows = run(connection, "SELECT seq, fact_id FROM outbox WHERE parked IS NULL ORDER BY seq LIMIT ?", (limit,))
    return Batch(tuple(dict.fromkeys(row[1] for row in rows)), tuple(row[0] for row in rows))


def done(connection: apsw.Connection, batch: Batch) -> None:
    """Remove entries whose facts have reached the index."""
    connection.executemany("DELETE FROM outbox WHERE seq = ?", [(seq,) for seq in batch.seqs])


def failed(connection: apsw.Connection, batch: Batch, error: str) -> None:
    """Count a failed attempt; after too many the entries are parked and reported, never dropped."""
    connection.executemany(
        "UPDATE outbox SET attempts = attempts + 1, parked = CASE WHEN attempts + 1 >= ? THEN ? END WHERE seq = ?",
        [(MAX_ATTEMPTS, error, seq) for seq in batch.seqs],
    )


def state(connection: apsw.Connection) -> OutboxState:
    """Return how far the index is behind."""
    row = run(
        connection,
        "SELECT count(*) FILTER (WHERE parked IS NULL), count(*) FILTER (WHERE parked IS NOT NULL),"
        " min(queued_at) FILTER (WHERE parked IS NULL) FROM outbox",
    )[0]
    return OutboxState(*row)
