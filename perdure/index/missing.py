"""Facts and triggers that have no vector yet: those stored before the model was there, or while it failed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from perdure.embed.base import Embedder
from perdure.errors import ModelError
from perdure.failpoints import fail_point
from perdure.hooks.types import Channel
from perdure.ranking.calibration import Scale
from perdure.store import triggers
from perdure.store.fact import live_sql, vector_text
from perdure.store.spaces import VectorSpace
from perdure.store.sql import Row, run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector

BATCH = 4
_AUTHOR = Author(Channel.UNKNOWN, host="worker")
_log = logging.getLogger("perdure.worker")


def embed_missing(store: Store, embedder: Callable[[], Embedder | None]) -> bool:
    """Give a batch of facts, or then of triggers, the vectors that they lack; return whether there was anything to do.

    `embedder` loads the model of the store's space when it is first needed, and returns None if there is none.
    """
    space = store.space()
    if space is None:
        return False
    missing = without_vector(store, space.id, BATCH)
    aiming = [] if missing else store.database.query(triggers.without_vector, space.id, BATCH)
    model = embedder() if missing or aiming else None
    if model is None:
        return False
    try:
        if aiming:
            _aim(store, space, model, aiming)
            return True
        vectors = StoredVector.rows(model.embed([text for _, text in missing]), space.id)
    except ModelError as error:
        _log.warning("embedding %d texts failed: %s", len(missing or aiming), type(error).__name__)
        return False
    fail_point("indexer.embedded")
    with store.write(_AUTHOR) as tx:
        for (fact_id, _), vector in zip(missing, vectors, strict=True):
            tx.put_vector(fact_id, vector)
    fail_point("indexer.vectors_kept")
    return True


def is_any(store: Store, space_id: str) -> bool:
    """Return whether a fact or a trigger has no vector in this space."""
    return bool(without_vector(store, space_id, 1) or store.database.query(triggers.without_vector, space_id, 1))


def _aim(store: Store, space: VectorSpace, model: Embedder, rows: Sequence[Row]) -> None:
    """Give triggers their vectors, and remove those that would bring their memories up at any time."""
    from perdure.index.aiming import near_quiet
    from perdure.index.calibrate import known

    vectors = model.embed([text for *_, text in rows])
    calibration = known(space)
    quiet = near_quiet(model, calibration.scale if calibration else Scale(stretch=0.0), vectors)
    with store.write(_AUTHOR) as tx:
        for (name, fact_id, _), vector, near in zip(rows, StoredVector.rows(vectors, space.id), quiet, strict=True):
            if near:
                tx.swap_triggers(fact_id, [], [name])
            else:
                triggers.keep_vector(tx.connection, name, space.id, vector.blob)
                tx.journal("embed", fact_id)


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
