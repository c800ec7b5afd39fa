"""Starts the worker when the derived table is due: to be begun, or so far behind that a write is worth it."""

from __future__ import annotations

from collections.abc import Callable

from perdure.index.feeding import Feeding
from perdure.store import outbox, spaces
from perdure.store.store import Store


class IndexFeed:
    """What a host's process does for the derived table. For the keeper's thread, but for `behind`."""

    def __init__(
        self, store: Store, feeding: Feeding, start_worker: Callable[[], None], *, batch: int, seconds: float
    ) -> None:
        """Prepare."""
        self._store = store
        self._feeding = feeding
        self._start_worker = start_worker
        self._batch = batch
        self._seconds = seconds

    def look(self) -> None:
        """Start the worker if it has anything to do."""
        if self._begins():
            self._start_worker()
            return
        state = self._store.outbox_state()
        if state.oldest is None or self._store.space() is None or not self._fed():
            return
        now = self._store.clock.now()
        if state.retry_at is not None and now < state.retry_at:
            return
        if state.waiting >= self._batch or now - state.oldest >= self._seconds:
            self._start_worker()

    def behind(self) -> bool:
        """Return whether the table lacks something, or is to be begun."""
        return self._begins() or bool(self._store.outbox_state().waiting)

    def _begins(self) -> bool:
        with self._store.database.read() as connection:
            space = None if outbox.fed(connection) else spaces.active(connection)
        return space is not None and self._feeding.begins(space)

    def _fed(self) -> bool:
        """Return whether there is a table; what was queued for one that never was is dropped."""
        with self._store.database.read() as connection:
            if outbox.fed(connection):
                return True
        with self._store.database.write(durable=False) as connection:
            if not outbox.fed(connection):
                outbox.end(connection)
        return False
