"""Background work steps aside while a turn is running."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from perdure.store.sql import hurried

PATIENCE = 1.0
"""Seconds after which background work goes on all the same: a turn that hangs must not stop it for good."""


class TurnGate:
    """Tells background threads of this process whether a turn is running. Turns never wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = 0
        self._idle = threading.Event()
        self._idle.set()

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
        self._idle.wait(PATIENCE)
