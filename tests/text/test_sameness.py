"""Which texts mean the same, and which only look alike."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.text.sameness import details, said, says_no_more, says_the_same


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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The staging database is called heron.", "the staging database is  called: HERON!!"),
        ("My dentist is Doctor Wágner", "My dentist is Doctor Wagner."),
        ("I really like tea", "I like tea"),
        ("...", "..."),
    ],
)
def test_what_a_text_says_does_not_depend_on_how_it_is_written(one: str, other: str) -> None:
    assert said(one) == said(other)


NAMES = ["Anna", "bruno", "Peter", "Peters", "Dad", "Mum", "my son", "my sons", "my child", "my children", "we", "they"]
FIGURES = ["5 mg", "10 mg", "-5 mg", "5.5 mg", "five mg", "twenty mg"]
VERBS = ["takes", "never takes", "does not take", "doesn't take", "used to take"]
THINGS = ["ramipril", "aspirin", "C", "C++", "C#", "the $5 pack", "the €5 pack"]
DAYS = ["on Monday", "on Tuesday", "in May", "in June", "in the morning"]
sentence = st.tuples(*(st.sampled_from(each) for each in (NAMES, VERBS, FIGURES, THINGS, DAYS)))


@settings(max_examples=300)
@given(sentence, sentence, st.sampled_from(["", "!", "..", " ,"]))
def test_texts_that_differ_in_a_detail_never_say_the_same(
    one: tuple[str, ...], other: tuple[str, ...], end: str
) -> None:
    first, second = (
        f"{who} {does} {much} of {what} {when} with a glass of water" for who, does, much, what, when in (one, other)
    )
    assert (said(first) == said(f"{second.upper()}{end}")) is (one == other)


def test_a_long_text_is_read_to_its_end() -> None:
    page = "The heron stands in the water and waits. " * 200
    assert said(f"{page}Dad knows it.") != said(f"{page}Mum knows it.")


@pytest.mark.parametrize(
    "text",
    [
        "I live in Graz.",
        "user: By the way, I live in Graz.",
        "user: Please remember that I live in Graz",
        "user: I live in graz",
    ],
)
def test_a_text_that_says_no_more_is_told(text: str) -> None:
    assert says_no_more(text, "I live in Graz.")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("user: Mum takes 5 mg of ramipril every morning.", "Dad takes 5 mg of ramipril every morning."),
        ("user: Anna takes 5 mg of ramipril every morning.", "Bruno takes 5 mg of ramipril every morning."),
        ("user: anna takes 5 mg of ramipril every morning.", "bruno takes 5 mg of ramipril every morning."),
        ("user: Dad takes 10 mg of ramipril every morning.", "Dad takes 5 mg of ramipril every morning."),
        ("user: Dad takes no ramipril in the morning.", "Dad takes ramipril in the morning."),
        ("user: Dad takes ramipril every Monday morning.", "Dad takes ramipril every morning."),
        ("user: Dad takes ramipril every morning, says Kay.", "Dad takes ramipril every morning."),
    ],
)
def test_a_text_that_says_more_is_told(text: str, known: str) -> None:
    assert not says_no_more(text, known)
