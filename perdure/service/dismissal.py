"""Sending a helper away, for who must be alone in a data folder."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from perdure.service.client import STOP, ask
from perdure.service.place import endpoint

SECONDS = 5.0
PAUSE = 0.02


def dismiss(home: Path) -> None:
    """Have the helper of a data folder end, if there is one, and wait some seconds until it has."""
    with suppress(OSError):
        if not home.exists() or ask(str(home), STOP, b"", SECONDS, begin=False) is None:
            return
        # Windows has neither helpers nor this module.
        import fcntl

        lock = os.open(f"{endpoint(str(home))}.lock", os.O_RDWR)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            # The helper holds it to its end.
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(PAUSE)
        os.close(lock)
