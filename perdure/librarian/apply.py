"""A batch of operations takes effect: all of it or nothing, once, and one undo takes it back."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from perdure.capture.decide import Action, Decision
from perdure.capture.describe import CategoryPatterns, describe, importance
from perdure.capture.describe import is_own as is_users
from perdure.capture.lifetimes import UNTIL_ITS_DAY, timed
from perdure.capture.statements import Statement, cue_of
from perdure.capture.writing import Prepared, Writer
from perdure.errors import InputError, ModelError
from perdure.hooks.types import Channel
from perdure.librarian.operations import File, Lesson, Merge, Noted, Operation, Remember, Replace, Triggers, Withdraw
from perdure.librarian.proof import Proven, Refused, aims, prove, rewords
from perdure.librarian.request import Batch, Leg, Request
from perdure.ranking.decay import DEFAULT_CLASS
from perdure.store.fact import CATEGORIES, Fact
from perdure.store.lifecycle import PENDING, Wish, ask
from perdure.store.lifecycle import Request as Wanted
from perdure.store.llm import drop_turns
from perdure.store.scope import Scope
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction
from perdure.store.triggers import MODEL, of
from perdure.text.normalise import fingerprint, fold
from perdure.text.timestamps import day_of, midnight
from perdure.text.when import days_ahead, periods

METHOD: Final = "librarian"
"""How its notes were extracted, and what stands in the journal as the reason."""
AT_ONCE: Final = 3
"""Memories of a batch that are withdrawn as not the user's; of more each waits for review."""
_AHEAD: Final = 730
"""Days that are looked at for what a clause means by a day."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an answer."""

    done: Counter[str] = field(default_factory=Counter)  # operations that took effect, by kind
    refused: tuple[Refused, ...] = ()
    batch: str = ""  # the change that takes it all back; empty: there is none
    notes: tuple[tuple[Operation, str], ...] = ()  # what was kept, each with the memory's text

    def __str__(self) -> str:
        """Return it in a line."""
        told = ", ".join(f"{name} {count}" for name, count in sorted(self.done.items())) or "nothing"
        return told + (f"; refused {len(self.refused)}" if self.refused else "")


@dataclass(frozen=True)
class Applier:
    """Lets operations take effect in a store."""

    store: Store
    writer: Callable[[], Writer]
    categories: Callable[[], CategoryPatterns] = lambda: ()
    leg: Callable[[], Leg | None] = lambda: None  # as a `Reader` has it

    def apply(
        self,
        request: Request,
        operations: Sequence[Operation],
        also: Callable[[Transaction, Outcome], object] = lambda tx, outcome: None,
    ) -> Outcome:
        """Prove the operations, and let those take effect that are, if all turns of the batch still wait.

        They wait no more then: an answer takes effect once. `also` is done in the same transaction.
        """
        found = [each for operation in operations if (each := prove(operation, request, self._near)) is not None]
        refused = [each for each in found if isinstance(each, Refused)]
        proven = [_placed(each, request) for each in found if isinstance(each, Proven)]
        prepared = [(each, self._prepared(each, request.batch)) for each in proven]
        # What is not the user's comes last: a note has taken the place of most of it by then.
        parts = [[each for each in prepared if _not_users(each[0]) is last] for last in (False, True)]
        done: Counter[str] = Counter()
        notes: list[tuple[Operation, str]] = []
        with self.store.write(_author(request.batch)) as tx:
            if not drop_turns(tx.connection, request.batch.names):
                return Outcome()
            taken: set[str] = set()
            for part in parts:
                doubted = {fact.id for each, _ in part if _not_users(each) for fact in _meant(each)}
                hold = len(doubted - taken) > AT_ONCE
                for each, ready in part:
                    if (wrong := self._gone(tx, each, taken)) is not None:
                        refused.append(Refused(each.operation, wrong))
                        continue
                    if each.text:
                        kind, kept = self._write(tx, each, ready[0], taken)
                        notes.append((each.operation, kept.text))
                    else:
                        try:
                            kind = self._do(tx, each, hold=hold)
                        except InputError:
                            refused.append(Refused(each.operation, "too much waits for review already"))
                            continue
                    done[kind] += 1
                    gone = each.rest and each.target is not None and not _there(tx, each.target)
                    if gone and not tx.is_purged(each.rest):
                        tx.add(ready[-1].fact, ready[-1].vector, METHOD)
            outcome = Outcome(done, tuple(refused), tx.batch if done else "", tuple(notes))
            also(tx, outcome)
        return outcome

    def _near(self, one: str, other: str) -> float:
        leg = self.leg()
        try:
            first, second = leg[0].embed([one, other]) if leg else (None, None)
        except ModelError:
            return 0.0
        return 0.0 if first is None or second is None else float(first @ second)

    def _prepared(self, proven: Proven, batch: Batch) -> list[Prepared]:
        """Return the note of an operation, if it has one, and what stays of its target, if anything does."""
        note = [self._fact(proven, batch)] if proven.text else []
        rest = [_part(proven.target, proven.rest)] if proven.target is not None and proven.rest else []
        return self.writer().prepare([*note, *rest], self.store.clock.now())

    def _fact(self, proven: Proven, batch: Batch) -> Fact:
        operation, text, at = proven.operation, proven.text, proven.turn.at
        statement = Statement(text, cue_of(text) or METHOD)
        found = describe(statement, self.categories())
        category, slot = found.category, found.slot and (found.slot.entity, found.slot.key, found.slot.value)
        if isinstance(operation, Remember | Replace):
            known = {*CATEGORIES, *(name for name, _ in self.categories())} - {"other"}
            category = operation.category if operation.category in known else category
            if operation.slot is not None and fold(operation.slot[2]) in fold(text):
                slot = operation.slot
        elif isinstance(operation, Merge) and proven.target is not None:
            category = proven.target.category
        scopes = [Scope.parse(each) for each in batch.scopes]
        scope = scopes[-1] if len(scopes) > 1 and not is_users(text, found.slot) else scopes[0]
        old = proven.target or next(iter(proven.twins), None)
        if old is not None:
            scope = Scope(old.scope, old.scope_target)
        lesson = isinstance(operation, Lesson)
        fact = Fact(
            text=text, why=found.why, category=category, importance=importance(category, statement),
            entity=slot[0] if slot else None, key=slot[1] if slot else None, value=slot[2] if slot else None,
            source=METHOD, channel=Channel.ASSISTANT if lesson else Channel.USER,
            # What a tool brought anybody may have written.
            review_state=PENDING if lesson else "approved", metadata={"review": "a lesson"} if lesson else {},
            source_date=at, last_confirmed_at=at, scope=scope.kind, scope_target=scope.target,
            provenance_session=batch.session, extraction_method=METHOD,
        )  # fmt: skip
        fact = timed(fact, at, self.store.zone)
        if isinstance(operation, Remember | Replace):
            fact = _until(fact, operation, at, self.store.zone)
        return fact

    def _gone(self, tx: Transaction, proven: Proven, taken: set[str]) -> str | None:
        """Return why an operation can do nothing any more: its memory has changed, or another operation did it."""
        if not taken.isdisjoint(fact.id for fact in _meant(proven)):
            return "another operation has changed the memory"
        if not all(_there(tx, fact) for fact in _meant(proven)):
            return "the memory has changed since"
        if isinstance(proven.operation, Replace | Merge | Withdraw):
            taken |= {fact.id for fact in _meant(proven)}
        return None

    def _do(self, tx: Transaction, proven: Proven, *, hold: bool) -> str:
        operation, target = proven.operation, proven.target
        assert target is not None  # noqa: S101 - what keeps nothing is about a memory
        if isinstance(operation, Withdraw) and operation.why == "over":
            tx.change(target.id, "retract", {"superseded_at": tx.now, "valid_until": tx.now}, reason=METHOD)
        elif isinstance(operation, Withdraw) and hold:
            note = Fact(
                text=f"Not the user's own words: {target.text}", channel=Channel.ASSISTANT, source=METHOD,
                scope=target.scope, scope_target=target.scope_target, extraction_method=METHOD,
            )  # fmt: skip
            ask(tx, note, None, Wanted(Wish.FORGET, target.id))
            return "waits"
        elif isinstance(operation, Withdraw):
            tx.change(target.id, "reject", {"review_state": "rejected"}, reason=METHOD)
        elif isinstance(operation, File):
            if operation.category in {*CATEGORIES, *(name for name, _ in self.categories())}:
                tx.change(target.id, "classify", {"category": operation.category}, reason=METHOD)
        elif isinstance(operation, Triggers):
            _aim(tx, target.id, operation.triggers, f"{operation.quote}\n{target.text}")
        return operation.op

    def _write(self, tx: Transaction, proven: Proven, ready: Prepared, taken: set[str]) -> tuple[str, Fact]:
        operation, target = proven.operation, proven.target
        if isinstance(operation, Lesson):
            known = tx.is_purged(ready.fact.text)
            return operation.op, ready.fact if known else tx.add(ready.fact, ready.vector, METHOD)
        twins = [fact for fact in proven.twins if fact.id not in taken and _there(tx, fact)]
        target = target or (twins.pop(0) if twins else None)
        taken |= {fact.id for fact in (target, *twins) if fact is not None}
        if target is not None and fingerprint(ready.fact.text) == target.normalized_hash:
            if target.category != ready.fact.category:
                tx.change(target.id, "classify", {"category": ready.fact.category}, reason=METHOD)
            for twin in twins:
                tx.supersede(twin.id, target.id, METHOD)
            _aimed(tx, target.id, proven)
            return "known", target
        if target is not None:
            beside = tuple(fact.id for fact in (*proven.beside, *twins))
            ready = replace(ready, verdict=Decision(Action.UPDATE, target.id, METHOD, twins=beside))
        written = self.writer().write(tx, ready)
        if written.fact.id:
            _aimed(tx, written.fact.id, proven)
        known = written.decision.action is Action.NOOP
        return "known" if known else operation.op if target is not None else "remember", written.fact


def _aimed(tx: Transaction, fact_id: str, proven: Proven) -> None:
    operation = proven.operation
    if isinstance(operation, Remember | Replace) and operation.triggers and not of(tx.connection, [fact_id]):
        _aim(tx, fact_id, operation.triggers, f"{proven.turn.said}\n{proven.text}")


def _not_users(proven: Proven) -> bool:
    return isinstance(proven.operation, Withdraw) and proven.operation.why == "not_users"


def _placed(proven: Proven, request: Request) -> Proven:
    """Return a note with the memories that capture has made of the same words, whose place it takes."""
    if not isinstance(proven.operation, Remember | Replace):
        return proven
    captured = [fact for name, fact in request.memories.items() if name in request.new and fact != proven.target]
    same = [fact for fact in captured if fact.source_date == proven.turn.at and rewords(fact, proven.text)]
    return replace(proven, twins=tuple(same))


def _there(tx: Transaction, fact: Fact) -> bool:
    """Return whether a memory is still what it was shown as."""
    rows = run(tx.connection, "SELECT 1 FROM facts WHERE id = ?", (fact.id,))
    now = tx.fact(fact.id) if rows else None
    return now is not None and not now.superseded_at and not now.forgotten_at and now.review_state == "approved"


def _part(fact: Fact, text: str) -> Fact:
    """Return a memory of which only a part is left."""
    return replace(
        fact, id="", text=text, summary=None, entity=None, key=None, value=None, created_at=0.0,
        source_date=fact.effective_date, valid_from=None, valid_until=None, supersedes_id=None, embedding_model=None,
        extraction_method=METHOD,
    )  # fmt: skip


def _meant(proven: Proven) -> list[Fact]:
    """Return the memories that an operation is about."""
    return [proven.target, *proven.beside] if proven.target is not None else []


def _aim(tx: Transaction, fact_id: str, triggers: Iterable[str], known: str) -> None:
    try:
        tx.put_triggers(fact_id, aims(triggers, known), MODEL)
    except InputError:
        return  # one is too long, or there are too many: the memory does without


def _until(fact: Fact, operation: Noted, at: float, zone: dt.tzinfo | None) -> Fact:
    """Let a note end with the day that is named, if its words name it and tell no end themselves."""
    if operation.until is None or fact.decay_class != DEFAULT_CLASS:
        return fact
    said = day_of(at, zone)
    named = {period.last for period in periods(fact.text, said)} | set(days_ahead(fact.text, said, _AHEAD))
    if operation.until < said or operation.until not in named or operation.until == dt.date.max:
        return fact
    ends = midnight(operation.until + dt.timedelta(days=1), zone)
    return replace(fact, decay_class=UNTIL_ITS_DAY, decay_freeze_until=ends)


def _author(batch: Batch) -> Author:
    return Author(Channel.USER, batch.said_in, batch.session)
