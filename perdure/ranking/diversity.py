"""What says the same as a better one gives way."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shown:
    """What decides whether two memories may stand in one block."""

    id: str
    said: Hashable  # equal for memories of which one may stand for both


def diverse(ranked: Sequence[Shown]) -> dict[str, str]:
    """Return what must give way to a better-ranked memory that says the same, with the reason."""
    gone: dict[str, str] = {}
    kept: dict[Hashable, str] = {}
    for item in ranked:
        if (twin := kept.setdefault(item.said, item.id)) != item.id:
            gone[item.id] = f"near-duplicate of {twin}"
    return gone


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of common words among all words, 0 to 1."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0
