"""What has outlived its time: out of every answer first, which can be undone, and out of the store much later."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perdure.hooks.types import Channel
from perdure.ranking.decay import OF_SESSION
from perdure.store.scope import Scope
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.store.transaction import Author

SHARE = 0.2
FEW = 10
"""When more than a fifth of all facts, and more than ten, would expire at once, the clock may be wrong."""
BATCH = 20
"""Facts in a transaction: others write in between."""
_PARKED = "expiry_parked"
_AUTHOR = Author(Channel.UNKNOWN, "timers")
_MORTAL = "facts.superseded_at IS NULL AND facts.forgotten_at IS NULL AND facts.pinned = 0"
_OPEN = "(facts.valid_until IS NULL OR facts.valid_until > facts.expires_at)"
_OVER = f"facts.expires_at <= ? AND {_OPEN}"
_GONE = "(facts.expires_at <= ? AND facts.valid_until <= facts.expires_at)"
_DUE = f"SELECT facts.id FROM facts WHERE {_MORTAL} AND {_OVER}"
_AMONG = "facts.id IN (SELECT value FROM json_each(?))"
_UNANSWERED = "FROM proposals WHERE state = 'open' AND expires_at <= ?"
_REMOVABLE = (
    "SELECT facts.id FROM facts WHERE facts.superseded_at IS NULL AND facts.pinned = 0"
    f" AND {_GONE} AND coalesce("
    "(SELECT max(at) FROM journal WHERE fact_id = facts.id AND action = 'expire'), facts.expires_at) <= ?"
)


@dataclass(frozen=True, slots=True)
class Parked:
    """An expiry that waits for a word: `facts` of `total` at once, noticed `at` (epoch seconds)."""

    facts: int
    total: int
    at: float


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune did, or would do."""

    expired: tuple[str, ...] = ()  # ids of facts now hidden; `undo` restores them
    removed: tuple[str, ...] = ()  # ids of facts removed from all tables
    parked: Parked | None = None  # set if nothing was done because too many would have expired at once
    batch: str | None = None  # batch of what expired, for `undo`
    proposals: tuple[str, ...] = ()  # ids of proposals that expired unanswered and were removed


def prune(
    store: Store,
    retention: float,
    *,
    dry_run: bool = False,
    confirmed: bool = False,
    pause: Callable[[], None] = lambda: None,
) -> Pruned:
    """Let expire what is over, and remove what expired long ago. May be killed between any two transactions.

    A proposal that nobody answered in time is removed at once: it may be made again. What was done before a failure is
    kept. `retention` is the time from expiry to removal, in seconds; `confirmed` lets expire also if much does at once;
    `pause` is called between transactions.
    """
    now = store.clock.now()
    with store.database.read() as connection:
        due = _ids(connection, _DUE, now)
        old = _ids(connection, _REMOVABLE, now, now - retention)
        unanswered = [row[0] for row in run(connection, f"SELECT id {_UNANSWERED} ORDER BY made_at, id", (now,))]
        mortal = f"SELECT facts.id FROM facts WHERE {_MORTAL} AND NOT coalesce({_GONE}, FALSE)"
        total = len(_ids(connection, mortal, now))
    parked = None
    if not confirmed and len(due) > max(FEW, SHARE * total):
        parked = Parked(len(due), total, now)
    if dry_run:
        return Pruned(tuple(due), tuple(old), parked, proposals=tuple(unanswered))
    _park(store, parked)
    if parked is not None:
        return Pruned(parked=parked)
    batch = uuid.uuid4().hex
    expired = [fact_id for some in _some(due, pause) for fact_id in _expire(store, some, now, batch)]
    removed = [fact_id for some in _some(old, pause) for fact_id in _remove(store, some, now, now - retention)]
    if unanswered:
        store.database.apply(run, f"DELETE {_UNANSWERED}", (now,))
    return Pruned(tuple(expired), tuple(removed), batch=batch if expired else None, proposals=tuple(unanswered))


def end_moments(store: Store, scope: Scope, session: str, *, others: bool = False) -> None:
    """Let expire what was of the moment in a session, or in all `others` of its scope, now that it is over."""
    told = f"facts.provenance_session {'<>' if others else '='} ?"
    whose = f"(facts.scope, facts.scope_target) = (?, ?) AND facts.decay_class = ? AND {told}"
    sql = f"SELECT facts.id FROM facts WHERE {_MORTAL} AND {whose} AND facts.expires_at > ?"
    now = store.clock.now()
    values = (scope.kind, scope.target, OF_SESSION, session, now)
    if not store.database.query(_ids, sql, *values):
        return
    with store.write(_AUTHOR) as tx:
        for fact_id in _ids(tx.connection, sql, *values):
            tx.change(fact_id, "expire", {"expires_at": now, "valid_until": now}, reason="its session ended")


def parked_expiry(store: Store) -> Parked | None:
    """Return the expiry that waits for a word, or None."""
    text = store.meta(_PARKED)
    return Parked(**json.loads(text)) if text else None


def _expire(store: Store, fact_ids: Sequence[str], now: float, batch: str) -> list[str]:
    with store.write(_AUTHOR) as tx:
        tx.batch = batch
        # What was confirmed meanwhile lives on.
        still = _ids(tx.connection, f"{_DUE} AND {_AMONG}", now, json.dumps(fact_ids))
        for fact_id in still:
            tx.change(fact_id, "expire", {"valid_until": tx.fact(fact_id).expires_at}, reason="it expired")
    return still


def _remove(store: Store, fact_ids: Sequence[str], now: float, before: float) -> list[str]:
    with store.write(_AUTHOR) as tx:
        still = _ids(tx.connection, f"{_REMOVABLE} AND {_AMONG}", now, before, json.dumps(fact_ids))
        for fact_id in still:
            tx.remove(fact_id, "prune")
    return still


def _ids(connection: Connection, sql: str, *values: Any) -> list[str]:
    return [row[0] for row in run(connection, f"{sql} ORDER BY facts.seq", values)]


def _some(ids: Sequence[str], pause: Callable[[], None]) -> Iterator[Sequence[str]]:
    for first in range(0, len(ids), BATCH):
        pause()
        yield ids[first : first + BATCH]


def _park(store: Store, parked: Parked | None) -> None:
    if parked is not None or store.meta(_PARKED) is not None:
        store.note(_PARKED, json.dumps(asdict(parked)) if parked else None)
