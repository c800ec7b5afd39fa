"""One order over several legs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.ranking.fuse import Fused, fuse, relative_cut

WEIGHTS = {"words": 0.5, "meaning": 0.3, "names": 0.2}
scores = st.dictionaries(
    st.sampled_from("abcdefgh"), st.floats(-1, 50, allow_nan=False).map(lambda score: round(score, 6)), max_size=8
)
legs = st.fixed_dictionaries({"words": scores, "meaning": scores}, optional={"names": scores})
Legs = dict[str, dict[str, float]]


@settings(max_examples=100)
@given(legs)
def test_scores_are_shares_that_add_up_from_their_parts(found: Legs) -> None:
    fused = fuse(found, WEIGHTS)
    assert {item.id for item in fused} == {candidate for leg in found.values() for candidate in leg}
    for item in fused:
        assert 0 <= item.score <= 1 + 1e-9
        assert math.isclose(item.score, sum(item.parts.values()), abs_tol=1e-12)
        assert set(item.parts) == set(found)
        assert all(part >= 0 for part in item.parts.values())


@settings(max_examples=100)
@given(legs)
def test_the_order_is_by_score_and_does_not_depend_on_the_callers(found: Legs) -> None:
    fused = fuse(found, WEIGHTS)
    assert fused == sorted(fused, key=lambda item: (-item.score, item.id))
    turned = {leg: dict(reversed(list(values.items()))) for leg, values in reversed(list(found.items()))}
    again = fuse(turned, WEIGHTS)
    assert [item.id for item in again] == [item.id for item in fused]
    assert [item.score for item in again] == pytest.approx([item.score for item in fused])


@settings(max_examples=100)
@given(legs, st.sampled_from([0.125, 2.0, 1024.0]))
def test_the_size_of_a_legs_numbers_does_not_matter(found: Legs, factor: float) -> None:
    scaled = {**found, "words": {candidate: value * factor for candidate, value in found["words"].items()}}
    assert fuse(scaled, WEIGHTS) == fuse(found, WEIGHTS)


@settings(max_examples=100)
@given(legs)
def test_what_leads_every_leg_that_found_something_scores_one(found: Legs) -> None:
    with_best = {leg: {**values, "best": 60.0} for leg, values in found.items()}
    assert fuse(with_best, WEIGHTS)[0].id == "best"
    assert fuse(with_best, WEIGHTS)[0].score == pytest.approx(1.0)


def test_a_leg_that_found_nothing_does_not_lower_the_others() -> None:
    assert fuse({"words": {"a": 3.0}, "meaning": {}}, WEIGHTS)[0].score == 1.0
    assert fuse({"words": {"a": 3.0}, "meaning": {"a": -0.5}}, WEIGHTS)[0].score == 1.0


def test_the_blend_is_the_weighted_share_of_each_legs_best() -> None:
    fused = fuse({"words": {"a": 4.0, "b": 2.0}, "meaning": {"b": 0.8, "c": 0.4}}, {"words": 0.6, "meaning": 0.4})
    assert [(item.id, round(item.score, 9)) for item in fused] == [("b", 0.7), ("a", 0.6), ("c", 0.2)]
    assert [item.leg for item in fused] == ["meaning", "words", "meaning"]


def test_no_legs_no_candidates() -> None:
    assert fuse({}, {}) == []
    assert fuse({"words": {}}, WEIGHTS) == []


@settings(max_examples=100)
@given(legs, st.floats(0, 1))
def test_the_cut_keeps_a_head_of_the_order_with_the_best(found: Legs, share: float) -> None:
    fused = fuse(found, WEIGHTS)
    kept = relative_cut(fused, share)
    assert kept == fused[: len(kept)]
    assert bool(kept) is bool(fused)
    for item in fused[len(kept) :]:
        assert item.score < share * fused[0].score


def test_the_cut_is_at_its_share_of_the_best() -> None:
    fused = [Fused(name, score, {}) for name, score in (("a", 0.5), ("b", 0.3), ("c", 0.29))]
    assert [item.id for item in relative_cut(fused, 0.6)] == ["a", "b"]
    assert relative_cut([], 0.6) == []
