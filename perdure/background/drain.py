"""From the inbox to facts: what a turn left is captured after it, and what a dead process left, at start."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from perdure.background.keeper import Keeper
from perdure.background.turn_gate import TurnGate
from perdure.capture.pipeline import Capturer
from perdure.errors import PerdureError, StoreBusyError, StoreClosedError, StoreFullError
from perdure.failpoints import fail_point
from perdure.store.store import Store

_log = logging.getLogger("perdure.background")
Entry = Mapping[str, Any]
POISON = (PerdureError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What an entry may be to blame for; a full memory or disk it is not."""


class Drain:
    """Moves inbox entries through capture, each exactly once."""

    def __init__(self, store: Store, capturer: Capturer, keeper: Keeper, gate: TurnGate) -> None:
        """Capture for `store` on the keeper's thread."""
        self._store = store
        self._capturer = capturer
        self._keeper = keeper
        self._gate = gate
        self._later: list[Entry] = []

    def accept(self, entry: Entry) -> None:
        """Capture an entry that this process has just acknowledged, soon."""
        self._keeper.submit("capture", lambda: self._own(entry))

    def recover(self) -> None:
        """Capture what processes that are gone have left behind."""
        for entries in self._store.inbox.adopt():
            for entry in entries:
                self._capture(entry)
                fail_point("drain.recovered")
            _log.info("recovered %d inbox entries of another process", len(entries))
        self._store.prune_finished()

    def retry(self) -> None:
        """Try again what could not be captured before. For quiet moments, on the keeper's thread."""
        later, self._later = self._later, []
        for entry in later:
            self._own(entry)

    def _own(self, entry: Entry) -> None:
        try:
            self._capture(entry)
        except (StoreBusyError, StoreFullError) as error:
            # The entry is safe in the inbox: what does not work now works later, or at the next start.
            _log.warning("capture of entry %s waits: %s", entry["id"], type(error).__name__)
            self._later.append(entry)
            return
        fail_point("drain.captured")
        self._store.inbox.finish(entry["id"])

    def _capture(self, entry: Entry) -> None:
        try:
            self._capturer.process(entry, self._gate.pause)
        except (StoreBusyError, StoreFullError, StoreClosedError):
            raise
        except POISON as error:
            # Poisoned: it would fail for ever. It is put aside and reported, never dropped.
            self._store.park(str(entry.get("id")), type(error).__name__, json.dumps(dict(entry)))
            fail_point("drain.parked")
            _log.warning("inbox entry %s was parked: %s", entry.get("id"), type(error).__name__)
