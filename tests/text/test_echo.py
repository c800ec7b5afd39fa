"""Which texts repeat another one, and which only share words with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.text.sameness import echoes, quotes, same, trace, traces

KEY = b"0123456789abcdef"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I live in Graz.", "You live in Graz"),
        ("I like strong tea.", "you liked strong tea!"),
        ("My dentist is Dr. Kay.", "Your dentist is Dr Kay"),
        ("我住在北京的东边。", "我住在北京的东边"),
    ],
)
def test_the_same_in_other_forms(one: str, other: str) -> None:
    assert same(trace(one, KEY), trace(other, KEY))
    assert echoes(trace(one, KEY), trace(other, KEY))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I live in Graz.", "I live in Linz."),
        ("I live in Graz.", "I don't live in Graz."),
        ("I live in Graz.", "I lived with Ann in Graz."),
        ("My name is Rex Stone.", "His name is Rex Stone."),
        ("Ann visited Bob.", "Bob visited Ann."),
        ("I was in Porto for work.", "I will be in Porto for work."),
        ("My dog has fleas.", "My neighbour's dog has fleas."),
        ("Tea.", "Tea."),  # a single word says too little
    ],
)
def test_what_differs_in_what_matters_is_not_the_same(one: str, other: str) -> None:
    assert not same(trace(one, KEY), trace(other, KEY))


@pytest.mark.parametrize(
    ("said", "echo"),
    [
        ("As you told me, you live in Graz.", True),
        ("I remember that you live in Graz near the old bridge.", True),
        ("Since Graz is where you live, take the tram.", False),
        ("You do not live in Graz near the bridge.", False),
        ("You live in Graz near bridge 7.", False),
        ("Noted: your flat in Vienna has a garden.", False),
        ("You live with Mum in Graz near the old bridge.", False),
        ("You live in Graz near the old bridge since Monday.", False),
        ("You live in Graz near the old Murinsel bridge.", False),
    ],
)
def test_a_paraphrase_is_an_echo_and_a_new_figure_is_not(said: str, echo: bool) -> None:
    assert echoes(trace(said, KEY), trace("I live in Graz near the old bridge.", KEY)) is echo


def test_each_sentence_of_what_was_shown_can_be_echoed() -> None:
    shown = traces("Ann: I moved to Bergen in May. I keep two grey cats.", KEY)
    assert any(same(trace("I keep two grey cats", KEY), each) for each in shown)
    assert any(same(trace("I moved to Bergen in May", KEY), each) for each in shown)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("You said that my dentist is Dr. Kay.", True),
        ("Your notes say the deadline is Friday.", True),
        ("My dentist said I need a crown.", False),
        ("I told you my dentist is Dr. Kay.", False),
    ],
)
def test_a_quotation_of_the_agent_is_told(text: str, quoted: bool) -> None:
    assert quotes(text) is quoted


@given(st.text(min_size=1, max_size=200))
def test_a_trace_holds_no_word_and_depends_on_the_key(text: str) -> None:
    one, other = trace(text, KEY), trace(text, b"another key")
    assert all(len(word) == 8 and set(word) <= set("0123456789abcdef") for word in one.words)
    assert not one.words or one.words != other.words
