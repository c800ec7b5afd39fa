"""The steps of capture in their order: what is behind an inbox entry becomes facts, in one transaction."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from perdure.capture.decide import SPEAKER, Action, Decision, own_view
from perdure.capture.describe import CategoryPatterns, describe, importance, is_own
from perdure.capture.evidence import may_change
from perdure.capture.forgetting import forget, meant
from perdure.capture.lifetimes import timed
from perdure.capture.promote import offer
from perdure.capture.rules import guarded
from perdure.capture.statements import (
    CHANGE,
    WEAK,
    CaptureRule,
    Choice,
    Heard,
    Statement,
    capital,
    only_asks,
    statements,
)  # fmt: skip
from perdure.capture.writing import Prepared, Writer, Written
from perdure.hooks.types import Channel
from perdure.regex import lazy
from perdure.speech.forgetting import orders_to_forget
from perdure.store.fact import Fact
from perdure.store.inbox_lines import PROJECT
from perdure.store.scope import Audience, Scope
from perdure.store.search import by_hash, by_ids, lexical
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction
from perdure.store.trust import ON_PURPOSE, SUPERSEDES, strength
from perdure.text.normalise import fingerprint, fold
from perdure.text.sameness import Trace, echoes, quotes, same, trace, traces
from perdure.text.timestamps import ZONE, zone_of

Shown = Mapping[str, Sequence[Trace]]
"""What a conversation was shown: traces by id of fact or passage."""
_log = logging.getLogger("perdure.capture")
_DAY = 86_400.0
_ASSISTANT = "assistant"
_UNSURE = 0.5
"""Confidence of what the assistant said."""
_NEIGHBOURS = 8
ASKED_TO_REMEMBER = "rule:remember"
"""How a fact was extracted that `_draft` made of the cue "remember"."""
_ITSELF = lazy(r"\b(?:i|i'(?:m|ve|ll|d)|me|my|mine|myself|we|us|our)\b")


@dataclass(frozen=True, slots=True)
class Quota:
    """How many facts that the user said are kept in one scope before the rest waits for review: nothing is lost."""

    turn: int = 30  # in one turn, for each message that it brings
    session: int = 500  # in one conversation, within a day
    day: int = 2_000  # within 24 hours, by the time at which they were said


def _nothing(_: str) -> Shown:
    return {}


class Capturer:
    """Turns inbox entries into facts."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        rules: Callable[[], tuple[CaptureRule, ...]],
        quota: Quota = Quota(),
        shown: Callable[[str], Shown] = _nothing,
        categories: CategoryPatterns = (),
        choice: Choice | None = None,
        obeyed: Callable[[str, str], bool] | None = None,
    ) -> None:
        """Capture into `store`.

        `rules` returns those of extensions, `shown` what a conversation was shown, by the name of its cursor; `choice`
        decides which sentences of the user are kept (None: the rules do); `obeyed` says whether the orders to forget in
        a message were obeyed when its turn began, by the conversation's name (None: none are obeyed here).
        """
        self._choice = choice
        self._obeyed = obeyed
        self._categories = categories
        self._store = store
        self._writer = writer
        self._rules = rules
        self._quota = quota
        self._shown = shown

    def process(self, entry: Mapping[str, Any], pause: Callable[[], None] = lambda: None) -> list[Written]:
        """Deal with an entry as the inbox holds it, once: a repeated call finds it done.

        `pause` is called between steps, so that a turn that begins meanwhile need not wait. After an error nothing of
        the entry was kept: repeat it later.
        """
        if self._store.is_finished(entry["id"]):
            return []
        users, assistants = _split(entry["messages"])
        shown = self._shown(entry["cursor"])
        prepared = self._prepared(self._drafts(users, entry, partial(_chosen, self._choice)), pause)
        if assistants:
            before = _heard(users, shown, self._store.key)
            self._note(_worldly(self._drafts(assistants, entry)), before, entry, pause)
        # Many entries may be one change, as those of an import are.
        with self._store.write(replace(_author(Channel.USER, entry), batch=entry.get("batch"))) as tx:
            if tx.is_finished(entry["id"]):
                return []  # by another machine, meanwhile
            scope, times = Scope.parse(entry["scope"]), [message.get("at") or entry["at"] for message in users]
            guard = _Guard(tx.connection, self._quota, scope, entry.get("session"), times)
            written = [self._keep(tx, each, shown, guard) for each in prepared]
            offer(tx, scope, prepared, written)
            self._obey(tx, users, entry)
            tx.move_cursor(entry["cursor"], entry["tail"])
            tx.finish_entry(entry["id"])
        waiting = sum(each.fact.review_state == "pending" for each in written)
        if waiting:
            _log.warning("%d memories of one turn are pending review: %s; see perdure review", waiting, guard.reason())
        return written

    def _obey(self, tx: Transaction, users: Sequence[Mapping[str, Any]], entry: Mapping[str, Any]) -> None:
        """Obey the orders to forget of a host that tells of its turns only when they are over."""
        if self._obeyed is None:
            return
        scopes = [Scope.parse(scope) for scope in (entry["scope"], entry.get(PROJECT)) if scope]
        audience = Audience(frozenset(scopes), scopes[0])
        for message in users:
            if not self._obeyed(entry["cursor"], message["text"]):
                for order in orders_to_forget(message["text"]):
                    said_at = message.get("at") or entry["at"]
                    wanted = meant(tx.connection, order, audience, tx.now).clear
                    # What was said after it is not what it means, whichever is read first.
                    forget(tx, [fact for fact in wanted if (fact.source_date or said_at) <= said_at])

    def _drafts(
        self, messages: Sequence[Mapping[str, Any]], entry: Mapping[str, Any], choice: Choice | None = None
    ) -> list[Fact]:
        rules = tuple(guarded(rule) for rule in self._rules())
        return [
            _draft(each, message, entry, self._categories, self._store.zone)
            for message in messages
            for each in statements(message["text"], rules, choice, message.get("before", ""), message.get("asked", ""))
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
                    _noted(tx, each, before, self._store.key)

    def _keep(self, tx: Transaction, prepared: Prepared, shown: Shown, guard: _Guard) -> Written:
        repeats = _repeated(tx, prepared.fact, shown, self._store.key) if shown else None
        if repeats is not None:
            if repeats.target is None:
                return Written(prepared.fact, repeats)
            prepared = replace(prepared, verdict=repeats)
        if prepared.fact.extraction_method == f"rule:{CHANGE}":
            decided = self._writer.decide(tx, prepared)
            if decided.action not in (Action.UPDATE, Action.DELETE):
                return Written(prepared.fact, Decision(Action.NOOP, None, "changes nothing that is known"))
            prepared = replace(prepared, verdict=decided)
        # An order to remember always counts.
        reason = guard.reason() if prepared.fact.extraction_method != ASKED_TO_REMEMBER else None
        if reason is not None:
            return _held(tx, prepared, reason)
        written = confirmed(tx, self._writer.write(tx, prepared), prepared.fact.channel)
        if written.decision.action is not Action.NOOP:
            guard.count()
        return written


def confirmed(tx: Transaction, written: Written, channel: Channel) -> Written:
    """Approve what was waiting for review, now that somebody whose word counts has said the same.

    What was rejected comes back only when it is stored on purpose.
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
        return Decision(Action.NOOP, None, "quotes a recalled memory")
    ids = [shown_id for shown_id, seen in shown.items() if any(same(said, each) for each in seen)]
    known = by_ids(tx.connection, ids, own_view(fact, tx.now)).values() if ids else ()
    strongest = max(known, key=lambda old: strength(old.channel), default=None)
    return None if strongest is None else Decision(Action.NOOP, strongest.id, "repeats a recalled memory")


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
    added = tx.add(_on_hold(fact, reason), prepared.vector)
    return Written(added, Decision(Action.ADD, None, reason))


def _chosen(choice: Choice | None, heard: Heard) -> Sequence[Statement] | None:
    """Return what a choice keeps of a sentence; if that is nothing, the sentence, where it may change what is known."""
    kept = choice(heard) if choice is not None else None
    if kept or (kept is None and heard.stated) or heard.code != "en" or not may_change(heard.text):
        return kept
    if only_asks(heard.text):
        return kept  # "Draft a letter that the rate was raised to 70" changes no rate
    return [Statement(capital(heard.text), CHANGE, WEAK)]


def _author(channel: Channel, entry: Mapping[str, Any]) -> Author:
    return Author(channel, entry.get("host", "python"), entry.get("session"))


def _draft(
    statement: Statement, message: Mapping[str, Any], entry: Mapping[str, Any], categories: CategoryPatterns,
    zone: dt.tzinfo | None,
) -> Fact:  # fmt: skip
    description = describe(statement, categories)
    slot = description.slot
    scope = Scope.parse(entry["scope"] if is_own(statement.text, slot) else entry.get(PROJECT, entry["scope"]))
    said_at = message.get("at") or entry["at"]
    name = message.get("name", "")
    if name:
        slot = None  # the slots are the user's
    zone = zone_of(message.get(ZONE)) or zone_of(entry.get(ZONE)) or zone
    fact = Fact(
        text=statement.text,
        why=description.why,
        category=description.category,
        importance=importance(description.category, statement),
        entity=slot.entity if slot else None,
        key=slot.key if slot else None,
        value=slot.value if slot else None,
        channel=Channel.USER,
        source_date=said_at,
        # What is captured late has lived since it was said.
        last_confirmed_at=said_at,
        scope=scope.kind,
        scope_target=scope.target,
        provenance_session=entry.get("session"),
        source_turn=entry.get("turn"),
        extraction_method=f"rule:{statement.cue}",
        confidence=statement.confidence,
        extraction_confidence=statement.confidence,
        metadata=entry.get("metadata", {}) | ({SPEAKER: name} if name else {}),
    )
    fact = timed(fact, said_at, zone, moment=statement.moment)
    return replace(fact, text=f"{name}: " * bool(name) + fact.text + statement.after)


class _Guard:
    """Counts what one turn adds to what was added before."""

    def __init__(
        self, connection: Connection, quota: Quota, scope: Scope, session: str | None, times: Sequence[float]
    ) -> None:
        """Count what the user has said before; `times`: when each message of the turn was said, epoch seconds."""
        self._quota = quota
        # A host may hand over many messages at once, as at the first turn after perdure was installed.
        self._most = quota.turn * max(1, len(times))
        self._turn = self._session = self._day = 0
        if times:
            # What is joined to nothing keeps SQLite on the index of the date, which chooses the fewest rows.
            [(self._day, self._session)] = run(
                connection,
                "SELECT count(*), count(*) FILTER (WHERE provenance_session IS NOT DISTINCT FROM ?) FROM facts"
                " WHERE source_date > ? AND source_date <= ?"
                " AND channel || '' = ? AND scope || '' = ? AND scope_target || '' = ?"
                " AND extraction_method LIKE 'rule:%' AND review_state = 'approved'",
                (session, max(times) - _DAY, max(times), Channel.USER.value, scope.kind, scope.target),
            )

    def reason(self) -> str | None:
        """Return which limit the next fact would be over, in words; None: it may be kept."""
        quota = self._quota
        for count, limit, what in (
            (self._turn, self._most, "in one turn"),
            (self._session, quota.session, "in one conversation"),
            (self._day, quota.day, "in a day"),
        ):
            if count >= limit:
                return f"over the limit of {limit} memories {what}"
        return None

    def count(self) -> None:
        """Take note that a fact was kept."""
        self._turn += 1
        self._session += 1
        self._day += 1


def _on_hold(fact: Fact, reason: str) -> Fact:
    """Return a fact that waits for review."""
    return replace(fact, review_state="pending", metadata={**fact.metadata, "review": reason})


# What the assistant said, if that is wanted: kept for review only, and never in the place of what the user said.


def _split(messages: Iterable[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return the messages of an inbox entry by who spoke: the user's, the assistant's."""
    by_role: tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]] = ([], [])
    for message in messages:
        by_role["role" in message and message["role"] == _ASSISTANT].append(message)
    return by_role


def _worldly(drafts: Iterable[Fact]) -> Iterator[Fact]:
    """Yield what an assistant's drafts say of the world, marked as its word. What it says of itself is no memory."""
    for draft in drafts:
        if not _ITSELF.search(fold(draft.text)):
            held = _on_hold(draft, "said by the assistant")
            yield replace(held, channel=Channel.ASSISTANT, confidence=_UNSURE, extraction_confidence=_UNSURE)


def _heard(messages: Iterable[Mapping[str, Any]], shown: Mapping[str, Sequence[Trace]], key: bytes) -> list[Trace]:
    """Return the traces of what the assistant had before its eyes: the user's messages, and what it was shown."""
    return [
        *(each for message in messages for each in traces(message["text"], key)),
        *(each for seen in shown.values() for each in seen),
    ]


def _noted(tx: Transaction, prepared: Prepared, before: Iterable[Trace], key: bytes) -> Fact | None:
    """Keep a statement of the assistant for review, unless it repeats what is known; return what was kept."""
    fact = prepared.fact
    said = trace(fact.text, key)
    view = own_view(fact, tx.now)
    # The same slot with another value is worded nearly alike, and is news all the same.
    value = set(trace(fact.value or "", key).words)
    known = [hit.fact for hit in lexical(tx.connection, fact.text, view, _NEIGHBOURS).hits]
    seen = chain(before, (each for old in known for each in traces(old.text, key)))
    if any(echoes(said, each) and value <= set(each.words) for each in seen):
        return None
    if tx.is_purged(fact.text) or by_hash(tx.connection, fingerprint(fact.text), view):
        return None
    return tx.add(fact, prepared.vector)
