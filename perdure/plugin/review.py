"""The review queue: what waits for a word of its owner before it is recalled unasked."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.errors import InputError
from perdure.store import listing, search
from perdure.store.fact import Fact
from perdure.store.listing import Filter
from perdure.store.scope import Audience, Scope
from perdure.store.search import View
from perdure.store.slots import is_single_valued
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction
from perdure.store.trust import SUPERSEDES

PENDING, APPROVED, REJECTED = "pending", "approved", "rejected"


def waiting(store: Store, view: View, limit: int) -> Sequence[Fact]:
    """Return what waits for review, newest first.

    Raises:
        InputError: the limit is out of range.
    """
    with store.database.read() as connection:
        return listing.list_facts(connection, view, Filter(review_state=PENDING), limit)


def decide(
    store: Store, audience: Audience, author: Author, fact_ids: Sequence[str], state: str, dry_run: bool
) -> Sequence[Fact]:
    """Approve or reject facts, all or none of them; one change, which `undo` takes back.

    An approved fact that the user said takes the place of an older value of its slot, as it would have at once.

    Args:
        store: where they are.
        audience: who decides.
        author: for the journal.
        fact_ids: their ids, or the first eight digits.
        state: "approved" or "rejected".
        dry_run: only return them as they are.

    Returns:
        The facts as they are now. One that is in this state already is left as it is.

    Raises:
        InputError: no fact is named.
        NotFoundError, AmbiguousIdError: see `perdure.errors`.
        ScopeError: one of them is not the caller's to change.
    """
    if not fact_ids:
        raise InputError("no memory is named; give ids, as perdure review list shows them")
    view = View(audience, store.clock.now(), include_superseded=True)
    with store.database.read() as connection:
        found = [search.by_prefix(connection, fact_id, view) for fact_id in fact_ids]
    for fact in found:
        audience.writable(Scope(fact.scope, fact.scope_target))
    if dry_run:
        return found
    with store.write(author) as tx:
        return [_decided(tx, fact_id, state) for fact_id in dict.fromkeys(fact.id for fact in found)]


def _decided(tx: Transaction, fact_id: str, state: str) -> Fact:
    fact = tx.fact(fact_id)
    if fact.review_state == state:
        return fact
    tx.change(fact_id, "approve" if state == APPROVED else "reject", {"review_state": state})
    if state == APPROVED and fact.superseded_at is None:
        _replace_older(tx, fact)
    return tx.fact(fact_id)


def _replace_older(tx: Transaction, fact: Fact) -> None:
    if fact.channel not in SUPERSEDES or not fact.entity or not fact.key or not is_single_valued(fact.key):
        return
    scope = Scope(fact.scope, fact.scope_target)
    view = View(Audience(frozenset({scope}), scope), tx.now, approved_only=True)
    for old in search.lookup(tx.connection, fact.entity, fact.key, view):
        if old.id != fact.id and old.effective_date <= fact.effective_date:
            tx.supersede(old.id, fact.id, "approved")
            return
