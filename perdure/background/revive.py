"""Brings back what earlier rules hid or shortened: done once for a store that was filled under them, and by hand.

They gave nearly every memory that nobody had named a class for a lifetime of 90 days, let what was uncertain expire,
and replaced memories on a guess. What they did stands in the journal, so it is told apart from what somebody did.
Nothing that was forgotten or purged comes back, and nothing that a person, an import or a language model decided.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.background.earlier_rules import GUESSES, TOO_UNCERTAIN, class_by_words
from perdure.capture.decide import Action, compare, own_view
from perdure.capture.lifetimes import lifetime
from perdure.errors import PerdureError
from perdure.hooks.types import Channel
from perdure.maintenance.backup import backups
from perdure.ranking.decay import expiry
from perdure.store.access import opened
from perdure.store.earlier import REVIVED, boundary, is_due
from perdure.store.fact import Fact
from perdure.store.search import by_hash
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction

ACTION = "revive"
BATCH = 20
"""Facts in a transaction: others write in between."""
LONGEST = 1_000
"""Versions of one memory that are followed."""
_AUTHOR = Author(Channel.UNKNOWN, "timers")
_BATCH = "reviving"
_CANDIDATES = (
    "SELECT id FROM facts WHERE forgotten_at IS NULL AND review_state <> 'rejected'"
    " AND (expires_at IS NOT NULL OR superseded_at IS NOT NULL)"
    " AND EXISTS (SELECT 1 FROM journal j WHERE j.fact_id = facts.id AND j.action = 'add' AND j.seq <= ?) ORDER BY seq"
)


@dataclass(frozen=True, slots=True)
class Returned:
    """A memory that had been replaced or withdrawn on a guess, and waits for a review.

    Attributes:
        id: the memory.
        text: what it says.
        beside: id of the memory that had taken its place; None: it was withdrawn, or that one is gone.
    """

    id: str
    text: str
    beside: str | None


@dataclass(frozen=True, slots=True)
class Revived:
    """What was brought back, or would be.

    Attributes:
        lengthened: ids of memories whose end nobody had given: they are kept for good, or as long as their words say.
        expired: of these, the ids of those that had expired.
        review: memories that had been replaced or withdrawn; nobody sees them before they are approved.
        removed: how many memories were removed for good when they had expired.
        kept_in: backups and exports that hold some of the removed, newest first, and how many; each is counted once.
        batch: names the change, for `undo`; None: nothing was changed.
    """

    lengthened: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
    review: tuple[Returned, ...] = ()
    removed: int = 0
    kept_in: Mapping[str, int] | None = None
    batch: str | None = None

    def line(self) -> str:
        """Return what was done, in one line."""
        counts = {
            "expired memories came back": len(self.expired),
            "more are kept for longer": len(self.lengthened) - len(self.expired),
            "replaced ones wait for review": len(self.review),
            "removed ones are in backups": sum((self.kept_in or {}).values()),
        }
        return ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing was hidden"


def revive(
    store: Store, author: Author = _AUTHOR, *, dry_run: bool = False, pause: Callable[[], None] = lambda: None
) -> Revived:
    """Bring back what earlier rules hid. Killed in between, it goes on when it is called again.

    Args:
        store: the truth.
        author: who stands in the journal.
        dry_run: only tell.
        pause: called between transactions.

    Raises:
        StoreError: it could not be written; what was done before is kept.
    """
    last = boundary(store)
    batch = store.meta(_BATCH) or uuid.uuid4().hex
    if not dry_run and last:
        store.note(_BATCH, batch)
    with store.database.read() as connection:
        ids = [row[0] for row in run(connection, _CANDIDATES, (last,))]
        removed = [row[0] for row in run(connection, _REMOVED)]
    lengthened: list[str] = []
    expired: list[str] = []
    review: list[Returned] = []
    for first in range(0, len(ids), BATCH):
        pause()
        with store.write(author, keep=not dry_run) as tx:
            tx.batch = batch
            reviver = _Reviver(store, tx, last)
            for fact_id in ids[first : first + BATCH]:
                reviver.look_at(fact_id)
        lengthened += reviver.lengthened
        expired += reviver.expired
        review += reviver.review
    if not dry_run:
        store.note(REVIVED, str(store.clock.now()))
        store.note(_BATCH, None)
    done = bool(lengthened or review) and not dry_run
    found = _kept_in(store.folder, removed)
    return Revived(tuple(lengthened), tuple(expired), tuple(review), len(removed), found, batch if done else None)


def revive_if_due(store: Store, pause: Callable[[], None] = lambda: None) -> None:
    """Bring back what earlier rules hid, unless that was done.

    Raises:
        StoreError: it could not be written; what was done before is kept.
    """
    if is_due(store):
        revive(store, pause=pause)


def would_replace(old: Fact, new: Fact) -> bool:
    """Return whether the rules of today would take the place of the old fact, too, or find that both say the same."""
    found = compare(old, new)
    return found.action is not Action.ADD and not found.part


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row of the journal."""

    seq: int
    action: str
    other_id: str | None
    host: str
    detail: Mapping[str, Any]


class _Reviver:
    """Looks at facts one after another, within a transaction."""

    def __init__(self, store: Store, tx: Transaction, last: int) -> None:
        self._store = store
        self._tx = tx
        self._last = last
        self.lengthened: list[str] = []
        self.expired: list[str] = []
        self.review: list[Returned] = []

    def look_at(self, fact_id: str) -> None:
        tx = self._tx
        if not run(tx.connection, "SELECT 1 FROM facts WHERE id = ? AND forgotten_at IS NULL", (fact_id,)):
            return  # somebody was quicker
        fact, entries = tx.fact(fact_id), _entries(tx.connection, fact_id)
        values = self._lengthened(fact, entries)
        if fact.superseded_at is not None:
            self._replaced(fact, entries, values)
        elif values:
            over = fact.expires_at is not None and fact.expires_at <= tx.now
            tx.change(fact_id, ACTION, values, reason="its end was nobody's word")
            self.lengthened.append(fact_id)
            if over:
                self.expired.append(fact_id)

    def _lengthened(self, fact: Fact, entries: Sequence[_Entry]) -> dict[str, Any]:
        """Return the values with which a fact lives as long as it would today; none if that is not longer."""
        if fact.expires_at is None:
            return {}
        expires: float | None = fact.expires_at
        values: dict[str, Any] = {}
        faded = next((each for each in reversed(entries) if each.action == "expire"), None)
        if faded is not None and faded.detail.get("reason") == TOO_UNCERTAIN:
            before = faded.detail["before"]
            if fact.expires_at == faded.detail["after"]["expires_at"]:
                expires, values = before["expires_at"], {"expires_at": before["expires_at"]}
        if not self._named(fact, entries):
            own = lifetime(fact.text, fact.effective_date, fact.key)
            end = expiry(own.decay_class, fact.last_confirmed_at or fact.created_at, own.freeze_until)
            if expires is not None and (end is None or end > expires):
                expires = end
                freeze = own.freeze_until
                values = {"decay_class": own.decay_class, "expires_at": end, "decay_freeze_until": freeze}
        if not values or (expires is not None and expires <= self._tx.now):
            return {}
        return values | self._valid_again(fact)

    def _valid_again(self, fact: Fact) -> dict[str, Any]:
        ended = fact.valid_until is not None and fact.expires_at is not None and fact.valid_until >= fact.expires_at
        return {"valid_until": None} if ended and fact.superseded_at is None else {}

    def _named(self, fact: Fact, entries: Sequence[_Entry]) -> bool:
        """Return whether somebody gave a fact its class; where that cannot be told, nobody did: so nothing is lost."""
        captured = (fact.extraction_method or "").startswith("rule:")
        for each in entries:
            if each.action == "update" and "decay_class" in each.detail.get("after", {}):
                return True
            if each.action == "add" and each.host == "import" and not captured:
                return True
        if fact.category == "checkpoint" or fact.extraction_method == "reflected":
            return True
        if fact.decay_class == "stable" and fact.extraction_method in (None, "rescued", "consolidated"):
            return False
        # An update of the words kept the class that the former ones had.
        texts = [fact.text, *(former.text for former in self._chain(fact, "supersedes_id"))]
        return all(fact.decay_class != class_by_words(text) for text in texts)

    def _replaced(self, fact: Fact, entries: Sequence[_Entry], values: Mapping[str, Any]) -> None:
        went = next((each for each in reversed(entries) if each.action in ("supersede", "retract")), None)
        if went is None or went.seq > self._last or went.detail.get("reason") not in GUESSES:
            return
        if went.detail.get("after", {}).get("superseded_at") != fact.superseded_at:
            return
        end = values.get("expires_at", fact.expires_at)
        newer = list(self._chain(fact, "superseded_by"))
        if (end is not None and end <= self._tx.now) or any(would_replace(fact, each) for each in newer):
            return
        tx = self._tx
        if by_hash(tx.connection, fact.normalized_hash, own_view(fact, tx.now)):
            return  # it was said again since
        # The last of them is what holds now.
        beside = next((each.id for each in reversed(newer) if each.forgotten_at is None), None)
        back = {"superseded_at": None, "superseded_by": None, "valid_until": None, "review_state": "pending"}
        tx.change(fact.id, ACTION, {**values, **back}, other_id=beside, reason="replaced on a guess")
        if newer and newer[0].supersedes_id == fact.id:
            tx.change(newer[0].id, ACTION, {"supersedes_id": None}, other_id=fact.id)
        self.review.append(Returned(fact.id, fact.text, beside))

    def _chain(self, fact: Fact, column: str) -> Iterator[Fact]:
        """Yield the versions of a fact one way along its chain, the nearest first."""
        seen = {fact.id}
        while len(seen) < LONGEST:
            next_id = getattr(fact, column)
            rows = run(self._tx.connection, "SELECT 1 FROM facts WHERE id = ?", (next_id,)) if next_id else []
            if not rows or next_id in seen:
                return
            seen.add(next_id)
            fact = self._tx.fact(next_id)
            yield fact


_REMOVED = (
    "SELECT DISTINCT fact_id FROM journal WHERE action = 'prune' AND fact_id NOT IN (SELECT id FROM facts)"
    " AND fact_id NOT IN (SELECT fact_id FROM journal WHERE action = 'purge')"
)


def _entries(connection: Connection, fact_id: str) -> list[_Entry]:
    rows = run(
        connection, "SELECT seq, action, other_id, host, detail FROM journal WHERE fact_id = ? ORDER BY seq", (fact_id,)
    )
    return [_Entry(seq, action, other_id, host, json.loads(detail)) for seq, action, other_id, host, detail in rows]


def _kept_in(folder: Path, removed: Sequence[str]) -> dict[str, int]:
    left = set(removed)
    found: dict[str, int] = {}
    for file in backups(folder) if left else ():
        here = left & _ids_in(file.path)
        if here:
            found[str(file.path)] = len(here)
            left -= here
    return found


def _ids_in(path: Path) -> set[str]:
    """Return the ids of the facts in a backup or an export; none of one that cannot be read."""
    try:
        if path.suffix == ".db":
            with opened(path, looks=True) as connection:
                return {row[0] for row in run(connection, "SELECT id FROM facts")}
        with path.open(encoding="utf-8") as lines:
            values = map(json.loads, lines)
            return {str(value["id"]) for value in values if value.get("type") == "fact"}
    except (PerdureError, OSError, ValueError, KeyError, AttributeError):
        return set()
