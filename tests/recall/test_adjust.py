"""What a memory's standing does to its score."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.ranking.decay import DAY, LIFETIMES
from perdure.recall import judge
from perdure.recall.options import ADJUSTED
from perdure.store.fact import Fact

NOW = 2e9


@dataclass(frozen=True)
class Standing:
    """What is known of a memory apart from the prompt, and whether a directive brings it up."""

    importance: float
    confidence: float
    uses: int
    age_days: float
    remaining_days: float | None
    decay_class: str
    directive: bool = False


def adjusted(score: float, standing: Standing, names: Collection[str]) -> tuple[float, Mapping[str, float]]:
    """Return the score of a memory of such standing with these adjustments, and their factors."""
    expires = None if standing.remaining_days is None else NOW + standing.remaining_days * DAY
    fact = Fact(
        "a memory", importance=standing.importance, confidence=standing.confidence, access_count=standing.uses,
        source_date=NOW - standing.age_days * DAY, expires_at=expires, decay_class=standing.decay_class,
        last_confirmed_at=NOW,
    )  # fmt: skip
    return judge.adjusted(score, fact, NOW, set(names) - (set() if standing.directive else {"directive"}))


PLAIN = Standing(importance=0.5, confidence=1.0, uses=0, age_days=0.0, remaining_days=None, decay_class="normal")
ALL = frozenset({"importance_recency", "long_term", "salience", "freshness", "confidence", "directive"})
LEVELS = ("normal", "stable", "permanent")

shares = st.floats(0, 1)
days = st.floats(0, 10_000)
standings = st.builds(
    Standing, shares, shares, st.integers(0, 10**9), days, st.none() | days, st.sampled_from(list(LIFETIMES)),
    st.booleans(),
)  # fmt: skip
switched = st.sets(st.sampled_from(sorted(ALL)))


@pytest.mark.parametrize(
    ("switch", "standing", "factor"),
    [
        ("importance_recency", replace(PLAIN, importance=1.0, age_days=45.0), 0.9),
        ("importance_recency", replace(PLAIN, importance=0.0, age_days=400.0), 0.7 * 0.8),
        ("importance_recency", replace(PLAIN, importance=0.5, age_days=0.0), 0.85),
        ("long_term", replace(PLAIN, decay_class="permanent"), 1.2),
        ("long_term", replace(PLAIN, decay_class="stable"), 1.1),
        ("long_term", replace(PLAIN, decay_class="durable"), 1.1),
        ("salience", replace(PLAIN, uses=1), 1 + 0.1 * math.log(2)),
        ("salience", replace(PLAIN, uses=9), 1 + 0.1 * math.log(10)),
        ("freshness", replace(PLAIN, remaining_days=3.5), 0.875),
        ("freshness", replace(PLAIN, remaining_days=0.0), 0.75),
        ("confidence", replace(PLAIN, confidence=0.5), 0.925),
        ("confidence", replace(PLAIN, confidence=0.0), 0.85),
        ("directive", replace(PLAIN, directive=True), 1.25),
    ],
)
def test_each_adjustment_has_its_documented_factor(switch: str, standing: Standing, factor: float) -> None:
    score, factors = adjusted(0.5, standing, {switch})
    assert factors == {switch: pytest.approx(factor)}
    assert score == pytest.approx(0.5 * factor)
    assert adjusted(0.5, standing, ALL - {switch})[1].keys().isdisjoint({switch})


@pytest.mark.parametrize(
    ("switch", "standing"),
    [
        ("importance_recency", replace(PLAIN, importance=1.0)),
        ("long_term", PLAIN),
        ("salience", PLAIN),
        ("freshness", PLAIN),
        ("freshness", replace(PLAIN, remaining_days=7.0)),
        ("confidence", PLAIN),
        ("directive", PLAIN),
    ],
)
def test_what_does_not_apply_is_not_named(switch: str, standing: Standing) -> None:
    assert adjusted(0.5, standing, {switch}) == (0.5, {})


def test_by_default_use_confidence_and_directives_count() -> None:
    standing = Standing(0.1, 0.5, 3, 200.0, 1.0, "permanent", directive=True)
    assert set(adjusted(0.5, standing, ADJUSTED)[1]) == {"salience", "confidence", "directive"}


def test_all_factors_are_multiplied() -> None:
    standing = Standing(0.1, 0.5, 3, 200.0, 1.0, "permanent", directive=True)
    score, factors = adjusted(0.5, standing, ALL)
    assert len(factors) == 6
    assert score == pytest.approx(0.5 * math.prod(factors.values()))


@given(shares, standings)
def test_with_all_switches_off_the_score_stays_as_it_is(score: float, standing: Standing) -> None:
    assert adjusted(score, standing, ()) == (score, {})


@given(shares, standings, switched)
def test_the_score_stays_between_0_and_1_and_is_explained(score: float, standing: Standing, switches: set[str]) -> None:
    new, factors = adjusted(score, standing, switches)
    assert 0.0 <= new <= 1.0
    assert new == pytest.approx(min(1.0, score * math.prod(factors.values())))


@given(st.floats(-10, 10), st.floats(-10, 10), st.integers(-5, 5), st.floats(-999, 999), switched)
def test_numbers_of_an_import_that_are_out_of_range_do_no_harm(
    importance: float, confidence: float, uses: int, day: float, switches: set[str]
) -> None:
    score, _ = adjusted(0.9, Standing(importance, confidence, uses, day, -day, "of an import"), switches)
    assert 0.0 <= score <= 1.0


@given(standings, switched, shares, shares)
def test_a_better_score_is_never_adjusted_below_a_worse_one(
    standing: Standing, switches: set[str], one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert adjusted(low, standing, switches)[0] <= adjusted(high, standing, switches)[0]


BETTER: dict[str, st.SearchStrategy[list[Any]]] = {
    "importance": st.lists(shares, min_size=2, max_size=2).map(sorted),
    "confidence": st.lists(shares, min_size=2, max_size=2).map(sorted),
    "uses": st.lists(st.integers(0, 10**9), min_size=2, max_size=2).map(sorted),
    "age_days": st.lists(days, min_size=2, max_size=2).map(lambda pair: sorted(pair, reverse=True)),
    "remaining_days": st.lists(days, min_size=2, max_size=2).map(sorted) | days.map(lambda some: [some, None]),
    "decay_class": st.lists(st.sampled_from(LEVELS), min_size=2, max_size=2).map(
        lambda pair: sorted(pair, key=LEVELS.index)
    ),
    "directive": st.just([False, True]),
}


@pytest.mark.parametrize("name", BETTER)
@given(data=st.data())
def test_a_better_standing_never_lowers_the_score(name: str, data: st.DataObject) -> None:
    worse, better = data.draw(BETTER[name])
    score, standing, switches = data.draw(shares), data.draw(standings), data.draw(switched)
    low = adjusted(score, replace(standing, **{name: worse}), switches)[0]
    high = adjusted(score, replace(standing, **{name: better}), switches)[0]
    assert low <= high


@pytest.mark.parametrize(
    ("name", "worse", "better"),
    [
        ("importance", 0.2, 0.8),
        ("confidence", 0.2, 0.8),
        ("uses", 2, 20),
        ("age_days", 80.0, 10.0),
        ("remaining_days", 1.0, 6.0),
        ("decay_class", "stable", "permanent"),
        ("directive", False, True),
    ],
)
def test_each_part_of_a_standing_counts(name: str, worse: Any, better: Any) -> None:
    low, high = (adjusted(0.3, replace(PLAIN, **{name: value}), ALL)[0] for value in (worse, better))
    assert low < high
