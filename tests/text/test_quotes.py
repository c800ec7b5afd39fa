"""Whether somebody has said something in these very words."""

from __future__ import annotations

import pytest

from perdure.text.quotes import is_quote, quoted

SAID = "No,  the boat is called\nHeron. It lies in the old harbour – see the chart!"


@pytest.mark.parametrize(
    "quote", ["the boat is called Heron", "THE BOAT  is\tcalled", "see the chart", "old harbour –"]
)
def test_a_quote_is_found_in_any_case_and_with_any_white_space(quote: str) -> None:
    assert quoted(quote, SAID)


@pytest.mark.parametrize(
    "quote", ["", "the boat", "Heron", "the boat is named Heron", "the boat called Heron", "the-boat is"]
)
def test_what_is_short_or_was_said_otherwise_is_no_quote(quote: str) -> None:
    assert not quoted(quote, SAID)


@pytest.mark.parametrize(
    ("text", "long"),
    [("a b c", True), ("a b", False), ("abcdefghijkl", True), ("abcdefghijk", False), (" " * 20, False)],
)
def test_a_quote_has_three_words_or_twelve_characters(text: str, long: bool) -> None:
    assert is_quote(text) is long
