"""When each background job ran and is due: in the store, so that a restart neither skips nor repeats one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perdure.store.sql import Connection, dialect, put, run

_MAX_RESULT = 300


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job."""

    name: str
    last_run: float | None  # when it last ended, successfully or not; epoch seconds
    next_run: float  # when it is due; for a job in the worker, when the worker is given up on
    took: float | None  # seconds of the last run
    result: str | None  # one line about the last run
    failures: int  # failed runs since the last successful one
    # "waiting" until it is due, "wanted" from the worker process, or "taken" by it
    state: Literal["waiting", "wanted", "taken"]


def states(connection: Connection) -> dict[str, JobState]:
    """Return what is known of all jobs that were ever planned, by name."""
    rows = run(connection, "SELECT name, last_run, next_run, took, result, failures, state FROM jobs ORDER BY name")
    return {row[0]: JobState(*row) for row in rows}


def plan(connection: Connection, name: str, next_run: float, state: str = "waiting") -> None:
    """Note when a job is due."""
    put(connection, "jobs", name=name, next_run=next_run, state=state)


def want(connection: Connection, name: str, until: float) -> None:
    """Note that the worker process is to do a job now, and until when it has time to."""
    plan(connection, name, until, "wanted")


def take(connection: Connection, name: str) -> bool:
    """Note that the worker does a job from now on; return whether it was still wanted."""
    sql = "UPDATE jobs SET state = 'taken' WHERE name = ? AND state = 'wanted' RETURNING name"
    return bool(run(connection, sql, (name,)))


def ended(
    connection: Connection, name: str, at: float, next_run: float, *, took: float, result: str, failed: bool
) -> None:
    """Note that a job has run.

    The `result` is one line, without any text of a memory.
    """
    sql = (
        "INSERT INTO jobs (name, last_run, next_run, took, result, failures) VALUES (?, ?, ?, ?, ?, ?)"
        f" {dialect(connection).on_conflict('name')} DO UPDATE SET last_run = excluded.last_run,"
        " next_run = excluded.next_run, took = excluded.took, result = excluded.result, state = 'waiting',"
        " failures = CASE WHEN excluded.failures > 0 THEN jobs.failures + 1 ELSE 0 END"
    )
    run(connection, sql, (name, at, next_run, took, result[:_MAX_RESULT], int(failed)))
