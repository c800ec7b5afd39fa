"""The review queue: memories that need their owner's approval before they are recalled unasked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perdure.capture.decide import own_view
from perdure.capture.evidence import replaces
from perdure.errors import InputError
from perdure.store import history, listing, search
from perdure.store.fact import Fact
from perdure.store.lifecycle import PENDING, grant, request_of
from perdure.store.listing import Filter
from perdure.store.scope import Audience, Scope
from perdure.store.search import View
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction
from perdure.store.trust import AGENTS_NOTE, AUTO_RECALLED, SUPERSEDES, gives_way, reviewed

APPROVED, REJECTED = "approved", "rejected"


def waiting(store: Store, view: View, limit: int) -> Sequence[Fact]:
    """Return memories pending review, newest first."""
    return store.database.query(listing.list_facts, view, Filter(review_state=PENDING), limit)


def decide(
    store: Store, audience: Audience, author: Author, fact_ids: Sequence[str], state: str, dry_run: bool
) -> Sequence[Fact]:
    """Approve or reject memories, all or none; one change, which `undo` reverts.

    Once approved, a fact from an untrusted source, such as an import, counts as said by whoever approved it.
    An approved fact that the user said replaces an older value of its slot, and facts that said the same from a
    less trusted source, as it would have done without review. A request to replace or forget another fact
    (`store.lifecycle`) is carried out in the name of whoever approves it.

    One that is in this state already is left as it is, unless it is an agent's note that nobody has approved yet;
    `dry_run` only returns them.
    """
    found = _named(store, audience, fact_ids, "perdure review list")
    with store.write(author, keep=not dry_run) as tx:
        return [tx.fact(fact_id) if dry_run else _decided(tx, fact_id, state) for fact_id in found]


def take_back(
    store: Store, audience: Audience, author: Author, fact_ids: Sequence[str], dry_run: bool
) -> Sequence[Fact]:
    """Restore replaced or withdrawn memories, all or none, beside their replacements; `undo` reverts it."""
    found = _named(store, audience, fact_ids, "perdure review --replaced")
    with store.write(author, keep=not dry_run) as tx:
        return [history.take_back(tx, fact_id) for fact_id in found]


def _named(store: Store, audience: Audience, fact_ids: Sequence[str], listed_by: str) -> list[str]:
    if not fact_ids:
        raise InputError(f"no memory specified; pass ids, as listed by: {listed_by}")
    return changeable(store, View(audience, store.clock.now(), include_superseded=True), fact_ids)


def changeable(store: Store, view: View, fact_ids: Sequence[str]) -> list[str]:
    """Return the full ids of memories, each once; raise if the caller may not read or change one of them."""
    with store.database.read() as connection:
        found = [search.by_prefix(connection, fact_id, view) for fact_id in fact_ids]
    for fact in found:
        view.audience.writable(Scope(fact.scope, fact.scope_target))
    return list(dict.fromkeys(fact.id for fact in found))


def _decided(tx: Transaction, fact_id: str, state: str) -> Fact:
    fact = tx.fact(fact_id)
    noted = fact.channel in AGENTS_NOTE and not reviewed(tx.connection, [fact_id])
    if fact.review_state == state and not (state == APPROVED and noted):
        return fact
    if state == REJECTED:
        return tx.change(fact_id, "reject", {"review_state": state})
    request = request_of(tx.connection, fact_id)
    values: dict[str, object] = {"review_state": state}
    if request is not None or fact.channel not in AUTO_RECALLED:
        values["channel"] = tx.author.channel  # whoever approves it vouches for it
    tx.change(fact_id, "approve", values)
    if request is not None and fact.supersedes_id is None:
        grant(tx, fact, request, own_view(fact, tx.now))
    elif fact.superseded_at is None:
        _replace_twins(tx, fact)
        _replace_older(tx, fact)
    return tx.fact(fact_id)


def _replace_twins(tx: Transaction, fact: Fact) -> None:
    for old in search.by_hash(tx.connection, fact.normalized_hash, own_view(fact, tx.now)):
        if gives_way(old, fact):
            tx.supersede(old.id, fact.id, "approved")


def _replace_older(tx: Transaction, fact: Fact) -> None:
    if fact.channel not in SUPERSEDES or not fact.entity or not fact.key:
        return
    view = replace(own_view(fact, tx.now), approved_only=True)
    for old in search.lookup(tx.connection, fact.entity, fact.key, view):
        if old.id != fact.id and old.effective_date <= fact.effective_date:
            found = replaces(old, fact)
            if found is not None and not found.rest:
                tx.supersede(old.id, fact.id, "approved")
                return
