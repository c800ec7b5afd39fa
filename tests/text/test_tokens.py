"""The estimate of tokens: what it is for known texts, and that it adds up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.text.tokens import estimate_tokens, token_quarters


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("x" * 1600, 400),
        ("Größe", 2),
        ("漢字", 2),
        ("ひらがな", 4),
        ("한국어", 3),
        ("ภาษา", 4),
        ("漢字 and", 3),
        ("\n\n\n\n", 1),
        ("😀😀😀😀", 1),
        ("\ud800", 1),
    ],
)
def test_known_texts(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text())
def test_is_at_least_a_quarter_of_the_characters_and_at_most_all(text: str) -> None:
    assert len(text) / 4 <= estimate_tokens(text) <= len(text)


@given(st.text(), st.text())
def test_quarters_add_up(first: str, second: str) -> None:
    assert token_quarters(first + second) == token_quarters(first) + token_quarters(second)
    assert estimate_tokens(first) <= estimate_tokens(first + second)
