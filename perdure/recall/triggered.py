"""How a prompt stands to the triggers of memories: texts that say in which situations a memory matters."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from perdure.store.triggers import Trigger
from perdure.store.vocabulary import terms
from perdure.text.normalise import fold
from perdure.text.questions import QUIET

AIMED: Final = 8
"""So many memories more are candidates for how near a trigger of theirs is."""
_PRIOR_MEAN, _PRIOR_SPREAD, _PRIOR_COUNT = 0.15, 0.12, 10
"""The background of a store with almost no triggers."""
COLUMNS: Final = (
    "trigger", "trigger_mean", "trigger_above", "trigger_rank", "trigger_behind", "trigger_best", "trigger_share",
    "trigger_rarest", "triggers", "nearest",
)  # fmt: skip
RISING: Final = frozenset(
    {"trigger", "trigger_mean", "trigger_above", "trigger_behind", "trigger_share", "trigger_rarest", "nearest"}
)
"""A memory that has more of these is never held less likely for it."""


IN_COMMON: Final = 0.6
"""By so many of a trigger's words, and two of them if it has two, a prompt meets it where no vector tells more."""


def met(words: Collection[str], some: Iterable[Trigger]) -> dict[str, tuple[float, Trigger]]:
    """Return by the memory's id the trigger that has the largest share of its words in a prompt, if that is enough.

    One that everyday prompts meet, too, says nothing. `words`: stems of the prompt.
    """
    found: dict[str, tuple[float, Trigger]] = {}
    for each in some:
        share = _in_common(terms(each.text), words)
        if share > found.get(each.fact_id, (0.0,))[0] and not _meets_any(each.text):
            found[each.fact_id] = share, each
    return found


def _in_common(own: Collection[str], words: Collection[str]) -> float:
    both = sum(word in words for word in own)
    return both / len(own) if both >= max(1, min(2, len(own)), IN_COMMON * len(own)) else 0.0


def _meets_any(text: str) -> bool:
    return any(_in_common(terms(text), words) for words in _quiet())


@cache
def _quiet() -> list[frozenset[str]]:
    return [terms(text) for text in QUIET]


@dataclass(frozen=True, slots=True)
class Triggered:
    """How near a prompt is to the triggers of its candidates; the cosine of a trigger is that of its nearest part."""

    texts: Sequence[Sequence[str]]  # the triggers of each candidate; empty: it has none
    cosines: Sequence[Sequence[float]]  # and of each of these, in the same order
    mean: float = _PRIOR_MEAN  # of the cosines with all triggers that the caller may see
    spread: float = _PRIOR_SPREAD

    @classmethod
    def of(
        cls,
        texts: Sequence[Sequence[str]],
        cosines: Sequence[Sequence[float]],
        total: float,
        squares: float,
        count: int,
    ) -> Triggered:
        """Mix the background, the sum of `count` cosines and of their squares, with that of almost no triggers."""
        mean = (total + _PRIOR_MEAN * _PRIOR_COUNT) / (count + _PRIOR_COUNT)
        around = max(0.0, squares - 2 * mean * total + count * mean**2)
        spread = math.sqrt((around + _PRIOR_SPREAD**2 * _PRIOR_COUNT) / (count + _PRIOR_COUNT))
        return cls(texts, cosines, mean, spread)

    def columns(self, own: Sequence[float], weights: Mapping[str, float], whole: float) -> list[tuple[float, ...]]:
        """Return what stands in `COLUMNS` for each candidate.

        Args:
            own: the cosine of each memory itself.
            weights: what each word of the prompt tells.
            whole: what all of them tell.
        """
        # To read all words of a text takes many times as long.
        beginnings = [word.split()[0][:-1] or word[:1] for word in weights]

        def may_share(text: str) -> bool:
            folded = fold(text)
            return any(each in folded for each in beginnings)

        best = [max(each, default=0.0) for each in self.cosines]
        ranked = sorted((each for each, has in zip(best, self.cosines, strict=True) if has), reverse=True)
        first = ranked[0] if ranked else 0.0
        found: list[tuple[float, ...]] = []
        for mine, texts, near in zip(own, self.texts, self.cosines, strict=True):
            if not near:
                found.append((0.0, 0.0, -2.0, math.log1p(AIMED), -1.0, first, 0.0, 0.0, 0.0, mine))
                continue
            top = sorted(near, reverse=True)[:2]
            shared = [[weights[word] for word in terms(text) if word in weights] for text in texts if may_share(text)]
            found.append(
                (
                    top[0],
                    sum(top) / len(top),
                    (top[0] - self.mean) / self.spread,
                    math.log1p(min(ranked.index(top[0]), AIMED)),
                    top[0] - first,
                    first,
                    max(map(sum, shared), default=0.0) / whole,
                    max((max(each) for each in shared if each), default=0.0),
                    float(len(near)),
                    max(mine, top[0]),
                )
            )
        return found
