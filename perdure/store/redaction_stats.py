"""How many secrets were left out of what was captured or stored, by kind. The secrets themselves are kept nowhere."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable

from perdure.store.sql import run
from perdure.store.store import Store

META = "left_out"
_log = logging.getLogger("perdure.store")


def note(store: Store, kinds: Iterable[str]) -> None:
    """Count some more, and tell the operator where such things belong.

    Raises:
        StoreError: it could not be written.
    """
    kinds = tuple(kinds)
    _log.warning("left out of what is remembered: %s. Keep such things with: perdure vault store", ", ".join(kinds))
    count(store, kinds)


def count(store: Store, kinds: Iterable[str]) -> None:
    """Count some more, of which whoever brought them is told otherwise.

    Raises:
        StoreError: it could not be written.
    """
    with store.database.write(durable=False) as connection:
        rows = run(connection, "SELECT value FROM meta WHERE key = ?", (META,))
        counted = Counter(json.loads(rows[0][0]) if rows else {})
        counted.update(kinds)
        run(connection, "INSERT OR REPLACE INTO meta VALUES (?, ?)", (META, json.dumps(counted, sort_keys=True)))


def counts(store: Store) -> tuple[str, ...]:
    """Return how many messages held which kind of secret: "2 password"."""
    counted: dict[str, int] = json.loads(store.meta(META) or "{}")
    return tuple(f"{count} {kind}" for kind, count in sorted(counted.items()))
