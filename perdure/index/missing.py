"""Facts that have no vector yet: those stored before the model was there, or while it failed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from perdure.embed.base import Embedder
from perdure.errors import ModelError
from perdure.failpoints import fail_point
from perdure.hooks.types import Channel
from perdure.store.fact import live_sql, vector_text
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector

BATCH = 4
_log = logging.getLogger("perdure.worker")


def embed_missing(store: Store, embedder: Callable[[], Embedder | None]) -> bool:
    """Give a batch of facts the vectors that they lack; return whether there was anything to do.

    `embedder` loads the model of the store's space when it is first needed, and returns None if there is none.
    """
    space = store.space()
    if space is None:
        return False
    missing = without_vector(store, space.id, BATCH)
    model = embedder() if missing else None
    if model is None:
        return False
    try:
        vectors = StoredVector.rows(model.embed([text for _, text in missing]), space.id)
    except ModelError as error:
        _log.warning("embedding %d facts failed: %s", len(missing), type(error).__name__)
        return False
    fail_point("indexer.embedded")
    with store.write(Author(Channel.UNKNOWN, host="worker")) as tx:
        for (fact_id, _), vector in zip(missing, vectors, strict=True):
            tx.put_vector(fact_id, vector)
    fail_point("indexer.vectors_kept")
    return True


def unembedded(store: Store) -> int:
    """Return how many live facts have no vector in the store's space, and are found by their words alone."""
    space = store.space()
    return int(_missing(store, "count(*)", space.id if space else "", 1)[0][0])


def without_vector(store: Store, space_id: str, limit: int) -> list[tuple[str, str]]:
    """Return id and text to embed of live facts that have no vector in this space."""
    rows = _missing(store, "facts.id, facts.text, facts.entity, facts.key", space_id, limit)
    return [(row[0], vector_text(*row[1:])) for row in rows]


def _missing(store: Store, columns: str, space_id: str, limit: int) -> list[tuple[Any, ...]]:
    condition, values = live_sql(store.clock.now())
    sql = (
        f"SELECT {columns} FROM facts WHERE {condition} AND NOT EXISTS"
        " (SELECT 1 FROM vectors v WHERE v.fact_id = facts.id AND v.embedding_id = ?) LIMIT ?"
    )
    return store.database.query(run, sql, (*values, space_id, limit))
