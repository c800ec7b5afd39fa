"""Turns that the database acknowledged: whoever leads takes in what a machine that is gone has left there."""

from __future__ import annotations

import json

from perdure.store.inbox_lines import Entry
from perdure.store.sql import Connection, run

PATIENCE = 60.0
"""Seconds for which a machine's turns are left to it."""


def put(connection: Connection, entry: Entry, machine: str, now: float) -> None:
    """Keep a turn until it has been dealt with."""
    run(
        connection,
        "INSERT INTO inbox VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (entry["id"], machine, now, json.dumps(entry)),
    )


def waiting(connection: Connection, now: float) -> list[tuple[str, Entry]]:
    """Return the turns that wait for too long, oldest first, each behind the name of its machine."""
    sql = (
        "SELECT i.machine, i.entry FROM inbox i WHERE i.at < ?"
        " AND NOT EXISTS (SELECT 1 FROM inbox_done d WHERE d.entry_id = i.entry_id) ORDER BY i.at"
    )
    return [(machine, json.loads(entry)) for machine, entry in run(connection, sql, (now - PATIENCE,))]


def held(connection: Connection) -> set[str]:
    """Return the ids of all turns that stand there."""
    return {entry_id for (entry_id,) in run(connection, "SELECT entry_id FROM inbox")}


def prune(connection: Connection) -> None:
    """Drop what has been dealt with, and was not dropped then."""
    run(connection, "DELETE FROM inbox WHERE entry_id IN (SELECT entry_id FROM inbox_done)")


def drop(connection: Connection, entry_id: str) -> None:
    """Drop a turn that has been dealt with."""
    run(connection, "DELETE FROM inbox WHERE entry_id = ?", (entry_id,))
