"""Taking changes back: what the journal kept is put in place again, as a new change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perdure.errors import NotFoundError
from perdure.store.agent_records import METHOD
from perdure.store.fact import split_tags, to_column
from perdure.store.lifecycle import revived
from perdure.store.links import between, link, unlink
from perdure.store.scope import ALL_SCOPES, OWNER, Audience, Scope
from perdure.store.sql import Connection, dialect, marks, run
from perdure.store.transaction import Transaction
from perdure.store.triggers import are
from perdure.text.clean import clean

_NOT_UNDONE = ("embed", "purge", "prune", "use", "renew")
"""Bookkeeping, and what cannot come back."""
IMPORT = "import"
"""The host that stands in the journal behind an import."""
_OWNER = Scope("user", OWNER)
SHORT = 8
"""Digits of a batch that name it."""
_EXPIRE = "expire"
_LEARN = "learn"
_BY_BATCH = (_EXPIRE, "assign", _LEARN)
"""Nobody's last change: these are taken back only by their batch."""
_AIM = ("triggers", _LEARN)


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo did."""

    batch: str  # the transaction that was undone
    facts: tuple[str, ...]  # ids of the facts that were reverted
    conflicts: tuple[str, ...]  # ids of facts that have changed since and were left alone


def last_batch(connection: Connection, audience: Audience) -> str:
    """Return the newest transaction on facts the audience may read that can be undone and was not."""
    if batch := next(batches(connection, audience, everything=False), ""):
        return batch
    raise NotFoundError("there is nothing left to undo")


def batches(
    connection: Connection,
    audience: Audience,
    *,
    session: str | None = None,
    host: str | None = None,
    begins: str = "",
    everything: bool = True,
) -> Iterator[str]:
    """Yield transactions that can be undone, newest first; of one session or host only, if asked.

    `begins` is the beginning of their names. `everything` counts also what was nobody's doing: an expiry, a record of
    what an agent did.
    """
    condition, values = audience.sql(dialect(connection).in_scopes)
    sql = (
        "SELECT j.batch FROM journal j CROSS JOIN facts"
        f" WHERE facts.id = j.fact_id AND {condition} AND j.action NOT IN ({marks(_NOT_UNDONE)}) AND j.action <> 'undo'"
        f" AND (? = 1 OR j.action NOT IN {_BY_BATCH}"
        " AND (j.action <> 'add' OR facts.extraction_method IS DISTINCT FROM ?))"
        # Taking back a link writes a row of its own kind, which must not make the undo look like a change.
        " AND NOT EXISTS (SELECT 1 FROM journal d WHERE d.batch = j.batch AND d.action = 'undo')"
        " AND (? IS NULL OR j.session = ?) AND (? IS NULL OR j.host = ?)"
        f"{' AND j.batch >= ? AND j.batch < ?' if begins else ''}"
        # From the change to its memory: the other way round every memory is looked at for every change.
        f" AND NOT EXISTS (SELECT 1 FROM journal u CROSS JOIN facts WHERE facts.id = u.fact_id"
        f" AND {condition} AND u.action = 'undo' AND json_extract(u.detail, '$.undoes') = j.batch)"
        " ORDER BY j.seq DESC"
    )
    names = (begins, f"{begins}\U0010ffff") if begins else ()
    told = (*values, *_NOT_UNDONE, everything, METHOD, session, session, host, host, *names, *values)
    seen: set[str] = set()
    for (batch,) in connection.execute(sql, told):
        if batch not in seen:
            seen.add(batch)
            yield batch


def undo(tx: Transaction, batch: str, audience: Audience) -> Undone:
    """Take a transaction back, last change first. What was changed again since is left alone."""
    # Who took an import in is the owner of the folder, whomever the memories in it belong to; another may have taken
    # back a part of it since.
    sql = "SELECT 1 FROM journal WHERE host = ? AND substr(batch, 1, ?) = ? LIMIT 1"
    import_ = audience.writable() == _OWNER and run(tx.connection, sql, (IMPORT, len(batch), batch))
    for asking in (ALL_SCOPES, audience) if import_ else (audience,):
        # A beginning will do: that is how a change is told.
        named = list(batches(tx.connection, asking, begins=batch)) if len(batch) >= SHORT else []
        if len(named) == 1:
            [batch], audience = named, asking
            break
    else:
        raise NotFoundError(f"there is no change {batch[:12]} to undo; it may have been undone already")
    condition, values = audience.sql(dialect(tx.connection).in_scopes)
    sql = (
        "SELECT j.action, j.fact_id, j.other_id, j.detail FROM journal j CROSS JOIN facts"
        f" WHERE j.batch = ? AND facts.id = j.fact_id AND {condition} ORDER BY j.seq DESC"
    )
    rows = run(tx.connection, sql, (batch, *values))
    # What goes with all that it has keeps its triggers, for who brings it back.
    made = {fact_id for action, fact_id, *_ in rows if action == "add"}
    done: dict[str, None] = {}
    conflicts: dict[str, None] = {}
    for action, fact_id, other_id, detail in rows:
        if action not in _NOT_UNDONE and not (action in _AIM and fact_id in made):
            worked = _reverse(tx, action, fact_id, other_id, json.loads(detail))
            (done if worked else conflicts)[fact_id] = None
    tx.journal("undo", rows[-1][1], detail={"undoes": batch})
    return Undone(batch, tuple(done), tuple(conflicts))


def _reverse(tx: Transaction, action: str, fact_id: str, other_id: str | None, detail: dict[str, Any]) -> bool:
    if action in ("link", "unlink") and other_id is not None:
        there = between(tx.connection, fact_id, other_id, detail["type"])
        gone = not run(tx.connection, "SELECT 1 FROM facts WHERE id = ?", (other_id,))
        if gone or (there.strength if there else None) != detail["after"]:
            return False
        if there is not None and detail["before"] is None:
            unlink(tx, fact_id, other_id, detail["type"])
        else:
            link(tx, fact_id, other_id, detail["type"], detail["before"])
        return True
    if action in _AIM:
        added, removed = detail["added"], detail["removed"]
        as_left = are(tx.connection, added, removed=False) and are(tx.connection, removed, removed=True)
        if as_left:
            tx.swap_triggers(fact_id, removed, added)
        return as_left
    if _stood_upon(tx, fact_id, action, other_id):
        return False
    if action == "add":
        if tx.fact(fact_id).forgotten_at is None:
            tx.change(fact_id, "undo", {"forgotten_at": tx.now})
        return True
    before, after = detail.get("before", {}), detail.get("after", {})
    fact = tx.fact(fact_id)
    if any(to_column(name, getattr(fact, name)) != value for name, value in after.items()):
        return False
    values = {name: split_tags(value) if name == "tags" else value for name, value in before.items()}
    if action == _EXPIRE:
        values |= revived(fact, tx.now)
    tx.change(fact_id, "undo", values)
    return True


def _stood_upon(tx: Transaction, fact_id: str, action: str, other_id: str | None) -> bool:
    """Return whether the version that a change made has a successor by now, which must not lose its ground."""
    newer = {"add": fact_id, "succeed": fact_id, "supersede": other_id}.get(action)
    return bool(run(tx.connection, "SELECT 1 FROM facts WHERE id = ? AND superseded_at IS NOT NULL", (newer,)))


def undo_chosen(tx: Transaction, audience: Audience, batch: str | None, session: str | None) -> Undone:
    """Take back all of a session, or one transaction, or the last one where neither is named."""
    if session is not None:
        wanted = list(batches(tx.connection, audience, session=session))
    else:
        wanted = [last_batch(tx.connection, audience) if batch is None else clean(batch)]
    if not wanted:
        raise NotFoundError(f"there is nothing to undo in session {session!r}")
    results = [undo(tx, each, audience) for each in wanted]
    return Undone(
        ",".join(result.batch for result in results),
        tuple(dict.fromkeys(fact for result in results for fact in result.facts)),
        tuple(dict.fromkeys(fact for result in results for fact in result.conflicts)),
    )
