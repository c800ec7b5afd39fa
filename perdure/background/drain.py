"""From the inbox to facts: what a turn left is captured after it, and what a dead process left, at start."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from perdure.background.keeper import Keeper, TurnGate
from perdure.errors import (
    PerdureError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreLostError,
    StoreUnavailableError,
)
from perdure.failpoints import fail_point
from perdure.store.store import Store

_log = logging.getLogger("perdure.background")
Entry = Mapping[str, Any]
Own = tuple[Entry, Callable[[], None] | None]
WAITS = (StoreBusyError, StoreFullError, StoreLostError, StoreUnavailableError, ImportError, OSError, MemoryError)
"""What no entry is to blame for: it works later, or at the next start."""
POISON = (PerdureError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What an entry may be to blame for."""
PROBLEM = "drain_problem"
"""Under this name the store keeps why turns wait, for who asks from another process."""
ORPHANS = 60.0
"""Seconds between two looks for turns of other processes and machines."""
RETRY = 1.0
MOST = 60.0
"""Seconds after the first failure until the next try, and at the most; they double with each further one."""


@dataclass(eq=False)
class Drain:
    """Moves inbox entries through capture, each exactly once."""

    store: Store
    capture: Callable[[Entry, Callable[[], None]], object]  # makes facts of an entry; `Capturer.process`
    keeper: Keeper  # captures on its thread
    gate: TurnGate
    restore: Callable[[Sequence[Entry]], None] = lambda entries: None  # writes what entries hold of conversations

    def __post_init__(self) -> None:
        """Begin with nothing that waits."""
        self._later: list[Own] = []
        self._recovered = True
        self._wait = RETRY
        self._again_at = 0.0
        self._looked = float("-inf")
        self.problem: str | None = None

    @property
    def waits(self) -> bool:
        """Whether something could not be captured, and is tried again."""
        return bool(self._later) or not self._recovered

    def accept(self, entry: Entry, record: Callable[[], None] | None = None) -> None:
        """Capture an entry that this process has just acknowledged, soon, and record its conversation."""
        self.keeper.submit("capture", lambda: self._own(entry, record))

    def recover(self) -> None:
        """Capture what processes that are gone have left behind."""
        self._recovered = False
        try:
            for entries in self.store.inbox.adopt():
                for entry in entries:
                    self._capture(entry)
                    fail_point("drain.recovered")
                self._recorded(partial(self.restore, entries))
                _log.info("recovered %d inbox entries of another process", len(entries))
            self._take_in()
            self.store.prune_finished()
        except WAITS as error:
            self._failed(error)
            return
        self._recovered = True
        self._worked()

    def retry(self) -> None:
        """Try again what could not be captured before. For quiet moments, on the keeper's thread."""
        if time.monotonic() < self._again_at:
            return
        for _ in range(len(self._later)):
            # It counts as waiting meanwhile; one that fails again is put to the end.
            try:
                self._own(*self._later[0])
            finally:
                del self._later[0]
        self._worked()
        if not self._recovered or time.monotonic() - self._looked > ORPHANS:
            self.recover()

    def _take_in(self) -> None:
        """Capture what the database acknowledged for machines that have not dealt with it."""
        self._looked = time.monotonic()
        for entry in self.store.orphans():
            self._capture(entry)
            self._recorded(partial(self.restore, [entry]))
            self.store.release(str(entry["id"]))

    def _own(self, entry: Entry, record: Callable[[], None] | None) -> None:
        try:
            self._capture(entry)
            if record is not None:
                self._recorded(record)
        except WAITS as error:
            # The entry is safe in the inbox: what does not work now works later, or at the next start.
            self._later.append((entry, record))
            self._failed(error)
            return
        fail_point("drain.captured")
        self.store.inbox.finish(entry["id"])
        self.store.release(entry["id"])
        self._worked()

    def _recorded(self, record: Callable[[], None]) -> None:
        try:
            record()
        except (*WAITS, StoreClosedError):
            raise
        except POISON as error:
            _log.warning("a conversation was not recorded: %s", type(error).__name__)

    def _failed(self, error: BaseException) -> None:
        now = time.monotonic()
        if now >= self._again_at:
            # One round, however many entries wait.
            self._again_at = now + self._wait
            self._wait = min(MOST, 2 * self._wait)
        known = isinstance(error, PerdureError)
        self._tell(str(error) if known else getattr(error, "strerror", None) or type(error).__name__)

    def _worked(self) -> None:
        if not self.waits:
            self._wait = RETRY
            self._tell(None)

    def _tell(self, problem: str | None) -> None:
        if problem == self.problem:
            return
        self.problem = problem
        if problem is not None:
            _log.warning("capture is delayed: %s", problem)
        # What keeps turns from being written may keep this from it, too.
        with suppress(StoreError):
            self.store.note(PROBLEM, problem)

    def _capture(self, entry: Entry) -> None:
        try:
            self.capture(entry, self.gate.pause)
        except (*WAITS, StoreClosedError):
            raise
        except POISON as error:
            # Poisoned: it would fail for ever. It is put aside and reported, never dropped.
            self.store.park(str(entry.get("id")), type(error).__name__, json.dumps(dict(entry)))
            fail_point("drain.parked")
            _log.warning("inbox entry %s was set aside: %s; see perdure review", entry.get("id"), type(error).__name__)
