"""How passages are scored: on one absolute scale, by their legs, what is around them, and what was chosen before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.ranking.passages import (
    KEYWORD,
    VECTOR,
    Scored,
    Weights,
    blend,
    keyword_score,
    mmr,
    score,
    temporal_decay,
    vector_score,
)

WEIGHTS = Weights(keyword=0.3, vector=0.7)
shares = st.floats(0, 1)
lengths = st.integers(0, 1_000)
legs = st.dictionaries(st.sampled_from([KEYWORD, VECTOR]), shares)
weights = st.builds(Weights, shares, shares, *[st.floats(0, 0.5)] * 9)
passages = st.dictionaries(
    st.integers(0, 30),
    st.builds(
        Scored,
        document=st.integers(0, 2),
        place=st.integers(0, 5),
        scores=legs,
        whole=shares,
        timely=st.booleans(),
        named=st.booleans(),
        asks=st.booleans(),
        length=lengths,
    ),
    max_size=8,
)


def alone(keyword: float, vector: float, weights: Weights = WEIGHTS) -> float:
    return score({1: Scored(1, 0, {KEYWORD: keyword, VECTOR: vector})}, weights)[1]


class TestLegs:
    def test_the_worked_example_of_the_documents(self) -> None:
        assert blend({VECTOR: 0.82, KEYWORD: 0.71}, WEIGHTS) == pytest.approx(0.787)
        assert alone(keyword=0.71, vector=0.82) == pytest.approx(0.787)

    @pytest.mark.parametrize("leg", [KEYWORD, VECTOR])
    def test_a_leg_that_did_not_run_takes_nothing_away(self, leg: str) -> None:
        assert blend({leg: 0.6}, WEIGHTS) == pytest.approx(0.6)

    def test_a_leg_that_ran_and_found_nothing_does(self) -> None:
        assert blend({VECTOR: 0.6, KEYWORD: 0.0}, WEIGHTS) == pytest.approx(0.42)

    def test_without_a_leg_there_is_no_score(self) -> None:
        assert blend({}, WEIGHTS) == 0.0
        assert blend({KEYWORD: 1.0}, Weights(keyword=0.0, vector=1.0)) == 0.0

    def test_words_are_measured_by_a_text_that_has_each_once(self) -> None:
        assert keyword_score(3.0, 6.0) == 0.5
        assert keyword_score(6.0, 6.0) == 1.0
        assert keyword_score(9.0, 6.0) == 1.0
        assert keyword_score(-1.0, 6.0) == 0.0
        assert keyword_score(1.0, 0.0) == 0.0

    @given(st.floats(-1.0, 1.001), st.floats(-1.0, 1.001))
    def test_a_cosine_counts_from_what_unrelated_texts_have(self, one: float, other: float) -> None:
        assert 0.0 <= vector_score(one) <= 1.0
        assert one <= other or vector_score(one) >= vector_score(other)

    def test_the_ends_of_the_scale_of_cosines(self) -> None:
        assert vector_score(0.1) == 0.0
        assert vector_score(0.55) == pytest.approx(0.5)
        assert vector_score(1.0) == pytest.approx(1.0)


class TestScore:
    @given(passages, weights)
    def test_is_never_below_zero(self, found: dict[int, Scored], weights: Weights) -> None:
        scored = score(found, weights)
        assert scored.keys() == found.keys()
        assert all(value >= 0.0 for value in scored.values())

    def test_tells_apart_what_is_sure_and_what_is_surer(self) -> None:
        sure = Scored(1, 3, {KEYWORD: 1.0, VECTOR: 1.0}, whole=0.5)
        scored = score({1: sure, 2: replace(sure, document=2, whole=0.9)}, replace(WEIGHTS, document=0.2))
        assert scored[2] > scored[1] > 1.0

    @given(passages.filter(bool), weights, st.data())
    def test_more_of_a_leg_never_lowers_a_score(
        self, found: dict[int, Scored], weights: Weights, data: st.DataObject
    ) -> None:
        key = data.draw(st.sampled_from(sorted(found)))
        more = {leg: data.draw(st.floats(value, 1.0)) for leg, value in found[key].scores.items()}
        better = score(found | {key: replace(found[key], scores=more)}, weights)
        before = score(found, weights)
        assert all(better[other] >= before[other] - 1e-12 for other in found)

    def test_does_not_depend_on_what_else_is_a_candidate(self) -> None:
        here = {1: Scored(1, 0, {KEYWORD: 0.4, VECTOR: 0.5})}
        beside = here | {key: Scored(key, 0, {KEYWORD: 1.0, VECTOR: 1.0}) for key in range(2, 9)}
        full = replace(WEIGHTS, neighbour=0.2, document=0.2)
        assert score(beside, full)[1] == score(here, full)[1]

    def test_counts_what_stands_right_before_and_after(self) -> None:
        turns = {place: Scored(1, place, {KEYWORD: 0.1 * place}) for place in (1, 2, 3, 5)}
        scored = score(turns | {9: Scored(2, 4, {KEYWORD: 0.9})}, replace(WEIGHTS, neighbour=0.2))
        assert scored[2] == pytest.approx(0.2 + 0.2 * (0.1 + 0.3))
        # The fourth turn of another conversation is no neighbour.
        assert scored[5] == pytest.approx(0.5)

    def test_an_answer_counts_the_question_before_it(self) -> None:
        question = Scored(1, 1, {KEYWORD: 0.8}, asks=True)
        around = {
            2: Scored(1, 2, {KEYWORD: 0.1}),
            3: Scored(1, 3, {KEYWORD: 0.1}),
            4: Scored(2, 2, {KEYWORD: 0.1}),
        }
        weight = Weights(1, 0, answer=0.2)
        scored = score({1: question, **around}, weight)
        assert scored[2] == pytest.approx(0.1 + 0.2 * 0.8)
        assert scored[3] == scored[4] == pytest.approx(0.1)
        assert score({1: replace(question, asks=False), **around}, weight)[2] == pytest.approx(0.1)

    @pytest.mark.parametrize(
        ("weight", "passage", "by"),
        [
            (Weights(1, 0, document=0.2), Scored(1, 0, {KEYWORD: 0.5}, whole=0.5), 0.1),
            (Weights(1, 0, first=0.06), Scored(1, 0, {KEYWORD: 0.5}), 0.06),
            (Weights(1, 0, first=0.06), Scored(1, 1, {KEYWORD: 0.5}), 0.0),
            (Weights(1, 0, period=0.06), Scored(1, 0, {KEYWORD: 0.5}, timely=True), 0.06),
            (Weights(1, 0, speaker=0.06), Scored(1, 0, {KEYWORD: 0.5}, named=True), 0.06),
            (Weights(1, 0, question=0.08), Scored(1, 0, {KEYWORD: 0.5}, asks=True), -0.08),
            (Weights(1, 0, short=0.15), Scored(1, 0, {KEYWORD: 0.5}, length=100), -0.075),
            (Weights(1, 0, short=0.15), Scored(1, 0, {KEYWORD: 0.5}, length=2_000), 0.0),
        ],
    )
    def test_is_moved_by_what_a_passage_is(self, weight: Weights, passage: Scored, by: float) -> None:
        assert score({1: passage}, weight)[1] == pytest.approx(0.5 + by)


class TestDecay:
    def test_halves_after_each_half_life(self) -> None:
        assert temporal_decay(30.0) == pytest.approx(0.5)
        assert temporal_decay(60.0) == pytest.approx(0.25)
        assert temporal_decay(7.0, half_life_days=7.0) == pytest.approx(0.5)

    def test_today_and_the_future_are_as_they_are(self) -> None:
        assert temporal_decay(0.0) == temporal_decay(-400.0) == 1.0

    @given(st.floats(0, 1e6), st.floats(0, 1e6))
    def test_never_rises_with_age(self, one: float, other: float) -> None:
        younger, older = sorted((one, other))
        assert 0.0 <= temporal_decay(older) <= temporal_decay(younger) <= 1.0


words = st.frozensets(st.sampled_from("abcdef"), min_size=1)
ranked = st.lists(st.tuples(shares, words), max_size=12).map(lambda items: sorted(items, key=lambda item: -item[0]))


class TestMmr:
    @given(ranked, st.integers(0, 15), shares)
    def test_chooses_distinct_positions(
        self, items: list[tuple[float, frozenset[str]]], limit: int, weight: float
    ) -> None:
        chosen = mmr(items, limit, weight)
        assert len(chosen) == len(set(chosen)) == min(limit, len(items))
        assert set(chosen) <= set(range(len(items)))

    @given(ranked, st.integers(0, 15))
    def test_weight_one_keeps_the_order(self, items: list[tuple[float, frozenset[str]]], limit: int) -> None:
        assert mmr(items, limit, 1.0) == list(range(min(limit, len(items))))

    @given(ranked.filter(bool), shares.filter(lambda weight: weight > 0.0))
    def test_the_best_comes_first(self, items: list[tuple[float, frozenset[str]]], weight: float) -> None:
        assert mmr(items, 1, weight) == [0]

    def test_a_twin_gives_way_to_what_is_new(self) -> None:
        said, other = frozenset("abc"), frozenset("xyz")
        items = [(0.9, said), (0.89, said), (0.7, other)]
        assert mmr(items, 3, 0.7) == [0, 2, 1]
        assert mmr(items, 3, 1.0) == [0, 1, 2]

    def test_a_scale_of_its_own_changes_nothing(self) -> None:
        items = [(0.9, frozenset("abc")), (0.89, frozenset("abc")), (0.7, frozenset("xyz"))]
        faint = [(value / 10, words) for value, words in items]
        assert mmr(faint, 3, 0.7) == mmr(items, 3, 0.7)
