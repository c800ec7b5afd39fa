"""Changes to a stored fact, and changes that an agent may only request; all can be undone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from perdure.errors import InputError, NotFoundError, refused
from perdure.ranking.decay import DEFAULT_CLASS, LIFETIMES, REFRESHED_BY_USE, expiry
from perdure.store import search
from perdure.store.fact import Fact, tags_of
from perdure.store.search import View
from perdure.store.sql import Connection, run
from perdure.store.transaction import StoredVector, Transaction
from perdure.store.trust import strength

_UNLINKED = "superseded_at superseded_by supersedes_id forgotten_at valid_until embedding_model"
"""What a new version does not take over from the old one."""
_NEW_VERSION = frozenset({"text", "why", "entity", "key", "value", "summary", "metadata"})
_WORDS = {"text", "why", "category", "entity", "key", "value", "summary"}
UPDATABLE = _NEW_VERSION | {"category", "importance", "tags", "decay_class", "confidence", "valid_from", "valid_until"}


def forget(tx: Transaction, fact_id: str, reason: str = "") -> Fact:
    """Forget a fact, the versions it replaced and the facts that quote it.

    `unforget` brings it back, and those with it.
    """
    if tx.fact(fact_id).forgotten_at is not None:
        raise InputError(f"memory {fact_id} is already forgotten; restore it: perdure unforget {fact_id[:8]}")
    for other, why in _beside(tx, fact_id):
        if tx.fact(other).forgotten_at is None:
            tx.change(other, "forget", {"forgotten_at": tx.now}, other_id=fact_id, reason=why)
    return tx.change(fact_id, "forget", {"forgotten_at": tx.now}, reason=reason)


def _beside(tx: Transaction, fact_id: str) -> list[tuple[str, str]]:
    """Return the ids of facts forgotten along with a fact, each with the reason."""
    versions = [(older, "an older version") for older in _versions(tx, fact_id)]
    return [*versions, *((other, "it quotes a forgotten memory") for other in tx.leaning(fact_id))]


def _versions(tx: Transaction, fact_id: str) -> list[str]:
    """Return the ids of the facts whose place a fact has taken, and of those whose place these had taken."""
    found = [fact_id]
    for newer in found:
        rows = run(tx.connection, "SELECT id FROM facts WHERE superseded_by = ?", (newer,))
        found += [row[0] for row in rows if row[0] not in found]
    return found[1:]


def retract(tx: Transaction, fact_id: str, reason: str = "") -> Fact:
    """Note that a fact is no longer true and that nothing takes its place. It stays for `as_of` and undo."""
    if tx.fact(fact_id).superseded_at is not None:
        raise NotFoundError(f"memory {fact_id} is already superseded; give the one that replaced it")
    return tx.change(fact_id, "retract", {"superseded_at": tx.now, "valid_until": tx.now}, reason=reason)


def unforget(tx: Transaction, fact_id: str) -> Fact:
    """Restore a forgotten fact, or an expired one, whose lifetime restarts."""
    fact = tx.fact(fact_id)
    over = fact.expires_at is not None and fact.expires_at <= tx.now
    if fact.forgotten_at is None and not over:
        raise InputError(f"memory {fact_id} is neither forgotten nor expired; there is nothing to restore")
    for other, _ in _beside(tx, fact_id):
        if tx.fact(other).forgotten_at == fact.forgotten_at is not None:
            tx.change(other, "unforget", {"forgotten_at": None}, other_id=fact_id)
    renewed = revived(fact, tx.now) | ({"valid_until": None} if fact.superseded_at is None else {}) if over else {}
    return tx.change(fact_id, "unforget", {"forgotten_at": None, **renewed})


def revived(fact: Fact, now: float) -> dict[str, Any]:
    """Return the values with which a fact that has expired begins a new life: bringing it back confirms it."""
    return {"expires_at": expiry(fact.decay_class, now, fact.decay_freeze_until), "last_confirmed_at": now}


def pin(tx: Transaction, fact_id: str, pinned: bool = True) -> Fact:
    """Pin a fact, or unpin it, which restarts its lifetime."""
    fact = tx.fact(fact_id)
    ends = None if pinned else expiry(fact.decay_class, tx.now, fact.decay_freeze_until)
    return tx.change(fact_id, "pin" if pinned else "unpin", {"pinned": pinned, "expires_at": ends})


def use(tx: Transaction, fact_id: str) -> Fact:
    """Record that a fact was used, by the agent on purpose, or confirmed. Its lifetime may restart."""
    fact = tx.fact(fact_id)
    values: dict[str, Any] = {"access_count": fact.access_count + 1, "last_accessed": tx.now}
    if fact.decay_class in REFRESHED_BY_USE and fact.expires_at is not None:
        values["expires_at"] = max(fact.expires_at, expiry(fact.decay_class, tx.now, fact.decay_freeze_until) or 0.0)
    return tx.change(fact_id, "use", values)


def update(
    tx: Transaction,
    fact_id: str,
    values: Mapping[str, Any],
    vector: StoredVector | None = None,
    found: Mapping[str, Any] | None = None,
) -> Fact:
    """Change a fact. New words make a new version, which takes the place of the old one.

    They are whose who changes it, if that word is the stronger one. `found` is what a new text gives by itself: its
    tags, the day that it speaks of. A new version has a new id and the old one's dates; its lifetime starts anew.
    """
    foreign = values.keys() - UPDATABLE
    if foreign:
        known = ", ".join(sorted({*UPDATABLE, "triggers"}))
        raise InputError(f"{', '.join(sorted(foreign))} cannot be updated; give any of {known}")
    fact = tx.fact(fact_id)
    if fact.forgotten_at is not None:
        raise InputError(f"memory {fact_id} is forgotten; restore it first: perdure unforget {fact_id[:8]}")
    values = checked(values) | _renewed(fact, values)
    if not values.keys() & _NEW_VERSION:
        return tx.change(fact_id, "update", values)
    draft = next_version(fact, values, found, tx.now)
    if "text" in values and strength(tx.author.channel) > strength(fact.channel):
        draft = replace(draft, channel=tx.author.channel)
    return succeed(tx, fact_id, draft, vector, "updated")


def next_version(fact: Fact, values: Mapping[str, Any], found: Mapping[str, Any] | None, now: float) -> Fact:
    """Return the replacement of a fact, not yet stored.

    `found` is what a new text gives by itself; `now`: epoch seconds.
    """
    fresh = {"summary": None} if "text" in values and "summary" not in values else {}
    new = {"id": "", "last_confirmed_at": now, "expires_at": None}
    since = {"valid_from": values.get("valid_from")}
    unlinked: dict[str, Any] = dict.fromkeys(_UNLINKED.split())
    return replace(fact, **(unlinked | dict(found or {}) | dict(values) | fresh | new | since))


def succeed(tx: Transaction, old_id: str, fact: Fact, vector: StoredVector | None, reason: str) -> Fact:
    """Store a fact in the place of another; return it."""
    new = tx.add(fact, vector)
    tx.supersede(old_id, new.id, reason)
    return tx.fact(new.id)


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of a fact if they fit."""
    for name in _WORDS & values.keys():
        if not isinstance(values[name], str) and (name in ("text", "category") or values[name] is not None):
            raise refused(values[name], "a text", name)
    for name in ("importance", "confidence"):
        number = values.get(name, 1)
        if not isinstance(number, int | float) or not 0 <= number <= 1:
            raise InputError(f"{name} is {number!r}; it must be from 0 to 1")
    for name in ("valid_from", "valid_until"):
        if not isinstance(values.get(name), int | float | None):
            raise refused(values[name], "epoch seconds", name)
    if not isinstance(values.get("metadata", {}), Mapping):
        raise refused(values["metadata"], "names with their values", "metadata")
    if values.get("decay_class", DEFAULT_CLASS) not in tuple(LIFETIMES):
        raise refused(values["decay_class"], f"one of {', '.join(LIFETIMES)}", "decay_class")
    return {**values, "tags": tags_of(values["tags"] or ())} if "tags" in values else dict(values)


def _renewed(fact: Fact, values: Mapping[str, Any]) -> dict[str, Any]:
    renewed: dict[str, Any] = {}
    if "decay_class" in values:
        confirmed = fact.last_confirmed_at or fact.created_at
        renewed["expires_at"] = expiry(values["decay_class"], confirmed, fact.decay_freeze_until)
    if "tags" in values:
        renewed["preserve_tags"] = True
    return renewed


def note_recalled(connection: Connection, ids: Iterable[str], *, injected: bool = False) -> None:
    """Count that memories reached an agent. It changes no rank, no lifetime, no seal and no journal.

    The write need not be durable: a count may be lost. What was not `injected` into a prompt was asked for by a tool.
    """
    sql = (
        "UPDATE facts SET recall_count = recall_count + 1, injected_count = injected_count + ?"
        " WHERE id IN (SELECT value FROM json_each(?))"
    )
    run(connection, sql, (int(injected), json.dumps(list(ids))))


def used(tx: Transaction, ids: Iterable[str]) -> list[Fact]:
    """Record the use of facts: each counts once, and its lifetime may restart; see `lifecycle.use`.

    What was forgotten, superseded or purged since it was shown is passed over. Return the others as they are now.
    """
    wanted = list(dict.fromkeys(ids))
    sql = (
        "SELECT id FROM facts WHERE id IN (SELECT value FROM json_each(?))"
        " AND forgotten_at IS NULL AND superseded_at IS NULL"
    )
    there = {row[0] for row in run(tx.connection, sql, (json.dumps(wanted),))}
    return [use(tx, fact_id) for fact_id in wanted if fact_id in there]


PENDING = "pending"
MOST = 50
"""Maximum pending requests of one scope: nobody reads more, and an agent in a loop writes without end."""


class Wish(StrEnum):
    """What is asked for; so the journal calls it."""

    REPLACE = "ask_replace"
    FORGET = "ask_forget"


@dataclass(frozen=True, slots=True)
class Request:
    """What a fact that waits for review asks for."""

    wish: Wish  # what is to be done
    target: str  # id of the fact that it is to be done to


def ask(tx: Transaction, note: Fact, vector: StoredVector | None, request: Request) -> Fact:
    """Store a request that waits for the user's decision. The fact it concerns is not changed.

    Return the note as stored, or the one that waits already and asks for the same in the same words.
    """
    draft = replace(note, review_state=PENDING)
    sql = (
        "SELECT f.id FROM facts f JOIN journal j ON j.fact_id = f.id AND j.action = ? AND j.other_id = ?"
        " WHERE f.text = ? AND f.review_state = ? AND f.forgotten_at IS NULL"
    )
    if waiting := run(tx.connection, sql, (request.wish.value, request.target, draft.text, PENDING)):
        return tx.fact(waiting[0][0])
    if _waiting(tx.connection, draft) >= MOST:
        raise InputError(
            f"{MOST} requests already await the user's decision, which is the limit; nothing was stored. "
            "Ask them to decide: perdure review"
        )
    added = tx.add(draft, vector)
    return tx.change(added.id, request.wish.value, {}, other_id=request.target)


def _waiting(connection: Connection, note: Fact) -> int:
    sql = (
        f"SELECT count(*) FROM facts f WHERE f.review_state = '{PENDING}' AND f.forgotten_at IS NULL"
        " AND f.superseded_at IS NULL AND f.scope = ? AND f.scope_target IS NOT DISTINCT FROM ?"
        " AND EXISTS (SELECT 1 FROM journal j WHERE j.fact_id = f.id AND j.action IN (?, ?))"
    )
    return int(run(connection, sql, (note.scope, note.scope_target, *Wish))[0][0])


def request_of(connection: Connection, fact_id: str) -> Request | None:
    """Return what a fact asks for, if it does."""
    sql = "SELECT action, other_id FROM journal WHERE fact_id = ? AND action IN (?, ?) ORDER BY seq DESC LIMIT 1"
    rows = run(connection, sql, (fact_id, *Wish))
    return Request(Wish(rows[0][0]), rows[0][1]) if rows else None


def grant(tx: Transaction, note: Fact, request: Request, view: View) -> None:
    """Do what an approved note asks for.

    The `view` is the note's own scope, where the other fact must still be.
    """
    if request.target not in search.by_ids(tx.connection, [request.target], view):
        wish = request.wish.removeprefix("ask_")
        raise NotFoundError(
            f"memory {request.target[:8]}, which {note.id[:8]} asks to {wish}, has changed since; "
            f"reject the request: perdure review reject {note.id[:8]}"
        )
    if request.wish is Wish.REPLACE:
        tx.supersede(request.target, note.id, "approved")
        return
    forget(tx, request.target, "approved")
    # It has done what it was for; approved, it would be recalled.
    forget(tx, note.id, "done")
