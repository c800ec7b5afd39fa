"""Where the cosines of an embedder lie, measured once on the pairs that perdure ships."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from perdure.embed.base import Embedder, Vectors
from perdure.ranking.calibration import Levels
from perdure.text.questions import PAIRS

BATCH: Final = 60
"""Texts of one call. Models let go of the interpreter in it; a server that counts requests is asked twice in all."""
CHANCE: Final = 0.99
DIGITS: Final = 4


def levels_of(embedder: Embedder, pause: Callable[[], None] = lambda: None) -> Levels:
    """Embed the pairs and return the levels."""
    import numpy as np

    questions = embedded(embedder, [question for question, _ in PAIRS], pause, query=True)
    memories = embedded(embedder, [memory for _, memory in PAIRS], pause)
    cosines = questions @ memories.T
    own = np.eye(len(PAIRS), dtype=bool)
    others = cosines[~own]
    found = others.mean(), np.quantile(others, CHANCE), cosines[own].mean()
    return Levels(*(round(float(level), DIGITS) for level in found))


def embedded(
    embedder: Embedder, texts: Sequence[str], pause: Callable[[], None] = lambda: None, *, query: bool = False
) -> Vectors:
    """Embed texts; turns go first between two calls.

    Returns float32 array of shape (len(texts), dims).
    """
    import numpy as np

    def batches() -> Iterator[Vectors]:
        for start in range(0, len(texts), BATCH):
            yield embedder.embed(texts[start : start + BATCH], query=query)
            pause()

    return np.concatenate(list(batches()))
