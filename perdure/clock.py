"""Time as a value that is passed in, so that tests and replays can set it."""

from __future__ import annotations

import threading
import time
from typing import Protocol, runtime_checkable


@runtime_checkable
class Clock(Protocol):
    """perdure's source of the current time."""

    def now(self) -> float:
        """Return the current time in epoch seconds."""
        ...

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until `event` is set or `seconds` have passed; return whether it is set."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Return the current time in epoch seconds."""
        return time.time()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until `event` is set or `seconds` have passed; return whether it is set."""
        return event.wait(seconds)


class ManualClock:
    """A clock that moves only when it is told to. Waiting moves it by the whole wait."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the set time in epoch seconds."""
        return self._now

    def set(self, now: float) -> None:
        """Set the time, forwards or backwards, in epoch seconds."""
        with self._lock:
            self._now = now

    def advance(self, seconds: float) -> None:
        """Move the time by `seconds`."""
        with self._lock:
            self._now += seconds

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Move the time by `seconds` at once, unless `event` is set; return whether it is set."""
        if not event.is_set():
            self.advance(seconds)
        return event.is_set()
