"""Reflection: what the memories of some days have in common becomes a memory of its own, linked to its evidence.

Found by `perdure.consolidation.patterns`. A pattern that is found again is not stored again: with the same evidence it
stays as it is, with other evidence it gets a new version.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from perdure.capture.writing import Prepared, Writer
from perdure.consolidation.patterns import AGAIN, LIMIT, Found, days_of, find
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.ranking.decay import DAY
from perdure.store.fact import Fact
from perdure.store.links import link, links_of
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_ids, lookup, seen
from perdure.store.store import Store
from perdure.store.transaction import REFLECTED, Author, Transaction
from perdure.store.trust import SUPERSEDES

CATEGORY = "pattern"
ENTITY = "pattern"
IMPORTANCE = 0.9
DAYS, OBSERVATIONS = 14.0, 2
TRUSTED = SUPERSEDES | {Channel.TRANSCRIPT_USER}
"""What came in by these channels may be evidence of what the user does and wants."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that a reflection found."""

    id: str  # of its fact; empty in a dry run
    kind: str  # one of those of `perdure.consolidation.patterns`
    text: str  # what the fact says
    evidence: tuple[str, ...]  # ids of the facts it was found in, oldest first
    action: str  # "new", "updated" (there is other evidence) or "known"


@dataclass(frozen=True, slots=True)
class Reflected:
    """The result of a reflection: number of facts examined, patterns found, and the batch for `undo`."""

    examined: int
    patterns: tuple[Pattern, ...]
    batch: str


@dataclass(frozen=True, slots=True)
class Window:
    """Which facts are looked at."""

    days: float = DAYS  # one of the facts of a pattern was said within so many days before now
    minimum: int = OBSERVATIONS  # observations that make a pattern
    limit: int = LIMIT  # patterns at the most

    def __post_init__(self) -> None:
        """Check the values."""
        if not 0 < self.days <= 36_500:
            raise InputError(f"the window is {self.days} days; give more than 0 and at most 36500")
        if self.minimum < 2:
            raise InputError(f"observations is {self.minimum}; a pattern needs at least 2")
        if self.limit < 1:
            raise InputError(f"limit is {self.limit}; give at least 1")


def reflect(
    store: Store,
    home: Scope,
    author: Author,
    writer: Writer,
    window: Window = Window(),
    *,
    dry_run: bool = False,
    pause: Callable[[], None] = lambda: None,
) -> Reflected:
    """Find the patterns of a scope and keep them there.

    `home`: the scope; facts of other scopes are no evidence, or a pattern would tell of them.
    """
    now = store.clock.now()
    view = View(Audience(frozenset({home}), home), now, channels=[each.value for each in TRUSTED], approved_only=True)
    facts = store.database.query(seen, view, _EVIDENCE, (now,), _ORDER)
    pause()
    since = now - window.days * DAY
    found = find(facts, now, since, window.minimum, window.limit)
    batch = uuid.uuid4().hex
    patterns = []
    for each in found:
        pause()
        [prepared] = writer.prepare([_fact(each, home, author)], now)
        patterns.append(_keep(store, replace(view, channels=None), author, batch, each, prepared, dry_run))
    changed = any(pattern.action != "known" for pattern in patterns)
    return Reflected(len(facts), tuple(patterns), batch if changed and not dry_run else "")


_EVIDENCE = (
    "facts WHERE facts.category NOT IN ('pattern', 'checkpoint') AND coalesce(facts.source_date, facts.created_at) <= ?"
)
_ORDER = "ORDER BY coalesce(facts.source_date, facts.created_at), facts.seq"


def _fact(found: Found, home: Scope, author: Author) -> Fact:
    return Fact(
        text=_sentence(found.text, found.evidence),
        category=CATEGORY,
        importance=IMPORTANCE,
        entity=ENTITY,
        key=f"{found.kind} {found.subject}".strip(),
        source="reflection",
        channel=author.channel,
        decay_class="durable",
        tags=("reflection", "pattern"),
        preserve_tags=True,
        scope=home.kind,
        scope_target=home.target,
        extraction_method=REFLECTED,
        metadata={"kind": found.kind, "subject": found.subject},
    )


def _sentence(text: str, evidence: Sequence[Fact]) -> str:
    days = days_of(evidence)
    when = f"{days[0]}" if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"{text.rstrip('.')} ({len(evidence)} memories, {when})."


def _keep(
    store: Store, view: View, author: Author, batch: str, found: Found, prepared: Prepared, dry_run: bool
) -> Pattern:
    """Store a pattern, give the one that is there its new evidence, or leave it; in one transaction."""
    with store.write(author) as tx:
        tx.batch = batch
        known = _known(tx, view, found)
        before = _evidence(tx, known, view) if known else {}
        ids = tuple(fact.id for fact in found.evidence)
        if known is not None and (known.forgotten_at is not None or before.keys() == set(ids)):
            return Pattern(known.id, found.kind, known.text, ids, "known")
        text, action = _sentence(found.text, found.evidence), "updated" if known else "new"
        if dry_run:
            return Pattern("", found.kind, text, ids, action)
        # The vector is that of the same words with other numbers behind them.
        added = tx.add(replace(prepared.fact, text=text), prepared.vector)
        if known is not None:
            tx.supersede(known.id, added.id, "different evidence")
        for fact_id in ids:
            link(tx, added.id, fact_id, "DERIVED_FROM")
        return Pattern(added.id, found.kind, added.text, ids, action)


def _known(tx: Transaction, view: View, found: Found) -> Fact | None:
    """Return the pattern that says this already: of the same subject, or with the same evidence.

    Of what is said again the subject is the evidence: two patterns that share some are one.

    Also one that was forgotten: whoever forgot it need not do so again after each reflection.
    """
    wanted = {fact.id for fact in found.evidence}
    for fact in lookup(tx.connection, ENTITY, None, replace(view, everything=True, approved_only=False), limit=10_000):
        if fact.category != CATEGORY or fact.superseded_at is not None or fact.metadata.get("kind") != found.kind:
            continue
        evidence = _evidence(tx, fact, view).keys()
        alike = fact.metadata.get("subject") == found.subject and (
            found.kind not in AGAIN or not wanted.isdisjoint(evidence)
        )
        if wanted == evidence or (alike and (fact.forgotten_at is None or wanted <= evidence)):
            return fact
    return None


def _evidence(tx: Transaction, pattern: Fact, view: View) -> dict[str, Fact]:
    ids = [each.target for each in links_of(tx.connection, [pattern.id]) if each.source == pattern.id]
    return by_ids(tx.connection, ids, replace(view, everything=True)) if ids else {}
