"""Facts that say the same become one fact, which is linked to them.

They stay for `as_of`, and one undo brings them back.

Nothing slow happens inside a transaction: what is near what is found first, and then a few clusters at a time are
written, after a second look at their facts. One of which a fact has changed meanwhile is left for the next time.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perdure.errors import NotFoundError
from perdure.ranking.decay import DEFAULT_CLASS, LIFETIMES
from perdure.store.fact import Fact, folded_slot
from perdure.store.links import link
from perdure.store.listing import Progress
from perdure.store.search import View, seen
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector, Transaction
from perdure.store.trust import SUPERSEDES
from perdure.text.sameness import Details, details, plain_words, says_the_same
from perdure.text.timestamps import day_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COSINE = 0.92
"""From here on two facts may say the same."""
TOGETHER = 20
"""Clusters that are written in one transaction: as many wait for the disk once, others for a moment only."""
BLOCK = 512
"""Vectors that are compared with all others at a time."""
APART = ("pattern", "checkpoint")
"""Categories that are never merged: a pattern stands for its evidence, a checkpoint for its moment."""


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
    """The result of a consolidation."""

    examined: int  # number of facts compared
    merges: tuple[Merge, ...]  # the merges made
    skipped: int  # clusters skipped because a fact changed or was removed meanwhile
    batch: str  # batch for `undo`; empty if nothing changed


@dataclass(frozen=True, slots=True)
class Cluster:
    """Facts each of which says the same as every other."""

    facts: tuple[Fact, ...]  # at least two, oldest first
    cosine: float  # of the two that are least alike

    @property
    def best(self) -> Fact:
        """Return the fact whose text says most."""
        return max(self.facts, key=lambda fact: (len(fact.text), fact.effective_date, fact.id))


def consolidate(
    store: Store,
    view: View,
    author: Author,
    *,
    cosine: float = COSINE,
    dry_run: bool = False,
    pause: Callable[[], None] = lambda: None,
    progress: Progress = lambda done, total: None,
) -> Consolidated:
    """Merge what says the same, among the facts of each scope that the view shows.

    `view`: which of them; its audience must be allowed to write them all. `cosine`: from where on two facts may say the
    same; their words decide whether they do. The best of their texts stays.
    """
    approved = replace(view, approved_only=True)
    facts = store.database.query(seen, approved, "facts WHERE TRUE", (), "ORDER BY facts.seq")
    found = list(_clusters(store, facts, cosine, pause, progress))
    batch = uuid.uuid4().hex
    merges: list[Merge] = []
    for start in range(0, len(found), TOGETHER):
        pause()
        some = found[start : start + TOGETHER]
        merges += [_told(cluster) for cluster in some] if dry_run else _write(store, author, batch, some)
    skipped = len(found) - len(merges)
    return Consolidated(len(facts), tuple(merges), skipped, "" if dry_run or not merges else batch)


def _told(cluster: Cluster, fact_id: str = "") -> Merge:
    facts = cluster.facts
    texts, ids = tuple(fact.text for fact in facts), tuple(fact.id for fact in facts)
    return Merge(texts, ids, cluster.best.text, cluster.cosine, fact_id)


def _write(store: Store, author: Author, batch: str, clusters: Sequence[Cluster]) -> list[Merge]:
    """Put one fact in the place of each cluster, but for those of which a fact is no longer what it was."""
    with store.write(author) as tx:
        tx.batch = batch
        return [merge for cluster in clusters if (merge := _merge(tx, cluster)) is not None]


def _merge(tx: Transaction, cluster: Cluster) -> Merge | None:
    try:
        facts = [tx.fact(fact.id) for fact in cluster.facts]
    except NotFoundError:
        return None  # purged meanwhile
    pairs = zip(facts, cluster.facts, strict=True)
    if tx.is_purged(cluster.best.text) or any(
        _gone(fact, tx.now) or fact.text != before.text for fact, before in pairs
    ):
        return None
    best = next(fact for fact in facts if fact.id == cluster.best.id)
    merged = tx.add(_merged(best, facts), _vector_of(tx, best.id, best.embedding_model))
    for fact in facts:
        tx.supersede(fact.id, merged.id, "consolidated")
        link(tx, merged.id, fact.id, "DERIVED_FROM", min(1.0, max(0.0, cluster.cosine)))
    return _told(cluster, merged.id)


def _gone(fact: Fact, now: float) -> bool:
    expired = fact.expires_at is not None and fact.expires_at <= now
    left = fact.superseded_at is not None or fact.forgotten_at is not None
    return left or expired or fact.review_state != "approved"


def _vector_of(tx: Transaction, fact_id: str, embedding_id: str | None) -> StoredVector | None:
    sql = "SELECT vector FROM vectors WHERE fact_id = ? AND embedding_id = ?"
    rows = run(tx.connection, sql, (fact_id, embedding_id)) if embedding_id else []
    return StoredVector(embedding_id, rows[0][0]) if rows and embedding_id else None


def _merged(best: Fact, facts: Sequence[Fact]) -> Fact:
    """Return the new fact: worded as the best, with what all the old ones have collected, as they are by now."""
    last = max(fact.last_confirmed_at or fact.created_at for fact in facts)
    return replace(
        best,
        id="",
        importance=max(fact.importance for fact in facts),
        confidence=max(fact.confidence for fact in facts),
        tags=tuple(dict.fromkeys(tag for fact in facts for tag in fact.tags)),
        preserve_tags=any(fact.preserve_tags for fact in facts),
        pinned=any(fact.pinned for fact in facts),
        why=best.why or next((fact.why for fact in facts if fact.why), None),
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


def _key(fact: Fact, found: Details) -> Hashable:
    """Return what facts must have in common before their words are compared."""
    day = day_of(fact.effective_date, fact.zone) if found.relative else None
    trusted = None if fact.channel in SUPERSEDES else fact.channel
    # What the words do not say, because the slot was given by hand, must be equal too.
    unsaid = fact.value if fact.value and fact.value.casefold() not in fact.text.casefold() else None
    slot = folded_slot(fact.entity), plain_words(fact.key or ""), unsaid
    return (fact.scope, fact.scope_target, slot, trusted, fact.category in APART and fact.id, found, day)


def _clusters(
    store: Store, facts: Sequence[Fact], least: float, pause: Callable[[], None], progress: Progress
) -> Iterator[Cluster]:
    """Yield the clusters among facts.

    Only facts with equal details are compared, so the work grows with the largest group of these, not with all.

    `store`: where their vectors are; without vectors only texts that differ in spelling come together.
    """
    groups: dict[Hashable, list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[_key(fact, details(fact.text))].append(fact)
    several = [group for group in groups.values() if len(group) > 1]
    space = store.space()
    for done, group in enumerate(several, 1):
        pause()
        progress(done, len(several))
        yield from _near(store, space.id if space else "", group, least, pause)


def _near(
    store: Store, space: str, group: Sequence[Fact], least: float, pause: Callable[[], None]
) -> Iterator[Cluster]:
    """Yield the clusters of a group, in which every fact says the same as every other."""
    twins: dict[str, list[Fact]] = defaultdict(list)
    for fact in group:
        twins[fact.normalized_hash].append(fact)
    each = {found[0].id: found[0] for found in twins.values()}
    alike = _alike(_vectors(store, space, list(each.values())), least, pause) if len(each) > 1 else {}
    taken: set[str] = set()
    for fact in each.values():
        if fact.id in taken:
            continue
        members, lowest = [fact], 1.0
        for other, near in sorted(alike.get(fact.id, {}).items(), key=lambda item: -item[1]):
            mutual = [alike.get(other, {}).get(member.id, 0.0) for member in members]
            same = (says_the_same(each[other].text, member.text) for member in members)
            if other not in taken and min(mutual) >= least and all(same):
                members.append(each[other])
                lowest = min(lowest, near, *mutual)
        taken |= {member.id for member in members}
        together = [twin for member in members for twin in twins[member.normalized_hash]]
        if len(together) > 1:
            yield Cluster(tuple(sorted(together, key=lambda item: item.effective_date)), round(lowest, 4))


def _vectors(store: Store, space: str, facts: Sequence[Fact]) -> tuple[list[str], NDArray[np.float32]]:
    import numpy as np

    sql = "SELECT fact_id, vector FROM vectors WHERE embedding_id = ? AND fact_id IN (SELECT value FROM json_each(?))"
    wanted = json.dumps([fact.id for fact in facts])
    blobs: dict[str, bytes] = dict(store.database.query(run, sql, (space, wanted)))
    ids = [fact.id for fact in facts if fact.id in blobs]
    rows = [np.frombuffer(blobs[fact_id], dtype="<f4") for fact_id in ids]
    return ids, np.stack(rows) if rows else np.zeros((0, 1), dtype=np.float32)


def _alike(
    found: tuple[list[str], NDArray[np.float32]], least: float, pause: Callable[[], None]
) -> dict[str, dict[str, float]]:
    """Return for each id the others that are near it, with the cosine. Block by block, so that memory stays flat."""
    import numpy as np

    ids, vectors = found
    alike: dict[str, dict[str, float]] = defaultdict(dict)
    for start in range(0, len(ids), BLOCK):
        pause()
        products = vectors[start : start + BLOCK] @ vectors.T
        for row, column in np.argwhere(products >= least):
            if start + row != column:
                alike[ids[start + row]][ids[column]] = float(products[row, column])
    return alike
