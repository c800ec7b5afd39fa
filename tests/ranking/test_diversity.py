"""Near-duplicates give way."""

from __future__ import annotations

from collections.abc import Hashable
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.ranking.fuse import diverse, jaccard


def test_what_says_the_same_gives_way_to_the_better_ranked() -> None:
    ranked = [("a", "door"), ("b", "door"), ("c", "Linz")]
    assert diverse(ranked) == {"b": "near-duplicate of a"}
    assert set(diverse(ranked[::-1])) == {"a"}


Shown = tuple[str, Hashable]
shown = st.tuples(st.uuids().map(str), st.sampled_from(["tea", "green tea", "tea pot"]))
memories = st.lists(shown, max_size=12, unique_by=lambda item: item[0])


@settings(max_examples=100)
@given(memories)
def test_what_stays_is_different_and_nothing_vanishes_without_a_survivor(ranked: list[Shown]) -> None:
    gone = diverse(ranked)
    kept = [item for item in ranked if item[0] not in gone]
    assert bool(kept) is bool(ranked)
    assert diverse(kept) == {}
    for reason in gone.values():
        assert reason.rsplit(" ", 1)[1] in {name for name, _ in ranked}


@settings(max_examples=200)
@given(memories, st.randoms(use_true_random=False))
def test_the_order_decides_which_of_equals_stays_and_nothing_else(ranked: list[Shown], random: Random) -> None:
    shuffled = random.sample(ranked, len(ranked))
    assert _said(ranked) == _said(shuffled)


def _said(ranked: list[Shown]) -> set[Hashable]:
    gone = diverse(ranked)
    return {said for name, said in ranked if name not in gone}


@settings(max_examples=100)
@given(st.frozensets(st.sampled_from("abcdef")), st.frozensets(st.sampled_from("abcdef")))
def test_jaccard_is_a_symmetric_share(one: frozenset[str], other: frozenset[str]) -> None:
    assert 0 <= jaccard(one, other) <= 1
    assert jaccard(one, other) == jaccard(other, one)
    assert jaccard(one, one) == (1.0 if one else 0.0)
