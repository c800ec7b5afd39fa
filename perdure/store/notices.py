"""What a store keeps for its operator: how many secrets were left out, and whether ONNX Runtime reports.

The secrets themselves are kept nowhere.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from perdure import telemetry
from perdure.store.sql import get_meta, put_meta
from perdure.store.store import Store

LEFT_OUT, REPORTING, REFUSED = "left_out", "reporting", "refused"
"""Under these names the store keeps it."""
_log = logging.getLogger("perdure.store")


def tell_left_out(store: Store, kinds: Iterable[str]) -> None:
    """Count secrets left out of memories, by kind, and log where to keep them."""
    kinds = tuple(kinds)
    _log.warning("not remembered: %s. Keep secrets with: perdure vault store", ", ".join(kinds))
    count_left_out(store, kinds)


def count_left_out(store: Store, kinds: Iterable[str]) -> None:
    """Count secrets left out, where the caller is notified in another way."""
    with store.database.write(durable=False) as connection:
        counted = Counter(json.loads(get_meta(connection, LEFT_OUT) or "{}"))
        counted.update(kinds)
        put_meta(connection, LEFT_OUT, json.dumps(counted, sort_keys=True))


def left_out(store: Store) -> tuple[str, ...]:
    """Return how many messages held which kind of secret: "2 password"."""
    counted: dict[str, int] = json.loads(store.meta(LEFT_OUT) or "{}")
    return tuple(f"{count} {kind}" for kind, count in sorted(counted.items()))


def note_refused(store: Store, home: str, kinds: Iterable[str]) -> None:
    """Store, until the user is notified, the kinds of secrets they asked to remember; `home` is their scope."""
    with store.database.write(durable=False) as connection:
        known = json.loads(get_meta(connection, f"{REFUSED} {home}") or "[]")
        put_meta(connection, f"{REFUSED} {home}", json.dumps(sorted({*known, *kinds})))


def take_refused(store: Store, home: str) -> Sequence[str]:
    """Return these kinds, once."""
    if store.refusal is not None or store.meta(f"{REFUSED} {home}") in (None, "[]"):
        return ()
    with store.database.write(durable=False) as connection:
        kinds: list[str] = json.loads(get_meta(connection, f"{REFUSED} {home}") or "[]")
        put_meta(connection, f"{REFUSED} {home}", "[]")
    return kinds


def tell_reporting(store: Store) -> None:
    """Record that ONNX Runtime was imported before perdure, so that it sends telemetry, and log the remedy."""
    _log.warning(
        "onnxruntime was imported before perdure and sends telemetry: set %s=1 where this program is started",
        telemetry.VARIABLE,
    )
    store.note(REPORTING, repr(store.clock.now()))


def last_reporting(store: Store) -> float | None:
    """Return when a program last had the store open in which ONNX Runtime reports, epoch seconds; None: never."""
    value = store.meta(REPORTING)
    return None if value is None else float(value)
