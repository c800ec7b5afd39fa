"""The canary: an invented memory takes the whole way through the running process, so that a break in it is noticed.

Its scope has a name that nobody can guess, so no caller reads it, and it is removed at the end: of its words, vector,
links and receipt nothing stays, only ids in the journal.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from perdure.background.scheduler import Pause
from perdure.capture.pipeline import Capturer
from perdure.errors import PerdureError
from perdure.hooks.types import Channel
from perdure.store.folder import FILE_MODE
from perdure.store.scope import Scope
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author

PREFIX = "perdure-canary-"
SYLLABLES = 5
_AUTHOR = Author(Channel.UNKNOWN, "canary")
_log = logging.getLogger("perdure.background")
Recalled = Callable[[str, Scope], str]
"""Returns the block for a prompt of somebody who also reads a scope; it leaves nothing behind."""


class CanaryError(PerdureError):
    """A memory does not get through the running process."""


class Canary:
    """Sends invented memories through capture, store, recall and block."""

    def __init__(self, store: Store, capturer: Capturer, recalled: Recalled) -> None:
        """Use what a turn would use."""
        self._store = store
        self._capturer = capturer
        self._recalled = recalled

    def sing(self, pause: Pause) -> str:
        """Send one through; return one line about it."""
        self._clear()
        name = uuid.uuid4().hex
        scope = Scope("custom", f"{PREFIX}{name}")
        word = _word()
        try:
            if not self._capture(f"Remember that the canary {word} sings in the harbour.", scope, name, pause):
                raise CanaryError("the canary was not captured")
            pause()
            if word not in self._recalled(f"Where does the canary {word} sing?", scope):
                raise CanaryError("the canary was captured, but not recalled")
        except CanaryError as error:
            _log.error("memory may not be working: %s; see perdure status", error)
            raise
        finally:
            self._clear()
        return "captured, recalled and removed"

    def _capture(self, text: str, scope: Scope, name: str, pause: Pause) -> bool:
        entry = {
            "id": f"{PREFIX}{name}:1", "at": self._store.clock.now(), "session": None, "cursor": f"{scope}\0",
            "tail": "", "scope": str(scope), "host": "canary", "turn": None,
            "messages": [{"role": "user", "text": text}],
        }  # fmt: skip
        return any(written.fact.id for written in self._capturer.process(entry, pause))

    def _clear(self) -> None:
        # Also what a killed process has left of its own.
        with _no_worker(self._store) as alone, self._store.write(_AUTHOR) as tx:
            sql = "SELECT id FROM facts WHERE scope = 'custom' AND instr(scope_target, ?) = 1"
            for (fact_id,) in run(tx.connection, sql, (PREFIX,)):
                unseen = alone and run(tx.connection, "SELECT 1 FROM outbox WHERE fact_id = ?", (fact_id,))
                tx.remove(fact_id, "prune")
                if unseen:
                    # The derived index has never heard of it: no worker need be started to take it out again.
                    run(tx.connection, "DELETE FROM outbox WHERE fact_id = ?", (fact_id,))
            run(tx.connection, "DELETE FROM cursors WHERE instr(session, ?) = 1", (f"custom:{PREFIX}",))
            run(tx.connection, "DELETE FROM inbox_done WHERE instr(entry_id, ?) = 1", (PREFIX,))


@contextmanager
def _no_worker(store: Store) -> Iterator[bool]:
    try:
        with FileLock(store.folder / "worker.lock", timeout=0, mode=FILE_MODE):
            yield True
    except Timeout:
        yield False


def _word() -> str:
    # Pronounceable, as a string of digits and letters would be taken for a secret.
    chosen = (random.choice("bdfgklmnprstv") + random.choice("aeiou") for _ in range(SYLLABLES))
    return "".join(chosen).capitalize()
