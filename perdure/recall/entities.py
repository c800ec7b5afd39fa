"""What is known of whom or what a prompt names, though the memory by itself is too weak for the judge.

A name alone is little evidence: in `training/data/development` one in thirty of the memories of a named entity helps,
and most of these are found anyhow. So where a model judges, less is asked of them than of others, and not nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from perdure.recall.aliases import names_in
from perdure.recall.options import LOOKUP
from perdure.recall.turn import Candidate, Turn
from perdure.recall.unasked import CONVENTION, NO_EVIDENCE, USER
from perdure.regex import lazy
from perdure.store.aliases import Names, words_of
from perdure.store.fact import Fact, folded_slot

MOST = 3
"""Memories of one entity that come up by its name."""
NOBODY = frozenset({USER, CONVENTION, "decision"})
"""Entities that are nobody whom a prompt could name."""
_KNOWN = lazy(r"\b(?:my|our|the|this|that|your)\s+$")


def of_named(text: str, facts: Iterable[Fact]) -> list[Fact]:
    """Return those of some facts whose entity a text names, `MOST` of each at the most, in their order.

    A name of one word with a capital is written so, unless the text knows no capitals. A plain word means the one that
    both know behind "my", "our" or "the".
    """
    known: dict[str | None, list[Fact]] = {}
    for fact in facts:
        known.setdefault(folded_slot(fact.entity), []).append(fact)
    things = {words_of(some[0].entity or ""): some[:MOST] for entity, some in known.items() if entity not in NOBODY}
    named = {
        name: None
        for name, (start, end) in names_in(text, Names.alone(things))
        if _is_meant(things[name][0].entity or "", text, start, end)
    }
    return [fact for name in named for fact in things[name]]


def spoken_of(turn: Turn) -> list[Candidate]:
    """Find what is known of whom or what the prompt names."""
    least = turn.judge.least_of_named if turn.judge else None
    if least is None or turn.narrowed:
        return []
    weak = [each for each in turn.facts if each.spoken_of and each.verdict == NO_EVIDENCE]
    found = [
        Candidate(each.fact, LOOKUP, each.fact.confidence if each.probability is None else each.probability)
        for each in weak
        if each.probability is None or each.probability >= least
    ]
    return sorted(found, key=lambda each: (-each.score, each.id))


def _is_meant(entity: str, text: str, start: int, end: int) -> bool:
    before, written = text[:start], text[start:end]
    if not before.strip() and text[end : end + 1] == ":":
        # In front of what somebody says in a chat of several: who speaks is not who is spoken of.
        return False
    if " " in entity.strip() or any(map(str.isdecimal, entity)):
        return True
    if entity != entity.lower():
        return written != written.lower() or text == text.lower()
    return _KNOWN.search(before.lower()) is not None
