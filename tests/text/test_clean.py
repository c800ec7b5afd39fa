from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import InputError
from perdure.text.clean import clean, clip, message_text

any_text = st.text(alphabet=st.characters(codec=None, exclude_categories=()))


@given(any_text)
def test_cleaned_text_can_be_stored(text: str) -> None:
    cleaned = clean(text)
    assert "\0" not in cleaned
    assert cleaned.encode().decode() == cleaned
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\0b", "ab"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("end \ud83d", "end \ufffd"),
        ("\ud83d\ude00", "\U0001f600"),  # a pair that JSON wrote in two escapes is no lone surrogate
        ("Řehoř 猫", "Řehoř 猫"),
        ("caf\udcc3\udca9", "café"),  # bytes of UTF-8 that a program read as ASCII
        ("caf\udce9", "caf\ufffd"),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_clean_returns_the_same_object_when_nothing_is_to_be_done() -> None:
    text = "žluťoučký kůň " * 1000
    assert clean(text) is text


@given(st.text(), st.integers(0, 60))
def test_clip_keeps_a_beginning_within_the_limit(text: str, limit: int) -> None:
    clipped = clip(text, limit)
    assert len(clipped) <= limit
    assert text.startswith(clipped)
    if len(text) <= limit:
        assert clipped == text


def test_clip_prefers_a_sentence_end_then_a_space_then_the_limit() -> None:
    assert clip("x" * 94 + "a. b c d e f", 100) == "x" * 94 + "a."
    assert clip("x" * 94 + " abc defgh", 100) == "x" * 94 + " abc"
    assert clip("x" * 200, 100) == "x" * 100
    assert clip("first. " + "x" * 200, 100) == "first. " + "x" * 93
    assert clip("x" * 99 + ". More", 100) == "x" * 99 + "."
    assert clip("猫" * 95 + "。" + "犬" * 20, 100) == "猫" * 95 + "。"


def test_clip_refuses_a_negative_limit() -> None:
    with pytest.raises(InputError, match="-1"):
        clip("text", -1)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": "hello\0"}, "hello"),
        ({"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}, "one\ntwo"),
        ({"content": [{"type": "image", "text": "no"}, {"type": "text", "text": 3}, 7, None]}, ""),
        ({"content": [{"type": "text"}, {"type": "thinking", "text": "no"}, {"text": "no", "thought": True}]}, ""),
        (
            {"content": ["one", {"type": "input_text", "text": "two"}, {"type": "output_text", "text": "3"}]},
            "one\ntwo\n3",
        ),
        ({"parts": [{"text": "one"}, {"inlineData": {}}, {"text": "two"}]}, "one\ntwo"),
        ({"content": None}, ""),
        ({"content": 7}, ""),
        ({}, ""),
    ],
)
def test_message_text(message: dict[str, object], expected: str) -> None:
    assert message_text(message) == expected
