"""Taking in what an import brings: the same rules for an export of ours and for the data of another system."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

from perdure.hooks.types import Channel
from perdure.store.fact import Fact, folded_slot, live_sql, read_facts
from perdure.store.lifecycle import PENDING, Wish
from perdure.store.links import Link
from perdure.store.safe import safe_fact
from perdure.store.seals import is_purged
from perdure.store.spaces import VectorSpace
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.store.transaction import MAX_TEXT, Author, StoredVector, Transaction
from perdure.store.triggers import AGENT, MOST, Trigger, checked, of
from perdure.store.trust import gives_way, strength
from perdure.store.undo import IMPORT
from perdure.text.normalise import fingerprint

CHUNK = 500
"""Facts in one transaction."""
SAMPLE = 10
"""Texts that a dry run shows."""
FURTHEST = 6e10
"""Seconds before and after 1970 in which a fact may have been said: the years 69 to 3871, which every calendar has."""
_NAMESPACE = uuid.UUID("6f1f0c1e-5d0a-4b43-9d3b-7a52c1b7e0aa")


@dataclass(frozen=True, slots=True)
class Incoming:
    """A fact that an import brings."""

    fact: Fact
    vector: StoredVector | None = None  # its vector, if it has one
    sealed: bool = False  # whether the store itself vouches for this fact, whatever it says of the whole `Load`
    # whether it waits for review, even if somebody vouches for the file; what is known already does not
    review: bool = False
    # id of the fact of which these are other words, made outside of the store; they ask to replace it
    edits: str | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """What an import brings."""

    kind: str  # one of `perdure.importers.sources.KINDS`
    total: int
    facts: Callable[[], Iterable[Incoming]]  # yields them; may be called once
    links: Callable[[], Iterable[Link]]  # yields the links between them; called after `facts`
    sealed: bool = False  # whether the store itself vouches for the file: an export of its own, unchanged
    space: VectorSpace | None = None  # the space that the vectors are of; None if there are none
    missing: int = 0  # how many facts the file should hold and does not
    unreadable: int = 0  # how many entries could not be read and are left out
    unread: Mapping[str, str] = field(default_factory=dict)  # why, by file
    passed: Mapping[str, int] = field(default_factory=dict)  # what else is left out, and how many of it
    triggers: Callable[[], Iterable[Trigger]] = tuple  # yields those of the facts; called after `facts`
    vouched: bool = False  # whether the store vouches for each of these triggers, whatever it says of the rest


@dataclass(slots=True)
class Imported:
    """The result of an import, or of its dry run."""

    kind: str
    dry_run: bool  # whether nothing was written
    # whether the facts keep their channel; else it is "import", and only an explicit search finds them
    trusted: bool
    total: int  # facts in the source
    added: int = 0  # new facts
    skipped: int = 0  # facts that already exist with the same content
    # existing facts replaced by a newer version, or by the source's more trusted one
    superseded: int = 0
    # facts of an earlier untrusted import that now have their own channel; counted as skipped too
    vouched: int = 0
    waiting: int = 0  # added facts that are pending review
    # ids of existing facts with different content. They are not changed.
    conflicts: list[str] = field(default_factory=list)
    purged: int = 0  # facts that were purged from this store. They are not imported.
    refused: dict[str, str] = field(default_factory=dict)  # ids of facts that cannot be stored, and why
    links: int = 0  # links added; skipped are existing ones, and those with a missing fact
    links_skipped: int = 0
    triggers: int = 0  # added triggers
    vectors: int = 0  # vectors imported
    ended: int = 0  # added facts that have expired, and so are hidden
    missing: int = 0
    unreadable: int = 0
    unread: Mapping[str, str] = field(default_factory=dict)
    passed: Mapping[str, int] = field(default_factory=dict)
    sample: list[str] = field(default_factory=list, compare=False)  # some of what would be added, in a dry run
    # batch for `undo`; None if nothing changed
    batch: str | None = field(default=None, compare=False)


def bring_in(
    store: Store,
    load: Load,
    *,
    trust: bool = False,
    dry_run: bool = False,
    advance: Callable[[], None] = lambda: None,
    host: str = IMPORT,
    batch: str = "",
) -> Imported:
    """Import: ids, times, versions, tags and links stay as they are; what is there already is left alone.

    Goes in chunks, each a transaction. Broken off, it goes on where it was when it is called again: what is
    there is skipped. All chunks are one batch of the journal under its host, and can be undone as one. With `trust`
    facts keep the channel that they came with, as if this store had exported them.
    """
    trusted = load.sealed or trust
    report = Imported(
        load.kind, dry_run, trusted, load.total, missing=load.missing, unreadable=load.unreadable, unread=load.unread,
        passed=load.passed,
    )  # fmt: skip
    space = store.space()
    if space is None and load.space is not None and trusted:
        space = load.space
        if not dry_run:
            store.adopt_space(space)
    report.batch = None if dry_run else batch or uuid.uuid4().hex
    importer = _Importer(store, report, space, host, report.batch or "")
    for facts in _chunks(load.facts()):
        importer.take_facts(facts, advance)
    for links in _chunks(load.links()):
        importer.take_links(links)
    for triggers in _chunks(load.triggers()):
        importer.take_triggers(triggers, vouched=trusted or load.vouched)
    importer.catch_up()
    if not (report.added or report.superseded or report.vouched or report.links or report.triggers):
        report.batch = None
    return report


@dataclass(slots=True)
class _Importer:
    _store: Store
    _report: Imported
    _space: VectorSpace | None
    _host: str
    _batch: str
    _added: set[str] = field(default_factory=set)
    _newer: list[Fact] = field(default_factory=list)
    _gone: set[str] = field(default_factory=set)

    def take_facts(self, chunk: Iterable[Incoming], advance: Callable[[], None]) -> None:
        with self._changes() as (connection, tx):
            for incoming in chunk:
                self._fact(connection, tx, incoming)
                advance()

    def take_links(self, chunk: Iterable[Link]) -> None:
        with self._changes() as (connection, tx):
            for link in chunk:
                if self._there(connection, link.source) and self._there(connection, link.target):
                    self._link(connection, tx, link)
                else:
                    self._report.links_skipped += 1

    def take_triggers(self, chunk: Iterable[Trigger], *, vouched: bool) -> None:
        """Add triggers to what those facts have that this import brought, or that its file may change."""
        found: dict[tuple[str, str], list[str]] = {}
        for each in chunk:
            # Nobody vouches for whose word an unknown file says it is.
            origin = each.origin if vouched else AGENT
            found.setdefault((each.fact_id, origin), []).append(each.text)
        with self._changes() as (connection, tx):
            for (fact_id, origin), texts in found.items():
                if fact_id in self._added or (vouched and self._there(connection, fact_id)):
                    self._trigger(connection, tx, fact_id, origin, texts)

    def _trigger(
        self, connection: Connection, tx: Transaction | None, fact_id: str, origin: str, texts: Sequence[str]
    ) -> None:
        there = of(connection, [fact_id]).get(fact_id, [])
        known = {each.text.casefold() for each in there}
        fresh = [text for text in checked(texts[:MOST]) if text.casefold() not in known][: MOST - len(there)]
        self._report.triggers += len(fresh)
        if tx is not None and fresh:
            tx.put_triggers(fact_id, [*(each.text for each in there if each.origin == origin), *fresh], origin)

    def catch_up(self) -> None:
        """Let versions take the place of those that were here before, if both came by imports or are trusted."""
        with self._changes() as (connection, tx):
            for fact in self._newer:
                if fact.superseded_by is not None and not self._there(connection, fact.superseded_by):
                    continue
                self._report.superseded += 1
                if tx is not None:
                    values = {name: getattr(fact, name) for name in ("superseded_at", "superseded_by", "valid_until")}
                    tx.change(fact.id, "supersede", values, other_id=fact.superseded_by)

    @contextmanager
    def _changes(self) -> Iterator[tuple[Connection, Transaction | None]]:
        if self._report.dry_run:
            with self._store.database.read() as connection:
                yield connection, None
        else:
            with self._store.write(Author(Channel.IMPORT, host=self._host)) as tx:
                tx.batch = self._batch
                yield tx.connection, tx

    def _fact(self, connection: Connection, tx: Transaction | None, incoming: Incoming) -> None:
        # Redacted first: that is how the fact would stand here, and how it is compared.
        fact = safe_fact(incoming.fact).fact
        kept = self._report.trusted or incoming.sealed
        fact = replace(fact, text=fact.text.strip(), channel=fact.channel if kept else Channel.IMPORT)
        if incoming.review:
            fact = replace(fact, channel=Channel.IMPORT, review_state=PENDING)
        edited = _present(connection, incoming.edits) if incoming.edits else None
        if edited is not None:
            fact = replace(fact, scope=edited.scope, scope_target=edited.scope_target,
                           category=edited.category, entity=edited.entity, key=edited.key)  # fmt: skip
        present = _present(connection, fact.id)
        if incoming.review and (present or self._known(connection, fact)):
            self._report.skipped += 1
        elif present is not None:
            self._meet(connection, tx, present, fact)
        elif fact.id in self._added:
            self._report.skipped += 1
        elif reason := _refusal(fact):
            self._report.refused[fact.id] = reason
        elif is_purged(connection, self._store.key, fact.text):
            self._report.purged += 1
        else:
            self._add(tx, fact, incoming.vector)
            self._replace_twins(connection, tx, fact)
            self._report.waiting += fact.review_state == PENDING
            if tx is not None and edited is not None and _live(edited):
                tx.change(fact.id, Wish.REPLACE.value, {}, other_id=edited.id)

    def _known(self, connection: Connection, fact: Fact) -> bool:
        return any(twin.text == fact.text for twin in _twins(connection, fact, self._store.clock.now()))

    def _add(self, tx: Transaction | None, fact: Fact, vector: StoredVector | None) -> None:
        if vector is not None and (self._space is None or vector.embedding_id != self._space.id):
            vector = None  # it cannot be compared with ours; the worker makes one
        self._report.added += 1
        self._report.ended += fact.expires_at is not None and fact.expires_at <= self._store.clock.now()
        if self._report.dry_run:
            self._report.sample += [fact.text][: SAMPLE - len(self._report.sample)]
        self._report.vectors += vector is not None
        self._added.add(fact.id)
        if tx is not None:
            _store(tx, fact, vector)

    def _meet(self, connection: Connection, tx: Transaction | None, present: Fact, fact: Fact) -> None:
        vouched = present.channel is Channel.IMPORT and fact.channel is not Channel.IMPORT
        other = _claims(present) != _claims(fact)
        if vouched and other and _text(present) == _text(fact):
            self._claim(tx, present, fact)
            return
        if _says(present) != _says(fact):
            self._report.conflicts.append(fact.id)
            return
        if vouched:
            self._report.vouched += 1
            if tx is not None:
                tx.change(fact.id, "trust", {"channel": fact.channel, "tags": fact.tags})
            self._replace_twins(connection, tx, fact)
        may = self._report.trusted or present.channel is Channel.IMPORT
        if may and fact.superseded_at is not None and present.superseded_at is None:
            self._newer.append(fact)
        else:
            self._report.skipped += 1

    def _claim(self, tx: Transaction | None, present: Fact, fact: Fact) -> None:
        """Let the slot of a fact that is vouched for take the place of what was made of the same text before.

        Texts are never changed in place, so it becomes a new version; a former one is left as it is.
        """
        self._report.skipped += 1
        if _live(present) and _live(fact):
            self._report.vouched += 1
            if tx is not None:
                tx.supersede(present.id, _store(tx, replace(fact, id="")), "vouched for")

    def _replace_twins(self, connection: Connection, tx: Transaction | None, fact: Fact) -> None:
        """Let a fact take the place of those that were here before and say the same on a weaker word."""
        if not _live(fact) or not strength(fact.channel):
            return
        for twin in _twins(connection, fact, self._store.clock.now()):
            if twin.id in self._added or twin.id in self._gone or not gives_way(twin, fact):
                continue
            self._report.superseded += 1
            self._gone.add(twin.id)
            if tx is not None:
                # The fact itself keeps the place that it has among its own versions.
                gone = {"superseded_at": tx.now, "superseded_by": fact.id, "valid_until": tx.now}
                tx.change(twin.id, "supersede", gone, other_id=fact.id, reason="vouched for")

    def _there(self, connection: Connection, fact_id: str) -> bool:
        return fact_id in self._added or bool(run(connection, "SELECT 1 FROM facts WHERE id = ?", (fact_id,)))

    def _link(self, connection: Connection, tx: Transaction | None, link: Link) -> None:
        ends = (link.source, link.target, link.type)
        same = "SELECT 1 FROM memory_links WHERE id = ? OR (source_fact_id, target_fact_id, link_type) = (?, ?, ?)"
        if run(connection, same, (link.id, *ends)):
            self._report.links_skipped += 1
            return
        self._report.links += 1
        if tx is not None:
            run(connection, "INSERT INTO memory_links VALUES (?, ?, ?, ?, ?, ?)",
                (link.id, *ends, link.strength, link.created_at))  # fmt: skip
            tx.journal("link", link.source, link.target, {"type": link.type, "before": None})


def _store(tx: Transaction, fact: Fact, vector: StoredVector | None = None) -> str:
    added = tx.add(fact, vector)
    if fact.expires_at is None and added.expires_at is not None:
        tx.change(added.id, "import", {"expires_at": None})
    return added.id


def _present(connection: Connection, fact_id: str) -> Fact | None:
    return next(iter(read_facts(connection, "facts WHERE id = ?", (fact_id,))), None)


def _twins(connection: Connection, fact: Fact, now: float) -> list[Fact]:
    live, values = live_sql(now)
    where = f"facts WHERE normalized_hash = ? AND (scope, scope_target) = (?, ?) AND {live} AND id <> ?"
    same = (fingerprint(fact.text), fact.scope, fact.scope_target, *values, fact.id)
    return read_facts(connection, where, same)


def _live(fact: Fact) -> bool:
    return fact.superseded_at is None and fact.forgotten_at is None


def _text(fact: Fact) -> tuple[str, ...]:
    return fact.text, fact.scope, fact.scope_target


def _says(fact: Fact) -> tuple[str | None, ...]:
    safe = safe_fact(fact).fact
    slot = (None if part is None else folded_slot(part) for part in (safe.entity, safe.key))
    return *_text(fact), *slot


def _claims(fact: Fact) -> tuple[Any, ...]:
    """Return what is said of a fact beside its text, as it would stand here."""
    safe = safe_fact(fact).fact
    return safe.entity, safe.key, safe.value, safe.why, safe.metadata


def _refusal(fact: Fact) -> str | None:
    if not fact.text:
        return "it has no text"
    if len(fact.text) > MAX_TEXT:
        return f"it has {len(fact.text)} characters; the limit is {MAX_TEXT}"
    for at in (fact.created_at, fact.effective_date):
        if not abs(at) <= FURTHEST:
            return f"its date is {at!s:.20} seconds after 1970; the limit is {FURTHEST:g}"
    return None


_Item = TypeVar("_Item")


def _chunks(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


def fact_id(raw: object) -> str:
    """Return an id as a UUID: itself if it is one, else the one that always stands for it."""
    text = str(raw)
    try:
        return str(uuid.UUID(text))
    except ValueError:
        # The name of a file need not be text.
        return str(uuid.uuid5(_NAMESPACE, text.encode("utf-8", "backslashreplace").decode()))
