"""The one background thread of a store in the host's process: it does what turns leave behind, in order."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from perdure.background.turn_gate import TurnGate

TICK = 1.0
"""Seconds between two looks at what is due."""

_log = logging.getLogger("perdure.background")


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do once. An error that it raises is logged."""

    name: str
    work: Callable[[], None]


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

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Have something done soon; returns at once. After `close` nothing is accepted any more."""
        with self._changed:
            if self._closed:
                return
            self._open += 1
        self._tasks.put(Task(name, work))

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
                self._guarded(Task("tick", self._tick))
                continue
            if task is None:
                return
            self._gate.pause()
            self._guarded(task)
            with self._changed:
                self._open -= 1
                self._changed.notify_all()

    def _guarded(self, task: Task) -> None:
        try:
            task.work()
        except Exception as error:  # noqa: BLE001 - one task that fails must not end all that come after it
            _log.warning("background task %s failed: %s", task.name, type(error).__name__)
