"""What was used last, up to a limit: a host may run for months and meet more conversations than fit into memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """A mapping that forgets what was not used for longest. Usable from any thread."""

    def __init__(self, limit: int) -> None:
        """Keep up to `limit` entries."""
        self._limit = limit
        self._kept: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """Return what is kept under a key, which counts as a use of it; None: nothing."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: Key, value: Value) -> None:
        """Keep a value."""
        with self._lock:
            self._kept[key] = value
            self._trim(key)

    def first(self, key: Key, value: Value) -> Value:
        """Keep a value unless there is one already; return the one that is kept."""
        with self._lock:
            kept = self._kept.setdefault(key, value)
            self._trim(key)
            return kept

    def drop(self, key: Key) -> None:
        """Keep it no longer, if it is kept."""
        with self._lock:
            self._kept.pop(key, None)

    def keys(self) -> frozenset[Key]:
        """Return all keys."""
        with self._lock:
            return frozenset(self._kept)

    def _trim(self, used: Key) -> None:
        self._kept.move_to_end(used)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)
