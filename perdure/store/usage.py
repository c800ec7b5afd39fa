"""What is counted when memories are shown, and what when they are used. Only use makes a memory stronger."""

from __future__ import annotations

import json
from collections.abc import Iterable

from perdure.store.fact import Fact
from perdure.store.lifecycle import use
from perdure.store.sql import Connection, run
from perdure.store.transaction import Transaction


def note_recalled(connection: Connection, ids: Iterable[str], *, injected: bool = False) -> None:
    """Count that memories reached an agent. It changes no rank, no lifetime, no seal and no journal.

    Args:
        connection: of `Database.write(durable=False)`: a count may be lost.
        ids: of what reached it; what is no fact is passed over.
        injected: whether it was put into a prompt; else a tool was asked for it.
    """
    sql = (
        "UPDATE facts SET recall_count = recall_count + 1, injected_count = injected_count + ?"
        " WHERE id IN (SELECT value FROM json_each(?))"
    )
    run(connection, sql, (int(injected), json.dumps(list(ids))))


def used(tx: Transaction, ids: Iterable[str]) -> list[Fact]:
    """Note the use of facts: each counts once, and its lifetime may start anew; see `lifecycle.use`.

    Args:
        tx: the transaction.
        ids: of the facts. What was forgotten, superseded or purged since it was shown is passed over.

    Returns:
        The facts that were counted, as they are now.
    """
    wanted = list(dict.fromkeys(ids))
    sql = (
        "SELECT id FROM facts WHERE id IN (SELECT value FROM json_each(?))"
        " AND forgotten_at IS NULL AND superseded_at IS NULL"
    )
    there = {row[0] for row in run(tx.connection, sql, (json.dumps(wanted),))}
    return [use(tx, fact_id) for fact_id in wanted if fact_id in there]
