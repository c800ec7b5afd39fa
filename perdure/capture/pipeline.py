"""The steps of capture in their order: what is behind an inbox entry becomes facts, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perdure.capture import answers
from perdure.capture.attribution import is_own
from perdure.capture.compare import Action
from perdure.capture.dates import dated
from perdure.capture.decide import Decision, own_view
from perdure.capture.describe import CategoryPatterns, describe, importance
from perdure.capture.guards import Guard, Quota, held
from perdure.capture.lifetimes import lifetime
from perdure.capture.rules import guarded
from perdure.capture.statements import CaptureRule, Choice, Statement, statements
from perdure.capture.writing import Prepared, Writer, Written
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.inbox_lines import PROJECT
from perdure.store.scope import Scope
from perdure.store.search import by_hash, by_ids
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction
from perdure.store.trust import ON_PURPOSE, SUPERSEDES, strength
from perdure.text.echo import Trace, echoes, quotes, same, trace
from perdure.text.normalise import fingerprint

Shown = Mapping[str, Sequence[Trace]]
"""What a conversation was shown: traces by id of fact or passage."""
_log = logging.getLogger("perdure.capture")


def _nothing(_: str) -> Shown:
    return {}


class Capturer:
    """Turns inbox entries into facts."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        rules: Callable[[], tuple[CaptureRule, ...]],
        quota: Quota = Quota(),  # noqa: B008 - frozen
        shown: Callable[[str], Shown] = _nothing,
        categories: CategoryPatterns = (),
        choice: Choice | None = None,
    ) -> None:
        """Capture into `store`.

        Args:
            store: where facts go.
            writer: compares and writes them.
            rules: returns the capture rules of extensions.
            quota: how many facts are kept before the rest waits for review.
            shown: returns what a conversation was shown, by the name of its cursor.
            categories: configured ones.
            choice: decides which sentences of the user are kept; None: the rules do.
        """
        self._choice = choice
        self._categories = categories
        self._store = store
        self._writer = writer
        self._rules = rules
        self._quota = quota
        self._shown = shown

    def process(self, entry: Mapping[str, Any], pause: Callable[[], None] = lambda: None) -> list[Written]:
        """Deal with an entry, once: a repeated call finds it done.

        Args:
            entry: as the inbox holds it.
            pause: called between steps, so that a turn that begins meanwhile need not wait.

        Raises:
            StoreError: nothing of the entry was kept; repeat it later.
        """
        if self._store.is_finished(entry["id"]):
            return []
        users, assistants = answers.split(entry["messages"])
        shown = self._shown(entry["cursor"])
        prepared = self._writer.judged(
            self._prepared(self._drafts(users, entry, self._choice), pause), self._store.clock.now()
        )
        if assistants:
            before = answers.heard(users, shown, self._store.key)
            self._note(answers.candidates(self._drafts(assistants, entry)), before, entry, pause)
        with self._store.write(_author(Channel.USER, entry)) as tx:
            # Many entries may be one change, as those of an import are.
            if tx.is_finished(entry["id"]):
                return []  # by another machine, meanwhile
            tx.batch = entry.get("batch") or tx.batch
            scope, times = Scope.parse(entry["scope"]), [message.get("at") or entry["at"] for message in users]
            guard = Guard(tx.connection, self._quota, scope, entry.get("session"), times)
            written = [self._keep(tx, each, shown, guard) for each in prepared]
            tx.move_cursor(entry["cursor"], entry["tail"])
            tx.finish_entry(entry["id"])
        waiting = sum(each.fact.review_state == "pending" for each in written)
        if waiting:
            _log.warning("%d memories of one turn wait for review: %s; see perdure review", waiting, guard.reason())
        return written

    def _drafts(
        self, messages: Sequence[Mapping[str, Any]], entry: Mapping[str, Any], choice: Choice | None = None
    ) -> list[Fact]:
        rules = tuple(guarded(rule) for rule in self._rules())
        return [
            _draft(each, message, entry, self._categories)
            for message in messages
            for each in statements(message["text"], rules, choice, message.get("before", ""))
        ]

    def _prepared(self, drafts: Sequence[Fact], pause: Callable[[], None]) -> list[Prepared]:
        prepared: list[Prepared] = []
        for draft in drafts:
            pause()
            prepared += self._writer.prepare([draft], self._store.clock.now())
        return prepared

    def _note(
        self, drafts: Iterable[Fact], before: list[Trace], entry: Mapping[str, Any], pause: Callable[[], None]
    ) -> None:
        # Before the entry is finished: done again after a kill, it finds what it kept and adds nothing.
        prepared = self._prepared(list(drafts), pause)
        if prepared:
            with self._store.write(_author(Channel.ASSISTANT, entry)) as tx:
                for each in prepared:
                    answers.note(tx, each, before, self._store.key)

    def _keep(self, tx: Transaction, prepared: Prepared, shown: Shown, guard: Guard) -> Written:
        repeats = _repeated(tx, prepared.fact, shown, self._store.key) if shown else None
        if repeats is not None:
            if repeats.target is None:
                return Written(prepared.fact, repeats)
            prepared = replace(prepared, verdict=repeats)
        reason = guard.reason()
        if reason is not None:
            return _held(tx, prepared, reason)
        written = confirmed(tx, self._writer.write(tx, prepared), prepared.fact.channel)
        if written.decision.action is not Action.NOOP:
            guard.count()
        return written


def confirmed(tx: Transaction, written: Written, channel: Channel) -> Written:
    """Approve what was waiting for review, now that somebody whose word counts has said the same.

    What was rejected comes back only when it is stored on purpose.

    Args:
        tx: the transaction.
        written: what became of the statement.
        channel: by which way it came in.
    """
    states = ("pending", "rejected") if channel in ON_PURPOSE else ("pending",)
    fact, decision = written.fact, written.decision
    if (
        decision.action is not Action.NOOP
        or channel not in SUPERSEDES
        or fact.review_state not in states
        or not fact.id
    ):
        return written
    values = {"review_state": "approved", "confidence": 1.0}
    return Written(tx.change(fact.id, "approve", values, reason="said by the user"), decision)


def _repeated(tx: Transaction, fact: Fact, shown: Shown, key: bytes) -> Decision | None:
    """Return what becomes of a statement that repeats what its conversation was shown; None: it says something new."""
    said = trace(fact.text, key)
    if quotes(fact.text) and any(echoes(said, each) for seen in shown.values() for each in seen):
        return Decision(Action.NOOP, None, "quotes what was shown")
    ids = [shown_id for shown_id, seen in shown.items() if any(same(said, each) for each in seen)]
    known = by_ids(tx.connection, ids, own_view(fact, tx.now)).values() if ids else ()
    strongest = max(known, key=lambda old: strength(old.channel), default=None)
    return None if strongest is None else Decision(Action.NOOP, strongest.id, "repeats what was shown")


def _held(tx: Transaction, prepared: Prepared, reason: str) -> Written:
    """Keep a fact for review: beside all others, so that it takes nobody's place before somebody approves it."""
    fact, verdict = prepared.fact, prepared.verdict
    if tx.is_purged(fact.text):
        return Written(fact, Decision(Action.NOOP, None, "purged before"))
    view = own_view(fact, tx.now)
    meant = verdict.target if verdict is not None and verdict.action is Action.NOOP else None
    known = [*by_ids(tx.connection, [meant] if meant else [], view).values()]
    for twin in [*known, *by_hash(tx.connection, fingerprint(fact.text), view)]:
        if strength(twin.channel) >= strength(fact.channel):
            return Written(tx.reinforce(twin.id), Decision(Action.NOOP, twin.id, "said before"))
    added = tx.add(replace(fact, **held(reason)), prepared.vector)
    return Written(added, Decision(Action.ADD, None, reason))


def _author(channel: Channel, entry: Mapping[str, Any]) -> Author:
    return Author(channel, entry.get("host", "python"), entry.get("session"))


def _draft(
    statement: Statement, message: Mapping[str, Any], entry: Mapping[str, Any], categories: CategoryPatterns
) -> Fact:
    description = describe(statement, categories)
    slot = description.slot
    scope = Scope.parse(entry["scope"] if is_own(statement.text, slot) else entry.get(PROJECT, entry["scope"]))
    said_at = message.get("at") or entry["at"]
    lives = lifetime(statement.text, said_at, slot.key if slot else None)
    return Fact(
        text=dated(statement.text, said_at) + statement.after,
        why=description.why,
        category=description.category,
        importance=importance(description.category, statement),
        entity=slot.entity if slot else None,
        key=slot.key if slot else None,
        value=slot.value if slot else None,
        channel=Channel.USER,
        source_date=said_at,
        decay_class=lives.decay_class,
        decay_freeze_until=lives.freeze_until,
        scope=scope.kind,
        scope_target=scope.target,
        provenance_session=entry.get("session"),
        source_turn=entry.get("turn"),
        extraction_method=f"rule:{statement.cue}",
        confidence=statement.confidence,
        extraction_confidence=statement.confidence,
    )
