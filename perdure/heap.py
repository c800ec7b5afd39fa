"""Giving memory back to the system."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Have the C library return what was freed: after much was loaded it would keep tens of megabytes for later.

    Takes milliseconds. Only glibc has the call; elsewhere the memory stays with the process.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
