"""The job that lets memories expire, and drops what is older than it is to be kept."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.background.scheduler import Pause
from perdure.files.transcript_log import TranscriptLog
from perdure.store import expiry, receipts
from perdure.store.store import Store
from perdure.text.pluralize import counted

RECEIPTS = 500
"""Receipts that are dropped in one transaction."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long things are kept, in seconds."""

    expired: float  # memories, from their expiry on
    receipts: float  # what was considered in a turn
    conversations: float | None  # perdure's own record of a conversation, from its last message on; None: for good


def prune(store: Store, log: TranscriptLog, keep: Retention, pause: Pause) -> str:
    """Expire and drop what is due; return one line about it.

    If so much would expire at once that the clock may be wrong, nothing is done at all: see `perdure.store.expiry`.
    """
    done = expiry.prune(store, keep.expired, pause=pause)
    if done.parked is not None:
        return f"paused: {done.parked.facts} of {counted(done.parked.total, 'memory')} would expire; see perdure prune"
    now = store.clock.now()
    dropped = 0
    while True:
        pause()
        some = store.database.jot(receipts.drop_before, now - keep.receipts, RECEIPTS)
        dropped += some
        if some < RECEIPTS:
            break
    kept = keep.conversations
    conversations = [] if kept is None else log.drop_before(now - kept)
    store.prune_finished()
    parts = {
        "memories expired": len(done.expired), "removed": len(done.removed), "receipts dropped": dropped,
        "conversations dropped": len(conversations), "proposals dropped": len(done.proposals),
    }  # fmt: skip
    return ", ".join(f"{count} {what}" for what, count in parts.items() if count) or "nothing is due"
