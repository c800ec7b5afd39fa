"""How a memory became what it is: the journal, its versions, and what took the place of what, by whose word."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perdure.errors import InputError
from perdure.store.fact import COLUMNS, SELECT, Fact, from_row
from perdure.store.listing import check_page
from perdure.store.scope import Audience
from perdure.store.search import View, by_ids, by_prefix
from perdure.store.sql import Connection, dialect, run
from perdure.store.transaction import Transaction
from perdure.text.timestamps import Dated, Epoch

ALL = 2**62
"""More rows than there are."""
REMOVALS = ("purge", "prune")
"""Actions that end a fact which was meant to end."""


@dataclass(frozen=True, slots=True, repr=False)
class Change(Dated):
    """An entry of the journal."""

    seq: int  # its number, increasing
    at: Epoch  # when, epoch seconds
    action: str  # such as "add", "supersede" or "reinforce"
    fact: Fact  # the fact it was done to, as it is now
    other_id: str | None  # the other fact involved, such as the one that replaces it, if readable
    channel: str
    host: str
    session: str | None


def changes(
    connection: Connection, audience: Audience, since: int, limit: int, *, of: Iterable[str] | None = None
) -> list[Change]:
    """Return changes of facts that the audience may read, after a number, oldest first.

    A `limit` of -1 is none. `of` names the facts that count; None: all.
    """
    condition, values = audience.sql(dialect(connection).in_scopes)
    if of is not None:
        condition += " AND j.fact_id IN (SELECT value FROM json_each(?))"
        values += (json.dumps(list(of)),)
    others, other_values = audience.sql(dialect(connection).in_scopes, "o")
    columns = "j.seq, j.at, j.action, o.id, j.channel, j.host, j.session"
    sql = (
        f"SELECT {SELECT}, {columns} FROM journal j CROSS JOIN facts"
        f" LEFT JOIN facts o ON o.id = j.other_id AND {others}"
        f" WHERE j.seq > ? AND facts.id = j.fact_id AND {condition} ORDER BY j.seq LIMIT ?"
    )
    rows = run(connection, sql, (*other_values, since, *values, limit if limit >= 0 else ALL))
    return [
        Change(seq, at, action, from_row(tuple(fact)), other_id, channel, host, session)
        for *fact, seq, at, action, other_id, channel, host, session in rows
    ]


@dataclass(frozen=True, slots=True, repr=False)
class History(Dated):
    """The history of a memory."""

    # All its versions, oldest first, even if superseded, expired or forgotten
    versions: Sequence[Fact]
    changes: Sequence[Change]  # the journal entries of all versions, oldest first


def history(connection: Connection, fact_id: object, view: View) -> History:
    """Return the history of a fact: both ways along its chain of versions.

    What the audience may not read ends the chain.
    """
    whole = replace(view, everything=True)
    fact = by_prefix(connection, fact_id, whole)
    versions = {fact.id: fact}
    waiting = [fact]
    while waiting:
        fact = waiting.pop()
        near = {fact.supersedes_id, fact.superseded_by} - versions.keys() - {None}
        found = by_ids(connection, sorted(filter(None, near)), whole) if near else {}
        versions |= found
        waiting += found.values()
    ordered = sorted(versions.values(), key=lambda each: (each.since, each.superseded_at is None, each.change_seq))
    return History(ordered, changes(connection, view.audience, 0, -1, of=versions))


_ENDS = ("supersede", "retract")
"""What the journal calls it when a fact is replaced, and when it is withdrawn."""


@dataclass(frozen=True, slots=True, repr=False)
class Replacement(Dated):
    """A memory that was replaced or withdrawn."""

    old: Fact
    new: Fact | None  # its replacement, if there is one that the caller may read
    at: Epoch  # when, epoch seconds
    reason: str  # why, in a few words
    channel: str
    host: str
    session: str | None
    batch: str  # batch for `undo`, which also reverts what else the change did


def replacements(connection: Connection, audience: Audience, since: float | None, limit: int) -> list[Replacement]:
    """Return what was replaced or withdrawn and is so still, the latest first."""
    check_page(limit)
    readable, values = audience.sql(dialect(connection).in_scopes)
    others, other_values = audience.sql(dialect(connection).in_scopes, "n")
    new = SELECT.replace("facts.", "n.")
    sql = (
        f"SELECT j.at, j.detail, j.channel, j.host, j.session, j.batch, {SELECT}, {new}"
        f" FROM facts {dialect(connection).by_index('facts_superseded_at')} JOIN journal j ON j.seq ="
        f" (SELECT max(seq) FROM journal WHERE fact_id = facts.id AND action IN {_ENDS})"
        f" LEFT JOIN facts n ON n.id = facts.superseded_by AND {others}"
        f" WHERE facts.superseded_at IS NOT NULL AND facts.forgotten_at IS NULL AND {readable}"
        " AND j.at >= ? ORDER BY j.seq DESC LIMIT ?"
    )
    bound = (*other_values, *values, float("-inf") if since is None else since, limit)
    found = []
    for at, detail, channel, host, session, batch, *columns in run(connection, sql, bound):
        old, new_columns = columns[: len(COLUMNS)], columns[len(COLUMNS) :]
        newer = from_row(tuple(new_columns)) if new_columns[0] is not None else None
        reason = json.loads(detail).get("reason", "")
        found.append(Replacement(from_row(tuple(old)), newer, at, reason, channel, host, session, batch))
    return found


def take_back(tx: Transaction, fact_id: str) -> Fact:
    """Let a fact that was replaced or withdrawn count again, beside whatever took its place."""
    fact = tx.fact(fact_id)
    if fact.superseded_at is None:
        raise InputError(f"memory {fact_id[:8]} was neither replaced nor withdrawn, so there is nothing to restore")
    sql = f"SELECT detail FROM journal WHERE fact_id = ? AND action IN {_ENDS} ORDER BY seq DESC LIMIT 1"
    rows = run(tx.connection, sql, (fact_id,))
    ended = json.loads(rows[0][0])["before"].get("valid_until") if rows else None
    current = {"superseded_at": None, "superseded_by": None, "valid_until": ended}
    newer = run(tx.connection, "SELECT id FROM facts WHERE supersedes_id = ?", (fact_id,))
    taken = tx.change(fact_id, "take_back", current, other_id=fact.superseded_by)
    for (new_id,) in newer:
        tx.change(new_id, "take_back", {"supersedes_id": None}, other_id=fact_id)
    return taken
