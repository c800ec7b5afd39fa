"""Between diverse and budget, if one is set: a reranker from an extension has a second look at the top."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence

from perdure.errors import ExtensionError
from perdure.recall.slot import Slot

Reranker = Callable[[str, Sequence[str]], Sequence[float]]
"""Gets the query and the texts in their order; returns a score for each, more is better."""

_log = logging.getLogger("perdure.recall")


class Reranking:
    """Asks a reranker within the deadline; without a good answer the order stays as it is."""

    def __init__(self, reranker: Reranker | None) -> None:
        """Ask `reranker`; None: no second look."""
        self._reranker = reranker
        self._slot = Slot("reranker")

    def order(self, query: str, texts: Sequence[str], deadline: float) -> list[int]:
        """Return the indexes of the texts in their new order.

        Args:
            query: what is asked.
            texts: the memories, best first.
            deadline: `time.monotonic()` after which the old order stands.
        """
        unchanged = list(range(len(texts)))
        reranker = self._reranker
        if reranker is None or len(texts) < 2:
            return unchanged
        ticket = self._slot.start(lambda: _scores(reranker, query, texts))
        scores = ticket.result(deadline - time.monotonic()) if ticket else None
        if scores is None:
            _log.warning("the reranker gave no answer (%s); the order stays", ticket.error if ticket else "busy")
            return unchanged
        return sorted(unchanged, key=lambda index: (-scores[index], index))

    def close(self) -> None:
        """End the thread."""
        self._slot.close()


def _scores(reranker: Reranker, query: str, texts: Sequence[str]) -> list[float]:
    try:
        scores = [float(score) for score in reranker(query, texts)]
    except Exception as error:
        raise ExtensionError(f"the reranker raised {type(error).__name__}") from error
    if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
        raise ExtensionError(f"the reranker gave {len(scores)} scores for {len(texts)} texts, or some are no numbers")
    return scores
