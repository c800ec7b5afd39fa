"""Reading the journal: who changed what, when, through which channel. By ids: the text stands in `facts` only."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from perdure.store.fact import SELECT, Fact, from_row
from perdure.store.scope import Audience
from perdure.store.sql import Connection, run

ALL = 2**62
"""More rows than there are."""
REMOVALS = ("purge", "prune")
"""Actions that end a fact which was meant to end."""


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the journal.

    Attributes:
        seq: its number; later changes have higher ones.
        at: when, epoch seconds.
        action: "add", "supersede", "reinforce", ...
        fact: the fact it was done to, as it is now.
        other_id: the other fact it has to do with, such as the one that takes its place, if that may be read.
        channel, host, session: by whom.
    """

    seq: int
    at: float
    action: str
    fact: Fact
    other_id: str | None
    channel: str
    host: str
    session: str | None


def changes(
    connection: Connection, audience: Audience, since: int, limit: int, *, of: Iterable[str] | None = None
) -> list[Change]:
    """Return changes of facts that the audience may read, after a number, oldest first.

    Args:
        connection: a reader.
        audience: who asks.
        since: the number.
        limit: so many at the most; -1: all.
        of: ids of the facts that count; None: all.
    """
    condition, values = audience.sql()
    if of is not None:
        condition += " AND j.fact_id IN (SELECT value FROM json_each(?))"
        values += (json.dumps(list(of)),)
    others, other_values = audience.sql("o")
    columns = "j.seq, j.at, j.action, o.id, j.channel, j.host, j.session"
    rows = run(
        connection,
        f"SELECT {SELECT}, {columns} FROM journal j CROSS JOIN facts ON facts.id = j.fact_id"
        f" LEFT JOIN facts o ON o.id = j.other_id AND {others}"
        f" WHERE j.seq > ? AND {condition} ORDER BY j.seq LIMIT ?",
        (*other_values, since, *values, limit if limit >= 0 else ALL),
    )
    return [
        Change(seq, at, action, from_row(tuple(fact)), other_id, channel, host, session)
        for *fact, seq, at, action, other_id, channel, host, session in rows
    ]


def newest(connection: Connection) -> int:
    """Return the number of the last change; 0 in an empty store."""
    return int(run(connection, "SELECT coalesce(max(seq), 0) FROM journal")[0][0])
