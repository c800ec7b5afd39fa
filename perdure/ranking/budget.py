"""How many of the ranked memories fit."""

from __future__ import annotations

from collections.abc import Sequence


def fit(costs: Sequence[int], budget: int, limit: int) -> list[int]:
    """Return the indexes of at most `limit` ranked items whose costs fit into a budget of tokens.

    An item that does not fit is passed over, so that a long one does not shut out the short ones after it.
    """
    chosen: list[int] = []
    left = budget
    for index, cost in enumerate(costs):
        if len(chosen) == limit:
            break
        if cost <= left:
            chosen.append(index)
            left -= cost
    return chosen
