"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds: a busy machine takes its time."""


def until(holds: Callable[[], object]) -> bool:
    """Return True once something holds.

    Raises:
        AssertionError: it does not happen.
    """
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)
    return True
