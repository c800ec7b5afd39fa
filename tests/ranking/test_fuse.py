"""One order over several legs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.ranking.fuse import fuse

WEIGHTS = {"words": 0.5, "meaning": 0.3, "names": 0.2}
scores = st.dictionaries(
    st.sampled_from("abcdefgh"), st.floats(-1, 50, allow_nan=False).map(lambda score: round(score, 6)), max_size=8
)
legs = st.fixed_dictionaries({"words": scores, "meaning": scores}, optional={"names": scores})
Legs = dict[str, dict[str, float]]


def scored(found: Legs, weights: dict[str, float] = WEIGHTS) -> dict[str, float]:
    """Return the score of each candidate."""
    return {name: sum(parts.values()) for name, parts in fuse(found, weights).items()}


@settings(max_examples=100)
@given(legs)
def test_scores_are_shares_that_add_up_from_their_parts(found: Legs) -> None:
    fused = fuse(found, WEIGHTS)
    assert fused.keys() == {candidate for leg in found.values() for candidate in leg}
    for parts in fused.values():
        assert 0 <= sum(parts.values()) <= 1 + 1e-9
        assert set(parts) == set(found)
        assert all(part >= 0 for part in parts.values())


@settings(max_examples=100)
@given(legs)
def test_the_order_of_the_callers_does_not_matter(found: Legs) -> None:
    turned = {leg: dict(reversed(list(values.items()))) for leg, values in reversed(list(found.items()))}
    assert scored(turned) == pytest.approx(scored(found))


@settings(max_examples=100)
@given(legs, st.sampled_from([0.125, 2.0, 1024.0]))
def test_the_size_of_a_legs_numbers_does_not_matter(found: Legs, factor: float) -> None:
    scaled = {**found, "words": {candidate: value * factor for candidate, value in found["words"].items()}}
    assert fuse(scaled, WEIGHTS) == fuse(found, WEIGHTS)


@settings(max_examples=100)
@given(legs)
def test_what_leads_every_leg_that_found_something_scores_one(found: Legs) -> None:
    with_best = {leg: {**values, "best": 60.0} for leg, values in found.items()}
    best = scored(with_best)
    assert best["best"] == max(best.values()) == pytest.approx(1.0)


def test_a_leg_that_found_nothing_does_not_lower_the_others() -> None:
    assert scored({"words": {"a": 3.0}, "meaning": {}}) == {"a": 1.0}
    assert scored({"words": {"a": 3.0}, "meaning": {"a": -0.5}}) == {"a": 1.0}


def test_the_blend_is_the_weighted_share_of_each_legs_best() -> None:
    found = {"words": {"a": 4.0, "b": 2.0}, "meaning": {"b": 0.8, "c": 0.4}}
    assert scored(found, {"words": 0.6, "meaning": 0.4}) == pytest.approx({"b": 0.7, "a": 0.6, "c": 0.2})


def test_no_legs_no_candidates() -> None:
    assert fuse({}, {}) == {}
    assert fuse({"words": {}}, WEIGHTS) == {}
