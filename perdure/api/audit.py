"""Which memories do more harm than good: told with evidence, mended only softly, so that `undo` takes it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perdure.consolidation.suspicions import NONE, SHARED, SINGLE, Desk, Suspect
from perdure.engine.engine import Engine
from perdure.engine.settings import Settings
from perdure.store import lifecycle, links
from perdure.store.listing import Progress, every
from perdure.store.scope import Audience, Scope
from perdure.store.search import View
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Attributes:
        facts: so many were looked at.
        suspects: what is wrong, in the order of the memories.
        fixed: so many of them were mended.
        batch: what `undo` takes to bring all of it back; None if nothing was changed.
    """

    facts: int
    suspects: tuple[Suspect, ...]
    fixed: int = 0
    batch: str | None = None

    def counts(self) -> Mapping[str, int]:
        """Return how many there are of each kind."""
        kinds = sorted({each.kind for each in self.suspects})
        return {kind: sum(each.kind == kind for each in self.suspects) for kind in kinds}


def audit(engine: Engine, audience: Audience, author: Author, *, fix: bool, progress: Progress) -> Audit:
    """Look at every memory that an audience may read, and mend those that it may write.

    Args:
        engine: of the store.
        audience: who asks.
        author: for the journal.
        fix: mend what can be mended: forget, supersede, link. What is pinned is only told.
        progress: see `Progress`.

    Raises:
        StoreError: it could not be mended; nothing was changed.
    """
    view = View(audience, engine.clock.now())
    desk = Desk(engine.store, engine.rules, view.now, engine.settings.compare.vector or Settings().compare.vector)
    suspects: dict[str, Suspect] = {}
    looked = 0
    for fact in every(engine.store, view, progress):
        engine.gate.pause()
        looked += 1
        found = next((made for check in SINGLE if (made := check(desk, fact)) is not None), None)
        if found is not None:
            suspects[fact.id] = found
        else:
            desk.remember(fact)
    for compare in SHARED:
        for found in compare(desk):
            suspects.setdefault(found.id, found)
    chosen = tuple(suspects.values())
    if not fix:
        return Audit(looked, chosen)
    return _mended(engine.store, audience, author, Audit(looked, chosen))


def _mended(store: Store, audience: Audience, author: Author, found: Audit) -> Audit:
    wanted = [each for each in found.suspects if each.remedy != NONE]
    if not wanted:
        return found
    fixed = 0
    with store.write(author) as tx:
        for suspect in wanted:
            if _writable(tx, audience, suspect.id):
                fixed += _mend(tx, suspect)
        return Audit(found.facts, found.suspects, fixed, tx.batch if fixed else None)


def _writable(tx: Transaction, audience: Audience, fact_id: str) -> bool:
    fact = tx.fact(fact_id)
    may = audience.may_write(Scope(fact.scope, fact.scope_target))
    return may and fact.forgotten_at is None and fact.superseded_at is None


def _mend(tx: Transaction, suspect: Suspect) -> bool:
    reason = f"audit: {suspect.kind}"
    if suspect.remedy == "forget":
        lifecycle.forget(tx, suspect.id, reason)
    elif suspect.other_id is None or tx.fact(suspect.other_id).superseded_at is not None:
        return False
    elif suspect.remedy == "supersede":
        tx.supersede(suspect.id, suspect.other_id, reason)
    else:
        links.link(tx, suspect.other_id, suspect.id, "CONTRADICTS")
    return True
