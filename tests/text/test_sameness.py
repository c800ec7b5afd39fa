"""Which texts mean the same, and which only look alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.text.sameness import details, says_the_same


def same(one: str, other: str) -> bool:
    return details(one) == details(other) and says_the_same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I love hiking.", "I really enjoy hiking!"),
        ("I like big dogs", "i like large dogs."),
        ("I live in Lisbon.", "I live in Lisbon, near the river."),
        ("I won't quit.", "I won't quit, no matter what."),
        (
            "Nice moments like these remind me how much kindness and compassion matter.",
            "These moments remind me of how important kindness and compassion are.",
        ),
        ("My mum plays the piano", "My mother plays piano"),
    ],
)
def test_other_words_for_the_same(one: str, other: str) -> None:
    assert same(one, other)
    assert same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The meeting is at 10", "The meeting is at 11"),
        ("I have two cats", "I have three cats"),
        ("I met Ann in town", "I met Bob in town"),
        ("I like tea", "I don't like tea"),
        ("I like tea", "I used to like tea"),
        ("I like tea", "I like tea only in winter"),
        ("I like tea", "My sister likes tea"),
        ("I prefer tea over coffee", "I prefer coffee over tea"),
        ("My red car is fast", "My blue car is fast"),
        ("I work at the bakery", "I worked at the bakery"),
        ("My sister lives near the sea", "My brother lives near the sea"),
        ("The gym opens on Monday", "The gym opens on Tuesday"),
        ("Version 1.2 is out", "Version 1.3 is out"),
        ("I will visit my aunt", "I visit my aunt"),
        ("My red car goes fast along the winding coast road", "My blue car goes fast along the winding coast road"),
        ("I like tea", "I like green tea"),
    ],
)
def test_what_only_looks_alike(one: str, other: str) -> None:
    assert not same(one, other)
    assert not same(other, one)


def test_a_time_that_depends_on_the_day_is_seen() -> None:
    assert details("The dentist is tomorrow").relative
    assert not details("The dentist is kind").relative


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_the_same_as_itself_and_order_does_not_matter(one: str, other: str) -> None:
    assert same(one, one)
    assert same(one, other) == same(other, one)
