"""What an agent may only ask for: to replace or forget what the user said. It waits until the user has decided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from perdure.errors import InputError, NotFoundError
from perdure.store import lifecycle, search
from perdure.store.fact import Fact
from perdure.store.search import View
from perdure.store.sql import Connection, run
from perdure.store.transaction import StoredVector, Transaction

PENDING = "pending"
MOST = 50
"""So many requests of one scope may wait: more than that nobody reads, and an agent in a loop writes without end."""


class Wish(StrEnum):
    """What is asked for; so the journal calls it."""

    REPLACE = "ask_replace"
    FORGET = "ask_forget"


@dataclass(frozen=True, slots=True)
class Request:
    """What a fact that waits for review asks for.

    Attributes:
        wish: what is to be done.
        target: id of the fact that it is to be done to.
    """

    wish: Wish
    target: str


def ask(tx: Transaction, note: Fact, vector: StoredVector | None, request: Request) -> Fact:
    """Store what waits for the user's word, and what it is to do. The fact it is about stays as it is.

    Args:
        tx: the transaction.
        note: what is to take the other's place; or says that the other is to be forgotten.
        vector: of its text.
        request: what it asks for.

    Returns:
        The note as stored; or the one that waits already and asks for the same in the same words.

    Raises:
        InputError: the note is not to be stored, or as many wait as may.
    """
    draft = replace(note, review_state=PENDING)
    waiting = run(
        tx.connection,
        "SELECT f.id FROM facts f JOIN journal j ON j.fact_id = f.id AND j.action = ? AND j.other_id = ?"
        " WHERE f.text = ? AND f.review_state = ? AND f.forgotten_at IS NULL",
        (request.wish.value, request.target, draft.text, PENDING),
    )
    if waiting:
        return tx.fact(waiting[0][0])
    if _waiting(tx.connection, draft) >= MOST:
        raise InputError(
            f"{MOST} requests wait for the user's word already, which is the limit; nothing was stored. "
            "Tell them to decide: perdure review"
        )
    added = tx.add(draft, vector)
    return tx.change(added.id, request.wish.value, {}, other_id=request.target)


def _waiting(connection: Connection, note: Fact) -> int:
    [[count]] = run(
        connection,
        f"SELECT count(*) FROM facts f WHERE f.review_state = '{PENDING}' AND f.forgotten_at IS NULL"
        " AND f.superseded_at IS NULL AND f.scope = ? AND f.scope_target IS ?"
        " AND EXISTS (SELECT 1 FROM journal j WHERE j.fact_id = f.id AND j.action IN (?, ?))",
        (note.scope, note.scope_target, *(wish.value for wish in Wish)),
    )
    return int(count)


def request_of(connection: Connection, fact_id: str) -> Request | None:
    """Return what a fact asks for, if it does."""
    rows = run(
        connection,
        "SELECT action, other_id FROM journal WHERE fact_id = ? AND action IN (?, ?) ORDER BY seq DESC LIMIT 1",
        (fact_id, *(wish.value for wish in Wish)),
    )
    return Request(Wish(rows[0][0]), rows[0][1]) if rows else None


def grant(tx: Transaction, note: Fact, request: Request, view: View) -> None:
    """Do what an approved note asks for.

    Args:
        tx: the transaction.
        note: what asks.
        request: for what.
        view: where the other fact must still be: the note's own scope.

    Raises:
        NotFoundError: the other fact was changed, forgotten or removed meanwhile.
    """
    if request.target not in search.by_ids(tx.connection, [request.target], view):
        raise NotFoundError(
            f"memory {request.target[:8]}, which {note.id[:8]} asks to {_WORDS[request.wish]}, is no longer as it was; "
            f"reject the request: perdure review reject {note.id[:8]}"
        )
    if request.wish is Wish.REPLACE:
        tx.supersede(request.target, note.id, "approved")
        return
    lifecycle.forget(tx, request.target, "approved")
    # It has done what it was for; approved, it would be recalled.
    lifecycle.forget(tx, note.id, "done")


_WORDS = {Wish.REPLACE: "replace", Wish.FORGET: "forget"}
