"""Which passages earn their place: those that say what nothing else does, with a mark on what was replaced since."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from perdure.ranking.fuse import jaccard
from perdure.recall.block import MAX_STALE, day
from perdure.recall.turn import Candidate, Passage, Turn
from perdure.store.fact import Fact
from perdure.store.search import by_ids, superseded
from perdure.text.clean import clip
from perdure.text.normalise import match_terms
from perdure.text.sameness import Trace, echoes, parts, says_no_more, trace

_SAME = 0.6
"""A passage that shares so much of its words (Jaccard) with a fact, and has no detail more, says the same."""
_REPLACED = 10
"""Memories that a passage is held against, to see whether what it says was replaced."""


def weigh(turn: Turn) -> None:
    """Say of passages that a fact or a newer passage says the same, and mark those that say what was replaced."""
    _held_against_others(turn)
    _mark_replaced(turn)


@dataclass(frozen=True, slots=True)
class _Said:
    """What a fact or a newer passage says already."""

    by: str
    text: str
    words: frozenset[str]
    traces: Sequence[Trace]  # of its sentences that tell something


def _held_against_others(turn: Turn) -> None:
    known = [
        _Said("a fact", text, frozenset(match_terms(text)), [trace(text, turn.store.key)])
        for text in (turn.options.summaries.shown(each.fact) for each in turn.ranked)
    ]
    # What was said again counts as said last; what has no day holds now.
    for each in sorted(turn.passages, key=lambda each: -(cast(Passage, each.memory).at or math.inf)):
        text = each.memory.text
        new = _Said("another passage", text, frozenset(match_terms(text)), [one for _, one in _told(each, turn)])
        by = _said_by(new, known)
        if by:
            each.verdict = f"{by} says the same"
        else:
            known.append(new)


def _said_by(new: _Said, known: Sequence[_Said]) -> str:
    """Return who says all that a passage tells; empty: nobody does."""
    for each in known:
        if jaccard(new.words, each.words) >= _SAME and says_no_more(new.text, each.text):
            return each.by
    first = [
        next((each.by for each in known if any(echoes(one, other) for other in each.traces)), "") for one in new.traces
    ]
    return first[0] if first and all(first) else ""


def _mark_replaced(turn: Turn) -> None:
    view = replace(turn.view, include_superseded=True)
    with turn.read() as reader:
        for each in turn.passages:
            passage = cast(Passage, each.memory)
            if passage.at is None:
                continue
            told = _told(each, turn)
            # Sentence by sentence: of a long text only the rarest words are looked for.
            found = [fact for part, _ in told for fact in superseded(reader, part, view, passage.at, _REPLACED)]
            gone = {fact.id: fact for fact in found}.values()
            newer = by_ids(reader, [fact.superseded_by for fact in gone if fact.superseded_by], view)
            for fact in gone:
                ours = [part for part, one in told if _says(one, fact, newer.get(fact.superseded_by or ""), turn)]
                if ours:
                    earlier = f"earlier, {day(passage.at, turn.store.zone)}"
                    each.mark = earlier if len(told) == 1 else f'out of date: "{clip(ours[0], MAX_STALE)}"'
                    break


def _told(each: Candidate, turn: Turn) -> list[tuple[str, Trace]]:
    """Return the sentences of a passage that tell something, each with its trace."""
    passage = cast(Passage, each.memory)
    found = [(part, trace(part, turn.store.key)) for part in parts(passage.said or passage.text)]
    # A greeting tells nothing, nor does a question.
    return [(part, one) for part, one in found if len(one.words) > 1 and not part.rstrip().endswith("?")]


def _says(sentence: Trace, older: Fact, newer: Fact | None, turn: Turn) -> bool:
    """Return whether a sentence says what a memory said that has lost its place, and not what has it now."""
    old, new = (trace(fact.text, turn.store.key) if fact else None for fact in (older, newer))
    return bool(old and echoes(old, sentence)) and not (new and echoes(new, sentence))
