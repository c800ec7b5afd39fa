"""Taking a fact out of every table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.store.seals import seal_fact
from perdure.store.sql import run
from perdure.store.transaction import Transaction


def remove(tx: Transaction, fact_id: str, action: str, detail: Mapping[str, Any] | None = None) -> None:
    """Take a fact out for good, with its words, vectors and links; the journal keeps its id.

    Args:
        tx: the transaction.
        fact_id: the fact; it must be there.
        action: what is done, a word for the journal.
        detail: why, for the journal: JSON values, no text.
    """
    connection = tx.connection
    linked = run(connection, "SELECT source_fact_id FROM memory_links WHERE target_fact_id = ?", (fact_id,))
    run(connection, "DELETE FROM facts_fts WHERE rowid = (SELECT seq FROM facts WHERE id = ?)", (fact_id,))
    run(connection, "DELETE FROM facts WHERE id = ?", (fact_id,))
    tx.journal(action, fact_id, detail=detail)
    tx.queue(fact_id)
    for (source,) in linked:
        seal_fact(connection, source)
