"""Calls into native code that must not be under way when the interpreter ends.

CPython before 3.14 ends a thread that comes back from native code during finalization by unwinding its stack
(pthread_exit, https://github.com/python/cpython/issues/87135). The C++ of ONNX Runtime aborts the process then:
"terminate called without an active exception".
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from perdure.errors import ModelError

PATIENCE = 10.0
"""Seconds that the end of the interpreter waits: one call takes well under one, on a machine that is not loaded."""


class _Calls:
    """Those that are under way."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.count = 0
        self.ending = False

    def end(self) -> None:
        with self.changed:
            self.ending = True
            self.changed.wait_for(lambda: not self.count, PATIENCE)


_calls = _Calls()
atexit.register(lambda: _calls.end())


def at_exit(close: Callable[[], object]) -> None:
    """Have something closed at the end of the interpreter, while native calls are still let in."""
    # The last that is registered is the first to be called, and ours was registered when this module was imported.
    atexit.register(close)


@contextmanager
def native_call() -> Iterator[None]:
    """Make the interpreter's exit wait for the block, which must be short; ModelError once the exit has begun."""
    calls = _calls
    with calls.changed:
        if calls.ending:
            raise ModelError("the program is exiting; models can no longer be loaded or called")
        calls.count += 1
    try:
        yield
    finally:
        with calls.changed:
            calls.count -= 1
            calls.changed.notify_all()


def _in_child() -> None:
    # The threads whose calls were counted are the parent's.
    global _calls
    _calls = _Calls()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
