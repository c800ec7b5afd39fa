"""One scale for the cosines of every model, and a floor that chance does not reach."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.ranking.calibration import CLEAR, MAX_LIFT, REFERENCE, Calibration, Levels, Scale, lift

COSINE = st.floats(-1.0, 1.0)


def shifted(share: float) -> Levels:
    """Return the levels of the default model after an affine change of its cosines."""
    levels = (REFERENCE.unrelated, REFERENCE.chance, REFERENCE.answer)
    return Levels(*(share + (1.0 - share) * level for level in levels))


@given(COSINE)
def test_the_default_model_is_the_scale(cosine: float) -> None:
    assert Scale.of(REFERENCE).common(cosine) == pytest.approx(cosine)
    assert Scale().common(cosine) == pytest.approx(cosine)


@given(COSINE, st.floats(0.0, 0.95))
def test_a_shift_of_all_cosines_is_undone(cosine: float, share: float) -> None:
    assert Scale.of(shifted(share)).common(share + (1.0 - share) * cosine) == pytest.approx(cosine, abs=1e-6)


@given(COSINE, COSINE, st.floats(0.0, 0.8), st.floats(0.01, 0.5), st.floats(-0.1, 0.5))
def test_what_is_nearer_stays_nearer(one: float, other: float, unrelated: float, noise: float, gain: float) -> None:
    scale = Scale.of(Levels(unrelated, unrelated + noise, unrelated + gain))
    near, far = max(one, other), min(one, other)
    assert scale.common(far) <= scale.common(near) + 1e-9
    assert scale.common(1.0) <= 1.0 + 1e-9


@given(st.floats(0.0, 0.8), st.floats(0.02, 0.15), st.floats(0.0, 0.2))
def test_chance_comes_no_nearer_than_with_the_default_model(unrelated: float, noise: float, gain: float) -> None:
    levels = Levels(unrelated, unrelated + noise, unrelated + gain)
    scale = Scale.of(levels)
    assert scale.common(levels.unrelated) == pytest.approx(REFERENCE.unrelated)
    assert scale.common(levels.chance) <= REFERENCE.chance + 1e-9
    assert scale.common(levels.answer) <= REFERENCE.answer + 1e-9


@given(COSINE, st.floats(0.0, 0.8), st.floats(0.01, 0.5), st.floats(0.01, 0.5))
def test_every_cosine_of_the_scale_is_one_of_the_model(
    cosine: float, unrelated: float, noise: float, gain: float
) -> None:
    scale = Scale.of(Levels(unrelated, unrelated + noise, unrelated + gain))
    assert scale.own(scale.common(cosine)) == pytest.approx(cosine, abs=1e-6)


def test_the_same_text_stays_the_same() -> None:
    assert Scale.of(Levels(0.75, 0.80, 0.82)).common(1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("cosine", [-1.0, 0.3, 1.0])
def test_of_a_model_that_tells_nothing_apart_nothing_is_evidence(cosine: float) -> None:
    calibration = Calibration(Scale.of(Levels(0.9, 0.9, 0.9)))
    near = [calibration.common(cosine)] * 9
    assert near[0] < calibration.floor(near)


def test_a_fixed_floor_counts_in_the_cosines_of_the_model() -> None:
    calibration = Calibration(Scale.of(shifted(0.7)), fixed=0.82)
    assert calibration.common(0.83) == 0.83
    assert calibration.floor([0.83, 0.1]) == 0.82


def test_a_quiet_store_asks_for_nothing_more() -> None:
    assert lift([[0.2, 0.1, 0.1]] * 48) == 0.0
    assert lift([]) == 0.0
    assert lift([[]]) == 0.0


def test_one_foreign_question_in_twenty_may_find_something() -> None:
    assert lift([[0.2] * 9] * 19 + [[0.9] + [0.1] * 8]) == 0.0
    assert lift([[0.2] * 9] * 18 + [[0.9] + [0.1] * 8] * 2) == MAX_LIFT


@given(st.lists(st.lists(COSINE, min_size=1, max_size=9), min_size=1, max_size=60))
def test_so_much_is_asked_for_that_they_find_nothing(nearest: list[list[float]]) -> None:
    ordered = [sorted(cosines, reverse=True) for cosines in nearest]
    more = lift(ordered)
    assert 0.0 <= more <= MAX_LIFT
    if more < MAX_LIFT:
        calibration = Calibration(lift=more)
        found = [cosines for cosines in ordered if cosines[0] > calibration.floor(cosines) + 1e-9]
        assert len(found) <= len(ordered) / 20


def test_the_floor_lies_halfway_between_a_clear_hit_and_the_background() -> None:
    assert Calibration().floor([0.8] + [0.3] * 8) == pytest.approx((CLEAR + 0.3) / 2)
    assert Calibration(lift=0.1).floor([0.8] + [0.3] * 8) == pytest.approx((CLEAR + 0.4) / 2)
