"""Which facts say the same: near by their vectors, equal in their details, and worded alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perdure.store.fact import Fact, folded_slot
from perdure.store.listing import Progress
from perdure.store.sql import marks, run
from perdure.store.store import Store
from perdure.store.trust import SUPERSEDES
from perdure.text.sameness import Details, details, plain_words, says_the_same
from perdure.text.timestamps import day_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK = 512
"""Vectors that are compared with all others at a time."""
READ_AT_A_TIME = 500
APART = ("pattern", "checkpoint")
"""Categories that are never merged: a pattern stands for its evidence, a checkpoint for its moment."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Facts each of which says the same as every other."""

    facts: tuple[Fact, ...]  # at least two, oldest first
    cosine: float  # of the two that are least alike


def _key(fact: Fact, found: Details) -> Hashable:
    """Return what facts must have in common before their words are compared."""
    day = day_of(fact.effective_date, fact.zone) if found.relative else None
    trusted = None if fact.channel in SUPERSEDES else fact.channel
    # What the words do not say, because the slot was given by hand, must be equal too.
    unsaid = fact.value if fact.value and fact.value.casefold() not in fact.text.casefold() else None
    slot = folded_slot(fact.entity), plain_words(fact.key or ""), unsaid
    return (fact.scope, fact.scope_target, slot, trusted, fact.category in APART and fact.id, found, day)


def clusters(
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

    blobs: dict[str, bytes] = {}
    with store.database.read() as connection:
        for start in range(0, len(facts), READ_AT_A_TIME):
            some = facts[start : start + READ_AT_A_TIME]
            sql = f"SELECT fact_id, vector FROM vectors WHERE embedding_id = ? AND fact_id IN ({marks(some)})"
            blobs |= dict(run(connection, sql, (space, *(fact.id for fact in some))))
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
