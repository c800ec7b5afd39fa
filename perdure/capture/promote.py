"""What was said the same way in a second repository: offered as the user's own, which a person approves or rejects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perdure.capture.decide import Action
from perdure.capture.writing import Prepared, Written
from perdure.store.fact import Fact
from perdure.store.scope import OWNER, OWNERS, Audience, Scope
from perdure.store.search import View, by_hash, lookup
from perdure.store.sql import Connection
from perdure.store.transaction import Transaction
from perdure.text.normalise import fingerprint, fold


def offer(tx: Transaction, home: Scope, prepared: Sequence[Prepared], written: Sequence[Written]) -> None:
    """Keep for review in `home`, once, what a turn has added to a repository and another repository has, too.

    Of the owner alone: in a named user's words it would tell what is said in repositories that are not theirs.
    """
    everywhere = View(OWNERS, tx.now, approved_only=True)
    here = View(Audience(frozenset({home}), home), tx.now, everything=True)
    for ready, done in zip(prepared, written, strict=True):
        added, place = done.fact, (done.fact.scope, done.fact.scope_target)
        if home.user not in (None, OWNER) or added.scope != "project" or done.decision.action is Action.NOOP:
            continue
        twins = {(each.scope, each.scope_target) for each in _same(tx.connection, added, everywhere)} - {place}
        if not any(kind == "project" for kind, _ in twins) or _same(tx.connection, added, here):
            continue
        told = {"review": "said in another repository too; if approved, it applies to all of them"}
        yours = replace(ready.fact, scope=home.kind, scope_target=home.target, review_state="pending", metadata=told)
        tx.add(yours, ready.vector)


def _same(connection: Connection, fact: Fact, view: View) -> list[Fact]:
    """Return what says the same as a fact: in the same words, or of the same slot."""
    found = by_hash(connection, fingerprint(fact.text), view)
    if fact.entity and fact.key and fact.value:
        filled = lookup(connection, fact.entity, fact.key, view)
        found += [each for each in filled if each.value and fold(each.value) == fold(fact.value)]
    return found
