"""How many memories fit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.ranking.fuse import fit


@pytest.mark.parametrize(
    ("costs", "budget", "limit", "chosen"),
    [
        ([3, 3, 3], 9, 10, [0, 1, 2]),
        ([3, 3, 3], 8, 10, [0, 1]),
        ([3, 9, 3], 6, 10, [0, 2]),
        ([1, 1, 1], 9, 2, [0, 1]),
        ([1], 9, 0, []),
        ([1], 0, 9, []),
        ([1], -5, 9, []),
        ([], 9, 9, []),
    ],
)
def test_what_fits(costs: list[int], budget: int, limit: int, chosen: list[int]) -> None:
    assert fit(costs, budget, limit) == chosen


@settings(max_examples=100)
@given(st.lists(st.integers(1, 50), max_size=30), st.integers(-5, 200), st.integers(0, 12))
def test_never_above_the_budget_and_nothing_that_fits_is_left_out(costs: list[int], budget: int, limit: int) -> None:
    chosen = fit(costs, budget, limit)
    left = budget - sum(costs[index] for index in chosen)
    assert chosen == sorted(set(chosen))
    assert len(chosen) <= limit
    assert left >= 0 or not chosen
    if len(chosen) < limit:
        assert all(cost > left for index, cost in enumerate(costs) if index not in chosen)
