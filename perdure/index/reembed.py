"""The worker's job when the embedding model changes: give every fact and trigger a new vector, then switch."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from perdure.embed.base import Embedder
from perdure.errors import ModelError, StoreUnavailableError
from perdure.index import shadow
from perdure.parts import part
from perdure.store import spaces, triggers
from perdure.store.fact import vector_text
from perdure.store.seals import seal_trigger_vector
from perdure.store.spaces import VectorSpace
from perdure.store.sql import Row
from perdure.store.store import Store

EMBED_BATCH = 4
STEP_SECONDS = 0.5
"""How long one step may take: what is due in the index need not wait longer."""
KEEP_SECONDS = 30 * 86_400.0
"""How long the vectors of a space that was left are kept."""
PRUNE_BATCH = 500
_log = logging.getLogger("perdure.worker")


class Reembedder:
    """Builds the space that a switch has begun. May be killed between any two steps: it goes on from there.

    How far it is stands nowhere but in the vectors themselves.
    """

    def __init__(self, store: Store, embedder_of: Callable[[VectorSpace], Embedder | None]) -> None:
        """Work on `store`."""
        self._store = store
        self._embedder_of = embedder_of
        self._space: VectorSpace | None = None
        self._embedder: Embedder | None = None
        self._after = 0
        self._failed: list[str] = []
        self._score: dict[str, Any] | None = None
        self._tidied = False

    def step(self) -> bool:
        """Embed for a moment, switch if all is embedded; return whether there was anything to do."""
        space = self._store.database.query(spaces.building)
        if space is None:
            return self._tidy()
        if space != self._space:
            self._space, self._after, self._failed, self._score = space, 0, [], None
            self._embedder = self._embedder_of(space)
            self._report(None)
        if self._embedder is None:
            return self._stalled(f"model {space.name} cannot be loaded by the worker")
        try:
            return self._build(space, self._embedder)
        except ModelError as error:
            return self._stalled(f"model {space.name} failed: {error}")

    def _build(self, space: VectorSpace, embedder: Embedder) -> bool:
        until = time.monotonic() + STEP_SECONDS
        while True:
            facts = self._store.database.query(spaces.unembedded, space.id, self._after, EMBED_BATCH, self._failed)
            whole = not facts and not self._after
            aims = self._unaimed(space) if whole else []
            if whole and not aims:
                return self._switch(space, embedder)
            # At the end it begins anew: facts before this row may have come back.
            self._after = facts[-1].seq if facts else 0
            if not facts and not aims:
                continue
            texts = [(each.id, vector_text(each.text, each.entity, each.key)) for each in facts]
            blobs = self._embedded(embedder, texts)
            aimed = self._embedded(embedder, [(name, text) for name, _, text in aims])
            # What is lost by a power cut is simply made again.
            with self._store.database.write(durable=False) as connection:
                if spaces.building(connection) != space:
                    return True
                for fact_id, blob in blobs.items():
                    spaces.put(connection, space.id, fact_id, blob)
                for name, blob in aimed.items():
                    triggers.keep_vector(connection, name, space.id, blob)
                    seal_trigger_vector(connection, name, space.id)
            if time.monotonic() >= until:
                return True

    def _switch(self, space: VectorSpace, embedder: Embedder) -> bool:
        if self._score is None:
            self._score = shadow.compare(self._store, space, embedder, self._embedder_of)
        with self._store.database.write() as connection:
            if spaces.building(connection) != space:
                return True
            # A fact or trigger may have come in since the last look; under this lock none can.
            if not spaces.unembedded(connection, space.id, 0, 1, self._failed) and not triggers.without_vector(
                connection, space.id, 1, self._failed
            ):
                spaces.note(connection, space.id, shadow.NOTE, self._score)
                spaces.activate(connection, space.id, self._store.clock.now())
                _log.info("switched to model %s; %d texts are found by keyword only", space.name, len(self._failed))
                # Who comes back to this space later is compared anew.
                self._space = None
        self._tidied = False
        return True

    def _unaimed(self, space: VectorSpace) -> list[Row]:
        return self._store.database.query(triggers.without_vector, space.id, EMBED_BATCH, self._failed)

    def _embedded(self, embedder: Embedder, batch: Sequence[tuple[str, str]]) -> dict[str, bytes]:
        """Return vectors of texts by id. One that the model fails on alone goes by words, and stops no switch."""
        if not batch:
            return {}
        try:
            rows = embedder.embed([text for _, text in batch])
        except ModelError:
            if len(batch) > 1:
                return {key: blob for each in batch for key, blob in self._embedded(embedder, [each]).items()}
            embedder.embed(["warm"])
            [(failed, _)] = batch
            self._failed.append(failed)
            _log.warning("memory or trigger %s cannot be embedded; it is found by keyword only", failed)
            return {}
        return {key: row.astype("<f4").tobytes() for (key, _), row in zip(batch, rows, strict=True)}

    def _stalled(self, problem: str) -> bool:
        _log.warning("model switch stalled: %s", problem)
        self._report(problem)
        return False

    def _report(self, problem: str | None) -> None:
        self._store.database.apply(spaces.report, problem)

    def _tidy(self) -> bool:
        if not self._tidied:
            self._tidied = True
            prune(self._store, keep_seconds=KEEP_SECONDS)
        return False


def prune(store: Store, *, keep_seconds: float = 0.0, dry_run: bool = False) -> list[spaces.SpaceState]:
    """Delete the vectors of spaces that were left, and the LanceDB tables of all spaces but the store's.

    Returns the spaces whose vectors are deleted.
    """
    now = store.clock.now()
    doomed = store.database.query(spaces.prunable, now - keep_seconds)
    if dry_run:
        return doomed
    for item in doomed:
        with store.database.write() as connection:
            # A kill from here on leaves a space that nobody goes back to; the next call deletes the rest.
            if item.space.id not in {left.space.id for left in spaces.prunable(connection, now - keep_seconds)}:
                continue
            spaces.prune(connection, item.space.id, now)
        after: int | None = 0
        while after is not None:
            after = store.database.jot(spaces.drop_vectors, item.space.id, after, PRUNE_BATCH)
    _drop_tables(store)
    return doomed


def _drop_tables(store: Store) -> None:
    # A table of a space that was left is of no use, and nothing would take a purged text out of it. On the way
    # back it is made anew from the vectors, which are kept.
    left = [item.space.id for item in store.database.query(spaces.every) if item.state != spaces.ACTIVE]
    for space_id in left:
        for table in store.lance_folder.glob(f"memories_{space_id}*"):
            shutil.rmtree(table, ignore_errors=True)
    if left and store.objects is not None:
        with suppress(StoreUnavailableError):  # a purge waits for it, and the next call tries again
            part("lance.drift").drop_elsewhere(store, left)
