"""The memory that a pending one would replace or forget."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.api.memory import Memory
from perdure.store.fact import Fact
from perdure.store.lifecycle import Wish

_RELATIONS: dict[str, str] = {Wish.REPLACE: "would replace", Wish.FORGET: "would forget"}
"""What the journal calls it by which one memory's review has to do with another."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The other memory, and the relation in words, such as "would replace"."""

    relation: str
    fact: Fact


def beside(memory: Memory, fact: Fact) -> Beside | None:
    """Return the memory that a pending fact concerns; None: there is none, or it is gone."""
    for change in reversed(memory.history(fact.id).changes):
        if change.action in _RELATIONS and change.fact.id == fact.id and change.other_id is not None:
            there = memory.admin.has(change.other_id)
            return Beside(_RELATIONS[change.action], memory.get(change.other_id)) if there else None
    return None
