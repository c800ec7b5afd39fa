"""The one background thread of a store in the host's process: it does what turns leave behind, in order.

It steps aside while a turn is running, as all background work does.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from perdure.store.sql import hurried

TICK = 1.0
"""Seconds between two looks at what is due."""

PATIENCE = 1.0
"""Seconds after which background work goes on all the same: a turn that hangs must not stop it for good."""
BEHIND = 256
"""Tasks that wait, from which on turns wait for background work and not it for them: what waits is held in memory."""
_log = logging.getLogger("perdure.background")


class TurnGate:
    """Tells background threads of this process whether a turn is running. Turns never wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = 0
        self._idle = threading.Event()
        self._idle.set()
        self.behind = False  # whether so much is left to do that it no longer steps aside

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Mark a turn as running for the block. It waits for no database for long."""
        with self._lock:
            self._turns += 1
            self._idle.clear()
        try:
            with hurried():
                yield
        finally:
            with self._lock:
                self._turns -= 1
                if not self._turns:
                    self._idle.set()

    def pause(self) -> None:
        """Wait until no turn is running. To be called by background work every few milliseconds."""
        if not self.behind:
            self._idle.wait(PATIENCE)


Task = tuple[str, Callable[[], object]]
"""The name of something to do once, and what does it. An error that it raises is logged."""


class Keeper:
    """Runs tasks one after another, and a check of what is due in between."""

    def __init__(self, gate: TurnGate, tick: Callable[[], None]) -> None:
        """Prepare the thread; `tick` is called about once a second."""
        self._gate = gate
        self._tick = tick
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._open = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="perdure-keeper", daemon=True)
        self._closed = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, name: str, work: Callable[[], object]) -> None:
        """Have something done soon; returns at once. After `close` nothing is accepted any more."""
        with self._changed:
            if self._closed:
                return
            self._open += 1
            self._gate.behind = self._open > BEHIND
        self._tasks.put((name, work))

    def settle(self, timeout: float) -> bool:
        """Wait until everything submitted so far is done; return whether that happened in time (seconds)."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._open, timeout)

    def close(self, patience: float = 2.0) -> None:
        """Do what is waiting for at most `patience` seconds, then end the thread."""
        deadline = time.monotonic() + patience
        self.settle(patience)
        with self._changed:
            self._closed = True
        self._tasks.put(None)
        if self._thread.is_alive():
            self._thread.join(max(0.1, deadline - time.monotonic()))

    def _run(self) -> None:
        while True:
            try:
                task = self._tasks.get(timeout=TICK)
            except queue.Empty:
                self._guarded("tick", self._tick)
                continue
            # What was not done before the store closed cannot be done any more; turns are safe in the inbox.
            if task is None or self._closed:
                return
            self._gate.pause()
            self._guarded(*task)
            with self._changed:
                self._open -= 1
                self._gate.behind = self._open > BEHIND
                self._changed.notify_all()

    def _guarded(self, name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - one task that fails must not end all that come after it
            _log.warning("background task %s failed: %s", name, type(error).__name__)
