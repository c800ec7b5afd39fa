"""Near-duplicates and contradictions give way to the better one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Shown:
    """What decides whether two memories may stand in one block.

    Attributes:
        id: the memory.
        text: its text.
        slot: entity and key it fills, or None.
        single: whether the slot can have only one value.
        date: when it was said, epoch seconds.
    """

    id: str
    text: str
    slot: tuple[str, str] | None = None
    single: bool = False
    date: float = 0.0


def diverse(ranked: Sequence[Shown], overlap: float = 0.8) -> dict[str, str]:
    """Return what must give way, with the reason.

    A memory gives way to a better-ranked one when their words overlap by `overlap` (Jaccard), and to a
    newer one that fills the same single-valued slot, whatever their ranks.
    """
    gone: dict[str, str] = {}
    newest: dict[tuple[str, str], Shown] = {}
    for item in ranked:
        if item.slot and item.single:
            best = newest.get(item.slot)
            if best is None or item.date > best.date:
                newest[item.slot] = item
    kept: list[tuple[Shown, frozenset[str]]] = []
    for item in ranked:
        if item.slot and item.single and newest[item.slot].id != item.id:
            gone[item.id] = f"older value of the slot of {newest[item.slot].id}"
            continue
        words = frozenset(_WORD.findall(item.text.casefold()))
        twin = next((other.id for other, seen in kept if jaccard(words, seen) >= overlap), None)
        if twin is not None:
            gone[item.id] = f"near-duplicate of {twin}"
            continue
        kept.append((item, words))
    return gone


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of common words among all words, 0 to 1."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0
