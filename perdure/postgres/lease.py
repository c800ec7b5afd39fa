"""Who of all machines looks after a tenant: a row with an end, and a number that grows with each new holder."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from perdure.errors import StoreBusyError
from perdure.store.sql import Backend, Connection, Row, run

NAME = "jobs"
SECONDS = 30.0
"""For how long a holder need not be heard of. By the server's clock: those of the machines may differ."""
GIVING_UP = 1.0
"""Seconds that a close waits for."""
_ENDS = "clock_timestamp() + make_interval(secs => ?)"
_RENEWED = f"UPDATE leases SET ends = {_ENDS} WHERE name = '{NAME}' AND holder = ? RETURNING fence"
_TAKEN = (
    f"INSERT INTO leases (name, holder, fence, ends) VALUES ('{NAME}', ?, 1, {_ENDS}) ON CONFLICT (tenant, name)"
    " DO UPDATE SET holder = excluded.holder, ends = excluded.ends,"
    " fence = leases.fence + CASE WHEN leases.holder = excluded.holder THEN 0 ELSE 1 END"
    " WHERE leases.holder = excluded.holder OR leases.ends < clock_timestamp() RETURNING fence"
)
_LOST = "another process now maintains the store; this job stops"
_guarded: ContextVar[int | None] = ContextVar("perdure_fence", default=None)


class Lease:
    """The right of one process to run the jobs of a tenant. Usable from any thread."""

    def __init__(self, database: Backend, seconds: float = SECONDS) -> None:
        """Prepare; nothing is asked of the server yet."""
        self._database, self._seconds, self._holder = database, seconds, uuid.uuid4().hex
        self._lock = threading.Lock()
        self._renewed = self._looked = float("-inf")
        self._fence: int | None = None
        self._led = False

    def take(self) -> bool:
        """Return whether this process holds it, and renew it in good time."""
        with self._lock:
            if self._fence is not None and time.monotonic() - self._renewed < self._seconds / 3:
                return True
            began, held, self._fence = time.monotonic(), self._fence, None
            rows: list[Row] = []
            if held is None and _guarded.get() is None and self._is_free(began):
                rows = self._database.jot(run, _TAKEN, (self._holder, self._seconds))
            elif held is not None:
                # A job renews it in the middle of its work, perhaps within a write of its own.
                with self._database.beside() as connection:
                    rows = run(connection, _RENEWED, (self._seconds, self._holder))
            self._fence, self._renewed = (rows[0][0], began) if rows else (None, float("-inf"))
            self._led = self._led or bool(rows)
            if self._fence is None and _guarded.get() is not None:
                raise StoreBusyError(_LOST)
            return self._fence is not None

    def _is_free(self, now: float) -> bool:
        """Return whether the right may be free; asked seldom, and without keeping writers waiting."""
        if now - self._looked < self._seconds / 3:
            return False
        self._looked = now
        sql = f"SELECT ends < clock_timestamp() OR holder = ? FROM leases WHERE name = '{NAME}'"
        rows = self._database.query(run, sql, (self._holder,))
        return not rows or bool(rows[0][0])

    def give_up(self) -> None:
        """Let others have it at once.

        If the server cannot be asked, it ends by itself.
        """
        # Who is waiting for writers in `take` may take long; then the lease ends by itself.
        if not self._lock.acquire(timeout=GIVING_UP):
            return
        try:
            if self._fence is None:
                return
            self._fence = None
            # Of its own row alone: whoever closes must not wait for writers.
            with self._database.beside() as connection:
                run(connection, f"UPDATE leases SET ends = clock_timestamp() WHERE name = '{NAME}' AND holder = ?",
                    (self._holder,))  # fmt: skip
        finally:
            self._lock.release()

    @contextmanager
    def fenced(self) -> Iterator[None]:
        """Have writes in the block refused once another process holds it.

        Who never held it works for who does, as the worker process, or does what a person asked for.
        """
        fence = self._fence
        if fence is None:
            if self._led:
                raise StoreBusyError(_LOST)
            fence = self._database.query(_present)
        before = _guarded.set(fence)
        try:
            yield
        finally:
            _guarded.reset(before)


def check(connection: Connection) -> None:
    """See, in a write under the tenant's lock, that who writes for a job still holds the lease."""
    fence = _guarded.get()
    if fence is not None and _present(connection) != fence:
        raise StoreBusyError(_LOST)


def _present(connection: Connection) -> int:
    """Return the number of the present holder, or the last one; 0: there was none."""
    [(fence,)] = run(connection, f"SELECT coalesce(max(fence), 0) FROM leases WHERE name = '{NAME}'")
    return int(fence)
