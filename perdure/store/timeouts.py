"""How long a thread waits for one answer of a database on another machine: a turn, not for long."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

TURN = 2.0
"""Seconds, in a turn. A server that is frozen ends no connection by itself."""
_patience: ContextVar[float] = ContextVar("perdure_patience", default=math.inf)


def patience() -> float:
    """Return for how many seconds this thread waits for one answer; without an end where it may make an index."""
    return _patience.get()


@contextmanager
def hurried(seconds: float = TURN) -> Iterator[None]:
    """Wait for no answer longer than that in the block."""
    before = _patience.set(min(seconds, _patience.get()))
    try:
        yield
    finally:
        _patience.reset(before)
