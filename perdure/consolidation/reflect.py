"""Reflection: what the memories of some days have in common becomes a memory of its own, linked to its evidence.

Found by `perdure.consolidation.patterns`; a language model, if there is one, adds what words alone do not show. A
pattern that is found again is not stored again: with the same evidence it stays as it is, with other evidence it gets a
new version.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from perdure.capture.writing import Prepared, Writer
from perdure.consolidation.patterns import AGAIN, LIMIT, Found, days_of, find
from perdure.errors import InputError, ModelError
from perdure.hooks.types import Channel
from perdure.llm import PATTERNS, Asker
from perdure.ranking.decay import DAY
from perdure.store.fact import Fact
from perdure.store.links import link, links_of
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_ids, lookup, seen
from perdure.store.store import Store
from perdure.store.transaction import REFLECTED, Author, Transaction
from perdure.store.trust import SUPERSEDES
from perdure.text.lexicon import table

CATEGORY = "pattern"
ENTITY = "pattern"
INSIGHT = "insight"
"""The kind of what a language model has worded."""
IMPORTANCE = 0.9
DAYS, OBSERVATIONS = 14.0, 2
SHORTEST, LONGEST = 20, 500
"""Characters of a pattern that a language model words."""
SAME = 0.85
"""Cosine from which on two patterns of a language model are one."""
MAX_ASKED = 200
"""Facts that a language model is shown at the most, the newest."""
TRUSTED = SUPERSEDES | {Channel.TRANSCRIPT_USER}
"""What came in by these channels may be evidence of what the user does and wants."""
_SYSTEM: str = table("consolidation", "prompts")["reflect"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that a reflection found."""

    id: str  # of its fact; empty in a dry run
    kind: str  # "insight", or one of those of `perdure.consolidation.patterns`
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
    llm: Asker | None = None,
    dry_run: bool = False,
    pause: Callable[[], None] = lambda: None,
) -> Reflected:
    """Find the patterns of a scope and keep them there.

    `home`: the scope; facts of other scopes are no evidence, or a pattern would tell of them. `llm`: also looks for
    patterns; None, or if it fails: words alone.
    """
    now = store.clock.now()
    view = View(Audience(frozenset({home}), home), now, channels=[each.value for each in TRUSTED], approved_only=True)
    facts = store.database.query(seen, view, _EVIDENCE, (now,), _ORDER)
    pause()
    since = now - window.days * DAY
    found = find(facts, now, since, window.minimum, window.limit)
    newest = [fact for fact in facts if fact.effective_date >= since]
    if llm is not None and len(newest) >= window.minimum:
        found += _asked(llm, newest[-MAX_ASKED:], window)
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


def _asked(llm: Asker, facts: Sequence[Fact], window: Window) -> list[Found]:
    """Return the patterns that a language model sees; what it does not show evidence for is dropped."""
    notes = "\n".join(f"{number}. {fact.text}" for number, fact in enumerate(facts, 1))
    try:
        answer = llm.ask_json(notes, purpose=PATTERNS, system=_SYSTEM.format(minimum=window.minimum))
    except ModelError:
        return []
    found = []
    for each in answer if isinstance(answer, list) else ():
        text = each.get("pattern") if isinstance(each, dict) else None
        numbers = each.get("evidence") if isinstance(each, dict) else None
        if not isinstance(text, str) or not isinstance(numbers, list) or not SHORTEST <= len(text.strip()) <= LONGEST:
            continue
        cited = {number for number in numbers if isinstance(number, int) and 0 < number <= len(facts)}
        if len(cited) >= window.minimum:
            found.append(Found(INSIGHT, "", text.strip(), tuple(facts[number - 1] for number in sorted(cited))))
    return found[: window.limit]


def _fact(found: Found, home: Scope, author: Author) -> Fact:
    # What a language model has worded is no word of the user's: it is marked as the agent's note.
    worded = found.kind == INSIGHT
    return Fact(
        text=_sentence(found.text, found.evidence),
        category=CATEGORY,
        importance=IMPORTANCE,
        entity=ENTITY,
        key=f"{found.kind} {found.subject}".strip(),
        source="reflection",
        channel=Channel.TOOL_UNASKED if worded else author.channel,
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
        known = _known(tx, view, found, prepared)
        before = _evidence(tx, known, view) if known else {}
        # What a pattern quotes is what it tells; what a language model has worded once rests on all that spoke for it.
        kept = before if found.kind == INSIGHT else {}
        evidence = sorted({**kept, **{fact.id: fact for fact in found.evidence}}.values(), key=_when)
        ids = tuple(fact.id for fact in evidence)
        if known is not None and (known.forgotten_at is not None or before.keys() == set(ids)):
            return Pattern(known.id, found.kind, known.text, ids, "known")
        text, action = _sentence(found.text, evidence), "updated" if known else "new"
        if dry_run:
            return Pattern("", found.kind, text, ids, action)
        # The vector is that of the same words with other numbers behind them.
        added = tx.add(replace(prepared.fact, text=text), prepared.vector)
        if known is not None:
            tx.supersede(known.id, added.id, "different evidence")
        for fact_id in ids:
            link(tx, added.id, fact_id, "DERIVED_FROM")
        return Pattern(added.id, found.kind, added.text, ids, action)


def _when(fact: Fact) -> tuple[float, str]:
    return fact.effective_date, fact.id


def _known(tx: Transaction, view: View, found: Found, prepared: Prepared) -> Fact | None:
    """Return the pattern that says this already: of the same subject, or with the same evidence, or worded alike.

    Of what is said again the subject is the evidence: two patterns that share some are one.

    Also one that was forgotten: whoever forgot it need not do so again after each reflection.
    """
    wanted = {fact.id for fact in found.evidence}
    for fact in lookup(tx.connection, ENTITY, None, replace(view, everything=True, approved_only=False), limit=10_000):
        if fact.category != CATEGORY or fact.superseded_at is not None or fact.metadata.get("kind") != found.kind:
            continue
        evidence = _evidence(tx, fact, view).keys()
        alike = found.kind != INSIGHT and fact.metadata.get("subject") == found.subject
        alike = alike and (found.kind not in AGAIN or not wanted.isdisjoint(evidence))
        if wanted == evidence or (alike and (fact.forgotten_at is None or wanted <= evidence)):
            return fact
    close = [hit.id for hit in prepared.near if hit.cosine >= SAME] if found.kind == INSIGHT else []
    near = by_ids(tx.connection, close, view).values() if close else ()
    return next((fact for fact in near if fact.category == CATEGORY), None)


def _evidence(tx: Transaction, pattern: Fact, view: View) -> dict[str, Fact]:
    ids = [each.target for each in links_of(tx.connection, [pattern.id]) if each.source == pattern.id]
    return by_ids(tx.connection, ids, replace(view, everything=True)) if ids else {}
