"""When a program last had this store open in which ONNX Runtime reports: it was imported before perdure."""

from __future__ import annotations

import logging

from perdure import telemetry
from perdure.store.sql import run
from perdure.store.store import Store

META = "reporting"
_log = logging.getLogger("perdure.store")


def note(store: Store) -> None:
    """Keep that it is so now, and tell the operator what to do.

    Raises:
        StoreError: it could not be written.
    """
    _log.warning(
        "onnxruntime was imported before perdure, and reports to its maker: set %s=1 where this program is started",
        telemetry.VARIABLE,
    )
    with store.database.write(durable=False) as connection:
        run(connection, "INSERT OR REPLACE INTO meta VALUES (?, ?)", (META, repr(store.clock.now())))


def last(store: Store) -> float | None:
    """Return when that was, in epoch seconds; None: never."""
    value = store.meta(META)
    return None if value is None else float(value)
