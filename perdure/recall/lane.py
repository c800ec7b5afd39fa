"""One thread per leg: work that hangs can neither hold up a turn nor pile up."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from perdure.errors import PerdureError

Result = TypeVar("Result")


class Ticket(Generic[Result]):
    """A call that runs in a lane."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self.done = threading.Event()
        self._result: Result | None = None
        self.error: str | None = None

    def run(self) -> None:
        """Do the work; an error of ours is kept for the receipt."""
        try:
            self._result = self._work()
        except PerdureError as error:
            self.error = type(error).__name__

    def result(self, timeout: float) -> Result | None:
        """Return the result, or None if there was an error or none within `timeout` seconds."""
        if not self.done.wait(max(0.0, timeout)):
            self.error = "late"
            return None
        return self._result


class Lane:
    """Runs one call at a time in a thread of its own, started at the first call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[Ticket[object] | None] = queue.SimpleQueue()
        self._free = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, work: Callable[[], Result]) -> Ticket[Result] | None:
        """Start a call, or return None while the one before it still runs."""
        if not self._free.acquire(blocking=False):
            return None
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name=f"perdure-{self._name}", daemon=True)
            self._thread.start()
        ticket = Ticket(work)
        self._queue.put(ticket)  # type: ignore[arg-type]
        return ticket

    def close(self, patience: float = 2.0) -> None:
        """Let the thread end, waiting at most `patience` seconds for what runs in it."""
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join(patience)

    def _serve(self) -> None:
        while (ticket := self._queue.get()) is not None:
            try:
                ticket.run()
            except BaseException:
                # This thread ends: the next call needs another one, also while this one is not gone yet.
                self._thread = None
                raise
            finally:
                # Before the result is there, as whoever waits for it may have another call ready.
                self._free.release()
                ticket.done.set()


class Breaker:
    """After three failures in a row a leg rests for a while, so that it does not cost every turn its deadline."""

    def __init__(self, *, failures: int = 3, rest: float = 30.0) -> None:
        self._limit = failures
        self._rest = rest
        self._failures = 0
        self._until = 0.0

    def open(self, now: float) -> bool:
        """Return whether the leg is resting at this time (seconds, any steady clock)."""
        return now < self._until

    def note(self, *, ok: bool, now: float) -> None:
        """Count a success or a failure."""
        self._failures = 0 if ok else self._failures + 1
        if self._failures >= self._limit:
            self._until = now + self._rest
            self._failures = 0
