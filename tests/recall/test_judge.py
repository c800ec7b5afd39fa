"""Evidence before order: which candidates pass, and in which order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.recall.gate import shipped
from perdure.recall.judge import NAMED, Blend, Fitted
from perdure.recall.options import LEXICAL, LOOKUP, VECTOR, RecallOptions
from perdure.recall.turn import Candidate
from perdure.store.fact import Fact

WEIGHTS = {LEXICAL: 0.6, VECTOR: 0.4}
BLEND = Blend(RecallOptions(weights=WEIGHTS), floor=0.4)
FITTED = Fitted(shipped(), threshold=0.5)
scores = st.dictionaries(
    st.sampled_from("abcdefgh"), st.floats(-1, 50, allow_nan=False).map(lambda score: round(score, 6)), max_size=8
)


def memory(
    cosine: float | None = None, coverage: float = 0.0, rare: bool = False, probability: float | None = None
) -> Candidate:
    return Candidate(Fact("a memory"), cosine=cosine, coverage=coverage, rare=rare, probability=probability)


def candidates(*legs: tuple[str, dict[str, float]]) -> list[Candidate]:
    """Return candidates of these raw scores, by leg."""
    names = sorted({name for _, found in legs for name in found})
    return [
        Candidate(Fact(name, id=name), scores={leg: found[name] for leg, found in legs if name in found})
        for name in names
    ]


@pytest.mark.parametrize(
    ("cosine", "coverage", "rare", "passes"),
    [
        (0.4, 0.0, False, True),
        (0.9, 1.0, True, True),
        (0.39, 0.0, False, False),
        (0.0, 0.75, True, True),
        (-0.3, 1.0, True, True),
        (0.0, 0.74, True, False),
        (0.0, 1.0, False, False),
        (0.31, 0.45, False, True),
        (0.31, 0.44, False, False),
        (0.29, 0.45, False, False),
        (None, 0.34, True, True),
        (None, 1.0, True, True),
        (None, 0.33, True, False),
        (None, 1.0, False, True),
        (None, 0.5, False, False),
        (None, 0.0, False, False),
    ],
)
def test_what_passes_by_cosine_and_words(cosine: float | None, coverage: float, rare: bool, passes: bool) -> None:
    assert BLEND.passes(memory(cosine, coverage, rare)) is passes


@settings(max_examples=100)
@given(st.floats(-1, 1), st.floats(0, 1), st.booleans(), st.floats(0, 1), st.floats(0, 1))
def test_more_evidence_never_shuts_the_gate(
    cosine: float, coverage: float, rare: bool, nearer: float, further: float
) -> None:
    if BLEND.passes(memory(cosine, coverage, rare)):
        assert BLEND.passes(memory(min(1.0, cosine + nearer), coverage, rare))
        assert BLEND.passes(memory(cosine, min(1.0, coverage + further), True))


@pytest.mark.parametrize("judge", [BLEND, FITTED])
def test_no_evidence_never_passes(judge: Blend | Fitted) -> None:
    assert not judge.passes(memory())


def test_a_likely_memory_passes_and_an_unlikely_one_does_not() -> None:
    assert FITTED.passes(memory(0.6, probability=0.5))
    assert not FITTED.passes(memory(0.9, 1.0, True, probability=0.49))


@pytest.mark.parametrize("judge", [BLEND, FITTED])
def test_a_named_slot_passes_whatever_else_is_known(judge: Blend | Fitted) -> None:
    assert judge.passes(Candidate(Fact("a memory"), named=True, cosine=0.1, probability=0.01))


def test_what_has_no_vector_yet_goes_by_its_words() -> None:
    assert FITTED.passes(memory(None, 0.8, True))
    assert not FITTED.passes(memory(None, 0.1, True))


def test_the_likeliest_comes_first_and_says_what_found_it() -> None:
    given_ = [
        Candidate(Fact("a", id="a"), cosine=0.6, coverage=0.1, probability=0.6),
        Candidate(Fact("b", id="b"), cosine=0.6, coverage=0.7, probability=0.8),
        Candidate(Fact("c", id="c"), cosine=0.1, named=True, probability=0.2),
    ]
    order = FITTED.ranked(given_)
    assert [(each.id, each.leg) for each in order] == [("c", LOOKUP), ("b", LEXICAL), ("a", VECTOR)]
    assert [each.score for each in order] == [NAMED, 0.8, 0.6]
    assert FITTED.near(order) == order, "a likely memory stays, however much likelier another one is"


def test_a_blend_is_ordered_by_its_score_and_says_which_leg_gave_most() -> None:
    order = BLEND.ranked(candidates((LEXICAL, {"a": 4.0, "b": 2.0}), (VECTOR, {"b": 0.8, "c": 0.4})))
    assert [(each.id, round(each.score, 9)) for each in order] == [("b", 0.7), ("a", 0.6), ("c", 0.2)]
    assert [each.leg for each in order] == [VECTOR, LEXICAL, VECTOR]


@settings(max_examples=100)
@given(scores, scores, st.floats(0, 1))
def test_the_cut_keeps_a_head_of_the_order_with_the_best(
    words: dict[str, float], meaning: dict[str, float], share: float
) -> None:
    judge = Blend(RecallOptions(weights=WEIGHTS, relative_cut=share))
    ranked = judge.ranked(candidates((LEXICAL, words), (VECTOR, meaning)))
    assert ranked == sorted(ranked, key=lambda each: (-each.score, each.id))
    kept = judge.near(ranked)
    assert kept == ranked[: len(kept)]
    assert bool(kept) is bool(ranked)
    for each in ranked[len(kept) :]:
        assert each.score < share * ranked[0].score


def test_the_cut_is_at_its_share_of_the_best() -> None:
    judge = Blend(RecallOptions(relative_cut=0.6))
    ranked = [Candidate(Fact(name, id=name), score=score) for name, score in (("a", 0.5), ("b", 0.3), ("c", 0.29))]
    assert [each.id for each in judge.near(ranked)] == ["a", "b"]
    assert judge.near([]) == []
