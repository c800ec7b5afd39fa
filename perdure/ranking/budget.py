"""How many of the ranked memories fit."""

from __future__ import annotations

from collections.abc import Sequence


def fit(costs: Sequence[int], budget: int, limit: int) -> list[int]:
    """Choose from items in order of rank.

    An item that does not fit is passed over, so that a long one does not shut out the short ones behind it.

    Args:
        costs: tokens of each item.
        budget: tokens in all.
        limit: items in all.

    Returns:
        Indexes of the chosen items, in order.
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
