"""What the derived vector index has not got yet, and what SQLite knows of that index. Never aged out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from perdure.store.sql import Connection, get_meta, put_meta, run

MAX_ATTEMPTS = 5
FIRST_REST = 30.0
LONGEST_REST = 3600.0
"""Seconds until LanceDB is tried again after it failed as a whole; doubled each time, up to the second."""
_REST = "outbox_rest"
_PAST = "lance_past"
FED = "EXISTS (SELECT 1 FROM meta WHERE instr(key, 'lance:') = 1)"
"""Holds while there is a derived table, or one is being built: only then is anything queued for it."""


@dataclass(frozen=True, slots=True)
class OutboxState:
    """How far the index is behind."""

    waiting: int  # entries that are still to be worked off
    parked: int  # entries that were put aside because they failed by their own fault
    oldest: float | None  # since when the oldest one waits, in epoch seconds
    # LanceDB failed as a whole and is not tried before this time, in epoch seconds; None: it works
    retry_at: float | None = None
    problem: str | None = None  # the kind of that failure


@dataclass(frozen=True, slots=True)
class IndexState:
    """What SQLite knows of the derived table of a vector space."""

    generation: int = 0  # which table: one that is made anew gets a new name, so that no reader mixes the two
    version: int = 0  # the table's version after the last write; a table with a lower one has lost writes
    trained: int = 0  # its rows when the approximate index was built; 0: there is none
    suspect: bool = False  # a reader had trouble with it, and the worker has not looked at it yet
    words: int = 0  # its rows when the index of words was built; 0: there is none
    url: str = ""  # where it is elsewhere; empty: in the data folder


def fed(connection: Connection) -> bool:
    """Return whether there is a derived table, or one is being built."""
    return bool(run(connection, f"SELECT {FED}")[0][0])


def end(connection: Connection) -> None:
    """Take note that no space has a table any more: nothing is queued until one is begun, under a new name."""
    states = run(connection, "SELECT value FROM meta WHERE instr(key, 'lance:') = 1")
    if states:
        past = max(int(json.loads(value)["generation"]) for (value,) in states)
        put_meta(connection, _PAST, str(past))
    run(connection, "DELETE FROM meta WHERE instr(key, 'lance:') = 1 OR key = ?", (_REST,))
    run(connection, "DELETE FROM outbox")


def queue(connection: Connection, fact_id: str, now: float) -> None:
    """Note that the derived table, if there is one, has an old state of a fact."""
    run(connection, f"INSERT INTO outbox (fact_id, queued_at) SELECT ?, ? WHERE {FED}", (fact_id, now))


def queue_every(connection: Connection, now: float) -> None:
    """Note that the derived table, if there is one, has an old state of all facts, those that are not live too."""
    run(connection, f"INSERT INTO outbox (fact_id, queued_at) SELECT id, ? FROM facts WHERE {FED} ORDER BY seq", (now,))


def next_batch(connection: Connection, limit: int) -> list[tuple[int, str]]:
    """Return the oldest entries that are not parked: the number of each, and the fact that it names."""
    return run(connection, "SELECT seq, fact_id FROM outbox WHERE parked IS NULL ORDER BY seq LIMIT ?", (limit,))


def done(connection: Connection, entries: Sequence[int]) -> None:
    """Remove entries whose facts have reached the index: LanceDB works."""
    connection.executemany("DELETE FROM outbox WHERE seq = ?", [(seq,) for seq in entries])
    if entries:
        put_meta(connection, _REST, None)


def failed(connection: Connection, entries: Sequence[int], error: str, *, at_once: bool = False) -> None:
    """Count a failed attempt; after too many the entries are parked and reported, never dropped.

    The `error` holds no text of a memory. `at_once` parks them now, as trying again cannot help.
    """
    connection.executemany(
        "UPDATE outbox SET attempts = attempts + 1, parked = CASE WHEN attempts + 1 >= ? THEN ? END WHERE seq = ?",
        [(0 if at_once else MAX_ATTEMPTS, error, seq) for seq in entries],
    )


def rest(connection: Connection, now: float, error: str) -> int:
    """Note that LanceDB failed as a whole: nothing is parked, and it is left alone for a while.

    Return how many times in a row that has happened.
    """
    attempts = resting(connection) + 1
    seconds = min(FIRST_REST * 2.0 ** (attempts - 1), LONGEST_REST)
    put_meta(connection, _REST, json.dumps({"attempts": attempts, "until": now + seconds, "error": error}))
    return attempts


def resting(connection: Connection) -> int:
    """Return how many times in a row LanceDB has failed as a whole."""
    return int(json.loads(get_meta(connection, _REST) or "{}").get("attempts", 0))


def state(connection: Connection) -> OutboxState:
    """Return how far the index is behind."""
    waiting, aside, oldest = run(
        connection,
        "SELECT count(*) FILTER (WHERE parked IS NULL), count(*) FILTER (WHERE parked IS NOT NULL),"
        " min(queued_at) FILTER (WHERE parked IS NULL) FROM outbox",
    )[0]
    rests = json.loads(get_meta(connection, _REST) or "{}")
    return OutboxState(waiting, aside, oldest, rests.get("until"), rests.get("error"))


def parked(connection: Connection) -> list[tuple[str, str]]:
    """Return the facts that cannot be indexed, each with what is wrong; the exact search answers for them."""
    return run(connection, "SELECT DISTINCT fact_id, parked FROM outbox WHERE parked IS NOT NULL ORDER BY seq")


def pending(connection: Connection, limit: int) -> set[str] | None:
    """Return the facts that the index lacks or has in an old state, parked ones too; None if more than `limit`."""
    rows = run(connection, "SELECT fact_id FROM outbox LIMIT ?", (limit + 1,))
    return {row[0] for row in rows} if len(rows) <= limit else None


def queue_all(connection: Connection, space_id: str, now: float) -> None:
    """Queue every fact that has a vector in a space, for a table that is made anew. What was parked is tried again."""
    run(connection, "UPDATE outbox SET attempts = 0, parked = NULL WHERE parked IS NOT NULL")
    sql = (
        "INSERT INTO outbox (fact_id, queued_at) SELECT facts.id, ? FROM facts JOIN vectors v ON v.fact_id = facts.id"
        " AND v.embedding_id = ? WHERE facts.id NOT IN (SELECT fact_id FROM outbox) ORDER BY facts.seq"
    )
    run(connection, sql, (now, space_id))


def begin_anew(connection: Connection, now: float) -> None:
    """Have the table of every space that has one made anew, under a new name, from all facts."""
    run(connection, "DELETE FROM outbox")
    queue_every(connection, now)
    for name, value in run(connection, "SELECT key, value FROM meta WHERE instr(key, 'lance:') = 1"):
        anew = IndexState(IndexState(**json.loads(value)).generation + 1)
        put_index_state(connection, name.removeprefix("lance:"), anew)


def index_state(connection: Connection, space_id: str) -> IndexState:
    """Return what is known of a space's table; the defaults if there has been none."""
    known = get_meta(connection, f"lance:{space_id}")
    if known is not None:
        return IndexState(**json.loads(known))
    # A reader may still hold a table that was given up: the next one has another name.
    past = get_meta(connection, _PAST)
    return IndexState(0 if past is None else int(past) + 1)


def put_index_state(connection: Connection, space_id: str, known: IndexState) -> None:
    """Keep what is known of a space's table."""
    put_meta(connection, f"lance:{space_id}", json.dumps(asdict(known)))
