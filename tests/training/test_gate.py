from collections.abc import Sequence

import numpy as np
import pytest

from perdure.recall.gate import ALL_NAMES, NAMES, Prompt
from training.measures import Answer, at, average_precision, life, ranked, recall_at, thresholds
from training.views import View, features

TEXTS = [
    "Kieran's motorbike insurance renews in May.",
    "Pauline is coeliac, so nothing with wheat goes on her plate.",
    "The boiler loses pressure, top it up to 1.5 bar.",
]


NAMED = ["My brother Tomas is 30.", "My sister Ines turned 28.", "Tea is for the morning."]


def view(texts: Sequence[str] = TEXTS) -> View:
    return View(texts, np.eye(3, dtype=np.float32))


def row_of(text: str, vector: Sequence[float], place: int, texts: Sequence[str] = TEXTS) -> dict[str, float]:
    places, rows = features(view(texts), Prompt(text, [text]), np.array([vector], dtype=np.float32))
    return dict(zip(ALL_NAMES, rows[places.tolist().index(place)].tolist(), strict=True))


def test_the_nearest_memory_comes_first_and_its_distance_to_the_best_is_nought() -> None:
    row = row_of("what may she eat", [0.1, 0.9, 0.2], 1)
    assert row["cosine"] == pytest.approx(0.9)
    assert row["rank"] == 0
    assert row["behind"] == 0
    assert row["ahead"] == pytest.approx(0.7)


def test_a_shared_rare_word_is_evidence() -> None:
    with_word = row_of("how is the boiler today", [0.3, 0.3, 0.3], 2)
    assert with_word["share"] > 0.3
    assert row_of("how is the boiler today", [0.3, 0.3, 0.3], 0)["share"] == 0


def test_a_misspelt_word_finds_the_one_that_is_meant() -> None:
    row = row_of("is the boilr alright", [0.3, 0.3, 0.3], 2)
    assert row["typos"] == 1
    assert row["share"] > 0.3


def test_a_name_that_another_memory_bears_speaks_against_this_one() -> None:
    assert row_of("how old is Ines", [0.3, 0.3, 0.3], 0, NAMED)["named_else"] > 0
    assert row_of("how old is Ines", [0.3, 0.3, 0.3], 1, NAMED)["named_else"] == 0


def test_the_best_part_counts() -> None:
    vectors = np.array([[1, 0, 0], [0, 0, 1]], dtype=np.float32)
    places, rows = features(view(), Prompt("a. b", ["a", "b"]), vectors)
    cosines = dict(zip(places.tolist(), rows[:, NAMES.index("cosine")].tolist(), strict=True))
    assert cosines == {0: 1.0, 1: 0.0, 2: 1.0}


def test_triggers_stand_beside_the_memory_and_what_has_none_is_told_apart() -> None:
    aims = np.array([[1, 0, 0], [0.5, 0, 0], [0.2, 0, 0]], dtype=np.float32)
    store = View(
        TEXTS, np.eye(3, dtype=np.float32), [[], ["going out", "to the bakery"], ["the heating is cold"]], aims
    )
    places, rows = features(store, Prompt("a bakery", ["a bakery"]), np.array([[0.8, 0.1, 0.3]], dtype=np.float32))
    found = {
        place: dict(zip(ALL_NAMES, row, strict=True)) for place, row in zip(places.tolist(), rows.tolist(), strict=True)
    }
    has = found[1]
    assert (has["trigger"], has["trigger_mean"], has["nearest"]) == pytest.approx((0.8, 0.6, 0.8))
    assert (has["triggers"], has["trigger_rank"], has["trigger_behind"]) == (2, 0, 0)
    assert has["trigger_share"] > 0
    assert has["trigger_above"] > found[2]["trigger_above"]
    assert found[2]["trigger_behind"] == pytest.approx(-0.64)
    assert (found[0]["triggers"], found[0]["trigger"], found[0]["nearest"]) == pytest.approx((0, 0, 0.8))


def test_a_memory_far_from_the_prompt_is_a_candidate_by_its_trigger() -> None:
    texts = [f"memory {number}" for number in range(40)]
    vectors = np.tile(np.array([[1, 0]], dtype=np.float32), (40, 1))
    vectors[39] = 0, 1
    store = View(texts, vectors, [()] * 39 + [["the situation"]], np.array([[1, 0]], dtype=np.float32))
    places, _ = features(store, Prompt("x", ["x"]), np.array([[1, 0]], dtype=np.float32))
    assert 39 in places


def answer(scores: Sequence[float], labels: Sequence[bool], wanted: int | None = None) -> Answer:
    marks = np.array(labels, dtype=bool)
    return Answer(np.array(scores), marks, int(marks.sum()) if wanted is None else wanted)


def test_average_precision_of_a_perfect_and_of_a_poor_ranking() -> None:
    labels = np.array([True, False, True])
    assert average_precision(labels, np.array([0.9, 0.1, 0.8])) == 1.0
    assert average_precision(labels, np.array([0.1, 0.9, 0.2])) == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_what_is_no_candidate_lowers_the_average_precision() -> None:
    assert ranked([answer([0.9], [True], wanted=2)]) == 0.5


def test_prompts_that_need_nothing_weigh_as_in_life() -> None:
    needing, idle = life([answer([1.0], [True])] * 7 + [answer([1.0], [False])] * 26)
    assert idle * 26 / (needing * 7 + idle * 26) == pytest.approx(0.65)


def test_figures_at_a_threshold() -> None:
    found = at([answer([0.9, 0.2], [True, True]), answer([0.8], [False]), answer([0.1], [False])], 0.5)
    assert (found.recall, found.silence) == (0.5, 0.5)
    assert found.precision == pytest.approx(1 / (1 + 0.65 / 0.35 / 2))


def test_recall_at_a_precision() -> None:
    found = [answer([0.9, 0.2], [True, True]), answer([0.5], [False])]
    assert recall_at(found, 0.8) == 0.5
    assert recall_at(found, 0.3) == 1.0


def test_the_named_points_go_from_strict_to_generous() -> None:
    given = [answer([0.9], [True])] * 30 + [answer([0.5], [True])] * 10 + [answer([0.4], [False])] * 30
    points = thresholds(given)
    assert points["strict"] >= points["balanced"] >= points["generous"]
