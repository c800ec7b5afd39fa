"""Named places at which a test lets the process die, as a power cut or the kernel would: at once, nothing tidied up.

Off unless the environment variable PERDURE_FAIL_POINT names one: `commit.before`, or `commit.before:7` for the
seventh time that it is reached.
"""

from __future__ import annotations

import itertools
import os

VARIABLE = "PERDURE_FAIL_POINT"
EXIT_CODE = 137
"""What a shell reports for a process that SIGKILL ended."""

FAIL_POINTS = frozenset({
    "migrate.begun", "migrate.stepped", "migrate.committed",
    "transaction.begun", "commit.before", "commit.after", "rollback.before",
    "fact.journaled", "fact.inserted", "fact.searchable", "fact.added", "fact.superseded", "fact.changed",
    "fact.unsearchable",
    "vector.put", "outbox.queued", "entry.finished",
    "inbox.grown", "inbox.written", "inbox.synced", "inbox.emptied", "inbox.kept_aside", "inbox.adopted",
    "inbox.removed",
    "drain.captured", "drain.recovered", "drain.parked",
    "indexer.embedded", "indexer.vectors_kept", "indexer.read", "indexer.applied", "indexer.done",
    "lance.creating", "lance.merged", "lance.deleted", "lance.optimizing", "lance.optimized",
    "worker.opened", "worker.stepping", "worker.closed",
    "remembered.written", "remembered.replaced",
})  # fmt: skip
"""The names of all fail points."""

_armed, _, _count = os.environ.get(VARIABLE, "").partition(":")
_reached = itertools.count(1)
_fatal = int(_count) if _count.isdecimal() else 1


def fail_point(name: str) -> None:
    """End the process here if this fail point is armed; else do nothing."""
    if name == _armed and next(_reached) == _fatal:
        os._exit(EXIT_CODE)
