"""Memories to clean up, each with evidence: reported, and forgotten only on request; `undo` restores them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from perdure.consolidation.suspicions import CHECKS, KINDS, Desk, Suspect, duplicates
from perdure.engine.engine import Engine
from perdure.store import lifecycle
from perdure.store.listing import Progress, every
from perdure.store.scope import Audience, Scope
from perdure.store.search import View
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Attributes:
        facts: number of memories checked.
        suspects: memories that may be cleaned up, in storage order.
        fixed: number of suspects that were forgotten.
        batch: pass this to `undo` to restore all of them; None if nothing was changed.
    """

    facts: int
    suspects: tuple[Suspect, ...]
    fixed: int = 0
    batch: str | None = None

    def counts(self) -> Mapping[str, int]:
        """Return the number of suspects of each kind."""
        found = [each.kind for each in self.suspects]
        return {kind: found.count(kind) for kind in KINDS if kind in found}


def audit(
    engine: Engine, audience: Audience, author: Author, *, fix: bool | Collection[str], progress: Progress
) -> Audit:
    """Check every memory that an audience may read, and forget the chosen suspects that it may change.

    Args:
        engine: of the store.
        audience: who asks.
        author: for the journal.
        fix: forget all suspects, or those with these ids.
        progress: see `Progress`.

    Raises:
        StoreError: it could not be forgotten; nothing was changed.
    """
    desk = Desk(engine.store, View(audience, engine.clock.now()))
    suspects: list[Suspect] = []
    looked = 0
    for fact in every(engine.store, desk.view, progress):
        engine.gate.pause()
        looked += 1
        found = next((made for check in CHECKS if (made := check(desk, fact)) is not None), None)
        if found is not None:
            suspects.append(found)
        else:
            desk.remember(fact)
    suspects += duplicates(desk)
    chosen = [each for each in suspects if fix is True or (fix and each.id in fix)]
    forgotten, batch = _forget(engine.store, audience, author, chosen) if chosen else (0, None)
    return Audit(looked, tuple(suspects), forgotten, batch)


def _forget(store: Store, audience: Audience, author: Author, chosen: Collection[Suspect]) -> tuple[int, str | None]:
    forgotten = 0
    with store.write(author) as tx:
        for suspect in chosen:
            fact = tx.fact(suspect.id)
            may = audience.may_write(Scope(fact.scope, fact.scope_target)) and _lives(tx, suspect.id)
            if may and (suspect.other_id is None or _lives(tx, suspect.other_id)):
                lifecycle.forget(tx, suspect.id, f"audit: {suspect.kind}")
                forgotten += 1
        return forgotten, tx.batch if forgotten else None


def _lives(tx: Transaction, fact_id: str) -> bool:
    fact = tx.fact(fact_id)
    return fact.forgotten_at is None and fact.superseded_at is None
