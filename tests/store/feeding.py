"""A store whose LanceDB table is being fed."""

from __future__ import annotations

from perdure.store import outbox
from perdure.store.outbox import IndexState
from perdure.store.store import Store


def feed(store: Store, space: str = "space") -> None:
    """Have rows queued for a table of a vector space, as once it is being built."""
    with store.database.write() as connection:
        outbox.put_index_state(connection, space, IndexState())
