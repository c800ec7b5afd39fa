"""Near-duplicates and contradictions give way."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.ranking.diversity import Shown, diverse, jaccard

LOCATION = ("user", "location")


def test_a_near_duplicate_gives_way_to_the_better_ranked() -> None:
    ranked = [
        Shown("a", "The office code is 7 and the door is blue"),
        Shown("b", "the office code is 7, and the door is BLUE!"),
        Shown("c", "The office is in Linz"),
    ]
    assert diverse(ranked) == {"b": "near-duplicate of a"}
    assert set(diverse(ranked[::-1])) == {"a"}


def test_an_older_value_gives_way_even_when_it_ranks_better() -> None:
    ranked = [
        Shown("old", "I live in Graz", LOCATION, single=True, date=1.0),
        Shown("new", "I moved to Linz last spring", LOCATION, single=True, date=2.0),
    ]
    assert diverse(ranked) == {"old": "older value of the slot of new"}


def test_of_values_of_the_same_date_the_better_ranked_stays() -> None:
    ranked = [Shown(name, f"I live in {name}", LOCATION, single=True, date=1.0) for name in ("Graz", "Linz")]
    assert diverse(ranked) == {"Linz": "older value of the slot of Graz"}


def test_a_slot_with_many_values_keeps_them_all() -> None:
    ranked = [
        Shown("a", "My brother is a pilot", ("user", "brother"), date=1.0),
        Shown("b", "My brother is married to Eva", ("user", "brother"), date=2.0),
    ]
    assert diverse(ranked) == {}


def test_an_older_value_does_not_push_out_its_neighbour() -> None:
    ranked = [
        Shown("old", "I live in Graz near the river", LOCATION, single=True, date=1.0),
        Shown("twin", "I live in Graz near the river"),
        Shown("new", "Linz is my home", LOCATION, single=True, date=2.0),
    ]
    assert set(diverse(ranked)) == {"old"}


texts = st.lists(st.sampled_from(["tea", "green", "hot", "cup", "pot", "leaf"]), max_size=6).map(" ".join)
shown = st.builds(
    Shown,
    id=st.uuids().map(str),
    text=texts,
    slot=st.sampled_from([None, LOCATION, ("user", "name")]),
    single=st.booleans(),
    date=st.floats(0, 10),
)


@settings(max_examples=100)
@given(st.lists(shown, max_size=12, unique_by=lambda item: item.id))
def test_what_stays_is_different_and_nothing_vanishes_without_a_survivor(ranked: list[Shown]) -> None:
    gone = diverse(ranked)
    kept = [item for item in ranked if item.id not in gone]
    assert bool(kept) is bool(ranked)
    assert diverse(kept) == {}
    for reason in gone.values():
        assert reason.rsplit(" ", 1)[1] in {item.id for item in ranked}


@settings(max_examples=100)
@given(st.frozensets(st.sampled_from("abcdef")), st.frozensets(st.sampled_from("abcdef")))
def test_jaccard_is_a_symmetric_share(one: frozenset[str], other: frozenset[str]) -> None:
    assert 0 <= jaccard(one, other) <= 1
    assert jaccard(one, other) == jaccard(other, one)
    assert jaccard(one, one) == (1.0 if one else 0.0)
