"""Forks: an open store belongs to the process that opened it. A forked child gets an error that says so, at once."""

from __future__ import annotations

import os
from typing import Any, NoReturn, Protocol
from weakref import WeakSet

from perdure.errors import StoreClosedError
from perdure.store.store import Store


class Parents(Protocol):
    """What a process has open, and its children must not touch: an engine."""

    closed: bool
    store: Store

    def abandon_worker(self) -> None:
        """Let go of the worker process, which is the parent's."""
        ...


_engines: WeakSet[Parents] = WeakSet()
_abandoned: list[dict[str, Any]] = []
"""What the parent's engines held: never used here, and never tidied up, as that would be done to the parent's files."""


class Forked:
    """What a forked child finds in the place of an engine. Locks of threads that it does not have are not touched."""

    def __getattr__(self, name: str) -> NoReturn:
        """Say what is the matter, whatever is asked for.

        Raises:
            StoreClosedError: always.
        """
        raise StoreClosedError("this memory was opened before the process was forked; open it anew in the child")

    def close(self) -> None:
        """Do nothing: the files are the parent's."""


def watch(engine: Parents) -> None:
    """Have an engine replaced in children that this process forks."""
    _engines.add(engine)


def _in_child() -> None:
    for engine in list(_engines):
        if not engine.closed:
            engine.store.inbox.abandon()
            engine.abandon_worker()
        _abandoned.append(engine.__dict__)
        engine.__dict__ = {"closed": True}
        engine.__class__ = Forked  # type: ignore[assignment]
    _engines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
