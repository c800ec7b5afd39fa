"""The worker's job: give facts their vectors, and bring the LanceDB table up to date."""

from __future__ import annotations

import logging
from collections.abc import Callable

from perdure.capture.writing import stored
from perdure.embed.base import Embedder
from perdure.errors import ModelError
from perdure.failpoints import fail_point
from perdure.hooks.types import Channel
from perdure.store import outbox
from perdure.store.database import run
from perdure.store.fact import live_sql
from perdure.store.lance import LanceIndex, rows_of
from perdure.store.slots import vector_text
from perdure.store.store import Store, VectorSpace
from perdure.store.transaction import Author

EMBED_BATCH = 4
_log = logging.getLogger("perdure.worker")


class Indexer:
    """Works off what the outbox names. May be killed between any two steps: each can be repeated."""

    def __init__(self, store: Store, embedder: Callable[[], Embedder | None], batch: int) -> None:
        """Index `store` in batches of `batch` facts.

        Args:
            store: the truth.
            embedder: loads the embedder of the store's space when it is first needed; None if there is none.
            batch: facts in a write to LanceDB: a write of one row costs as much as of fifty.
        """
        self._store = store
        self._embedder = embedder
        self._batch = batch
        self._index: LanceIndex | None = None
        self._space: VectorSpace | None = None

    def step(self) -> bool:
        """Do one batch; return whether there was anything to do."""
        return self._embed_some() or self._index_some()

    def close(self) -> None:
        """Merge what was written in single batches, and release the table."""
        if self._index is not None:
            if self._index.fragmented:
                self._index.optimize()
            self._index.close()

    def _embed_some(self) -> bool:
        space = self._store.space()
        if space is None:
            return False
        missing = without_vector(self._store, space.id, EMBED_BATCH)
        embedder = self._embedder() if missing else None
        if embedder is None:
            return False
        try:
            vectors = stored(embedder.embed([text for _, text in missing]), space.id)
        except ModelError as error:
            _log.warning("embedding %d facts failed: %s", len(missing), type(error).__name__)
            return False
        fail_point("indexer.embedded")
        with self._store.write(Author(Channel.UNKNOWN, host="worker")) as tx:
            for (fact_id, _), vector in zip(missing, vectors, strict=True):
                tx.put_vector(fact_id, vector)
        fail_point("indexer.vectors_kept")
        return True

    def _index_some(self) -> bool:
        space = self._store.space()
        if space is None:
            return False
        with self._store.database.read() as connection:
            batch = outbox.next_batch(connection, self._batch)
        if not batch.seqs:
            return False
        try:
            rows = rows_of(self._store.database, batch.fact_ids, space.id, self._store.clock.now())
            fail_point("indexer.read")
            live = {row["id"] for row in rows}
            self._opened(space).apply(rows, [fact_id for fact_id in batch.fact_ids if fact_id not in live])
            fail_point("indexer.applied")
        except (OSError, RuntimeError, ValueError) as error:
            # LanceDB raises these for everything that goes wrong in it.
            _log.warning("indexing %d facts failed: %s", len(batch.fact_ids), type(error).__name__)
            with self._store.database.write() as connection:
                outbox.failed(connection, batch, type(error).__name__)
            return True
        with self._store.database.write() as connection:
            outbox.done(connection, batch)
            fail_point("indexer.done")
        return True

    def _opened(self, space: VectorSpace) -> LanceIndex:
        if self._index is None or self._space != space:
            self._index = LanceIndex(self._store.lance_folder, space.id, space.dims)
            self._space = space
        return self._index


def without_vector(store: Store, space_id: str, limit: int) -> list[tuple[str, str]]:
    """Return id and text to embed of live facts that have no vector in this space."""
    condition, values = live_sql(store.clock.now())
    sql = (
        f"SELECT facts.id, facts.text, facts.entity, facts.key FROM facts WHERE {condition} AND NOT EXISTS"
        " (SELECT 1 FROM vectors v WHERE v.fact_id = facts.id AND v.embedding_id = ?) LIMIT ?"
    )
    with store.database.read() as connection:
        return [(row[0], vector_text(*row[1:])) for row in run(connection, sql, (*values, space_id, limit))]
