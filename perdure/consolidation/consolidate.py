"""Facts that say the same become one fact, which is linked to them.

They stay for `as_of`, and one undo brings them back.

Nothing slow happens inside a transaction: what is near what is found first, a language model is asked first, and
then a few clusters at a time are written, after a second look at their facts. One of which a fact has changed
meanwhile is left for the next time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from perdure.capture.writing import Writer
from perdure.consolidation.clusters import Cluster, clusters
from perdure.errors import ModelError, NotFoundError
from perdure.llm import MERGES, Asker
from perdure.ranking.decay import DEFAULT_CLASS, LIFETIMES
from perdure.store.fact import SELECT, Fact, from_row
from perdure.store.links import link
from perdure.store.listing import Progress
from perdure.store.search import View
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector, Transaction
from perdure.text.lexicon import table
from perdure.text.sameness import details

COSINE = 0.92
"""From here on two facts may say the same."""
TOGETHER = 20
"""Clusters that are written in one transaction: as many wait for the disk once, others for a moment only."""
MAX_MERGED = 5_000
"""Characters of a text that a language model makes of several."""
_SYSTEM: str = table("consolidation", "prompts")["consolidate"]


@dataclass(frozen=True, slots=True)
class Merge:
    """Facts that became one, or would."""

    texts: tuple[str, ...]  # of the facts, oldest first
    ids: tuple[str, ...]  # of the facts, in the same order
    text: str  # of the fact that takes their place
    cosine: float  # of the two that are least alike
    id: str = ""  # of the new fact; empty in a dry run


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What a consolidation did."""

    examined: int  # facts that were compared
    merges: tuple[Merge, ...]  # what became one
    skipped: int  # clusters of which a fact was changed or removed meanwhile
    batch: str  # what `undo` takes back at once; empty if nothing was changed


_Draft = tuple[Cluster, Fact, StoredVector | None]


def consolidate(
    store: Store,
    view: View,
    author: Author,
    writer: Writer,
    *,
    cosine: float = COSINE,
    llm: Asker | None = None,
    dry_run: bool = False,
    pause: Callable[[], None] = lambda: None,
    progress: Progress = lambda done, total: None,
) -> Consolidated:
    """Merge what says the same, among the facts of each scope that the view shows.

    `view`: which of them; its audience must be allowed to write them all. `cosine`: from where on two facts may say the
    same; their words decide whether they do. `llm`: words the new facts; None, or if it fails: the best of the old
    texts stays.
    """
    facts = _facts(store, replace(view, approved_only=True))
    found = list(clusters(store, facts, cosine, pause, progress))
    batch = uuid.uuid4().hex
    merges: list[Merge] = []
    for start in range(0, len(found), TOGETHER):
        drafts = []
        for cluster in found[start : start + TOGETHER]:
            pause()
            drafts.append((cluster, *_draft(cluster, llm, writer, view.now)))
        if dry_run:
            merges += [_told(cluster, draft.text) for cluster, draft, _ in drafts]
        else:
            merges += _write(store, author, batch, drafts)
    skipped = len(found) - len(merges)
    return Consolidated(len(facts), tuple(merges), skipped, "" if dry_run or not merges else batch)


def _facts(store: Store, view: View) -> list[Fact]:
    condition, values = view.sql(store.database.dialect)
    rows = store.database.query(run, f"SELECT {SELECT} FROM facts WHERE {condition} ORDER BY facts.seq", values)
    return [from_row(row) for row in rows]


def _draft(cluster: Cluster, llm: Asker | None, writer: Writer, now: float) -> tuple[Fact, StoredVector | None]:
    """Return the fact that takes the place of a cluster: its best text, or what a language model makes of them."""
    best = max(cluster.facts, key=lambda fact: (len(fact.text), fact.effective_date, fact.id))
    text = _worded(cluster, llm) if llm is not None and len({fact.text for fact in cluster.facts}) > 1 else None
    if text is None:
        return best, None
    draft = replace(best, text=text, summary=None)
    return draft, writer.prepare([draft], now)[0].vector


def _worded(cluster: Cluster, llm: Asker) -> str | None:
    """Return the text of a language model, if it keeps all details of each text; else None."""
    texts = [fact.text for fact in cluster.facts]
    try:
        answer = llm.ask_json("\n".join(f"- {text}" for text in texts), purpose=MERGES, system=_SYSTEM)
    except ModelError:
        return None
    text = answer.get("text") if isinstance(answer, dict) else None
    if not isinstance(text, str) or not 0 < len(text.strip()) <= MAX_MERGED:
        return None
    return text.strip() if details(text) == details(texts[0]) else None


def _told(cluster: Cluster, text: str, fact_id: str = "") -> Merge:
    facts = cluster.facts
    return Merge(tuple(fact.text for fact in facts), tuple(fact.id for fact in facts), text, cluster.cosine, fact_id)


def _write(store: Store, author: Author, batch: str, drafts: Sequence[_Draft]) -> list[Merge]:
    """Put one fact in the place of each cluster, but for those of which a fact is no longer what it was."""
    with store.write(author) as tx:
        tx.batch = batch
        return [merge for draft in drafts if (merge := _merge(tx, *draft)) is not None]


def _merge(tx: Transaction, cluster: Cluster, draft: Fact, vector: StoredVector | None) -> Merge | None:
    try:
        facts = [tx.fact(fact.id) for fact in cluster.facts]
    except NotFoundError:
        return None  # purged meanwhile
    pairs = zip(facts, cluster.facts, strict=True)
    if tx.is_purged(draft.text) or any(_gone(fact, tx.now) or fact.text != before.text for fact, before in pairs):
        return None
    known = vector or _vector_of(tx, draft.id, draft.embedding_model)
    merged = tx.add(_merged(draft, facts), known)
    for fact in facts:
        tx.supersede(fact.id, merged.id, "consolidated")
        link(tx, merged.id, fact.id, "DERIVED_FROM", min(1.0, max(0.0, cluster.cosine)))
    return _told(cluster, merged.text, merged.id)


def _gone(fact: Fact, now: float) -> bool:
    expired = fact.expires_at is not None and fact.expires_at <= now
    left = fact.superseded_at is not None or fact.forgotten_at is not None
    return left or expired or fact.review_state != "approved"


def _vector_of(tx: Transaction, fact_id: str, embedding_id: str | None) -> StoredVector | None:
    sql = "SELECT vector FROM vectors WHERE fact_id = ? AND embedding_id = ?"
    rows = run(tx.connection, sql, (fact_id, embedding_id)) if embedding_id else []
    return StoredVector(embedding_id, rows[0][0]) if rows and embedding_id else None


def _merged(draft: Fact, facts: Sequence[Fact]) -> Fact:
    """Return the new fact: worded as the draft, with what all the old ones have collected, as they are by now."""
    last = max(fact.last_confirmed_at or fact.created_at for fact in facts)
    return replace(
        next((fact for fact in facts if fact.id == draft.id), draft),
        id="",
        text=draft.text,
        summary=draft.summary,
        importance=max(fact.importance for fact in facts),
        confidence=max(fact.confidence for fact in facts),
        tags=tuple(dict.fromkeys(tag for fact in facts for tag in fact.tags)),
        preserve_tags=any(fact.preserve_tags for fact in facts),
        pinned=any(fact.pinned for fact in facts),
        why=draft.why or next((fact.why for fact in facts if fact.why), None),
        created_at=0.0,
        source_date=min(fact.effective_date for fact in facts),
        last_confirmed_at=last,
        decay_class=max((fact.decay_class for fact in facts), key=_lifetime),
        decay_freeze_until=max(fact.decay_freeze_until or 0.0 for fact in facts) or None,
        expires_at=None,
        last_accessed=max(fact.last_accessed or 0.0 for fact in facts) or None,
        valid_from=None,
        valid_until=None,
        supersedes_id=None,
        embedding_model=None,
        extraction_method="consolidated",
        **{name: sum(getattr(fact, name) for fact in facts) for name in _COUNTS},
    )


_COUNTS = ("recall_count", "access_count", "injected_count", "reinforced_count")


def _lifetime(decay_class: str) -> float:
    lifetime = LIFETIMES.get(decay_class, LIFETIMES[DEFAULT_CLASS])
    return float("inf") if lifetime is None else lifetime
