"""Of one thing the newest comes first, and what it has overtaken says so: nothing is hidden, nothing looks current."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from perdure.recall.block import Entry, day
from perdure.store.fact import Fact, folded_slot, is_single_valued
from perdure.store.links import links_of
from perdure.store.search import View, by_ids
from perdure.store.sql import Connection
from perdure.store.trust import strength

Stale = Callable[[Fact, Fact], str]
"""Returns the words of an older fact that a newer one makes out of date; empty: it cannot be told which."""
MAX_STALE = 80
"""Characters that are quoted of what is out of date."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """A fact that may come up, and what is newer than it.

    Attributes:
        older: the fact.
        newer: says otherwise of the same, or of a part of it.
        part: whether the rest of the older one still holds.
    """

    older: str
    newer: Fact
    part: bool


def overtaken(connection: Connection, facts: Iterable[Fact], view: View) -> list[Overtaken]:
    """Return which of these facts newer ones correct in part, or contradict. Only what the view shows counts.

    Args:
        connection: a reader.
        facts: what may come up.
        view: what may be seen.
    """
    there = {fact.id: fact for fact in facts}
    links = [each for each in links_of(connection, there) if each.type in ("CORRECTS", "CONTRADICTS")]
    seen = {**by_ids(connection, {each.source for each in links}, view), **there}
    found = []
    for each in links:
        if each.target in there and each.source in seen:
            older, newer = there[each.target], seen[each.source]
            if older.effective_date <= newer.effective_date and strength(older.channel) <= strength(newer.channel):
                found.append(Overtaken(older.id, newer, each.type == "CORRECTS"))
    return found + _by_slot(there.values())


def _by_slot(facts: Iterable[Fact]) -> list[Overtaken]:
    slots: dict[Hashable, list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.entity and fact.key and fact.value and is_single_valued(fact.key):
            slots[folded_slot(fact.entity), folded_slot(fact.key)].append(fact)
    found = []
    for group in slots.values():
        newest = max(group, key=lambda fact: (strength(fact.channel), fact.effective_date, fact.change_seq))
        found += [
            Overtaken(fact.id, newest, part=False)
            for fact in group
            if fact.effective_date <= newest.effective_date and folded_slot(fact.value) != folded_slot(newest.value)
        ]
    return found


def in_order(ids: Sequence[str], found: Iterable[Overtaken]) -> list[str]:
    """Return ids in their order, but each that was overtaken behind what is newer; what is not among them joins.

    Args:
        ids: best first.
        found: what is overtaken by what.
    """
    newer: dict[str, list[Fact]] = defaultdict(list)
    for each in found:
        newer[each.older].append(each.newer)
    order: dict[str, None] = {}

    def put(fact_id: str, above: frozenset[str]) -> None:
        for each in sorted(newer[fact_id], key=lambda fact: -fact.effective_date):
            if each.id not in above and each.id not in order:
                put(each.id, above | {fact_id})
        order[fact_id] = None

    for fact_id in ids:
        if fact_id not in order:
            put(fact_id, frozenset())
    return list(order)


def marks(facts: Mapping[str, Fact], found: Iterable[Overtaken], stale: Stale) -> dict[str, str]:
    """Return what is said of each overtaken fact in the block: that it is earlier, or what of it is out of date.

    Args:
        facts: by id.
        found: what is overtaken by what.
        stale: tells which words are out of date.
    """
    said: dict[str, str] = {}
    for each in sorted(found, key=lambda one: (one.part, one.newer.effective_date)):
        older = facts[each.older]
        words = stale(older, each.newer)[:MAX_STALE] if each.part else ""
        earlier = f"earlier, {day(older.effective_date)}".rstrip(", ")
        mark = f'out of date: "{words}"' if words else "may be out of date" if each.part else earlier
        before = said.get(each.older)
        said[each.older] = mark if before in (None, mark) else before if before == earlier else f"{before}; {mark}"
    return said


def newest_first(entries: Sequence[Entry], said: Mapping[str, float]) -> list[Entry]:
    """Return entries as they are written: the profile, facts from the newest to the oldest, passages as ranked.

    How well they fit decides which facts come; of two that say otherwise of one thing, the newer has the first word,
    also where nothing shows that they do.

    Args:
        entries: in the order in which they were chosen.
        said: when each fact was said that is to be ordered, by its id.
    """
    dated_ones = iter(sorted((each for each in entries if each.item.id in said), key=lambda each: -said[each.item.id]))
    return [next(dated_ones) if each.item.id in said else each for each in entries]
