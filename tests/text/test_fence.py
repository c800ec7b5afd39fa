"""The fence around a block: found again by us alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.text.fence import TAG, fence, strip_fenced

KEY = b"0123456789abcdef"
any_text = st.text(alphabet=st.characters(codec=None, exclude_categories=()))
bodies = any_text.filter(lambda text: "<" not in text)
sessions = st.none() | st.text(max_size=8)


def nonce(block: str) -> str:
    match = re.fullmatch(rf'<{TAG} nonce="([0-9a-f]{{16}})">\n.*\n</{TAG}>', block, re.DOTALL)
    assert match is not None
    return match[1]


@settings(max_examples=100)
@given(bodies, sessions, any_text.filter(lambda text: TAG not in text), any_text.filter(lambda text: TAG not in text))
def test_our_block_goes_and_the_rest_stays(body: str, session: str | None, before: str, after: str) -> None:
    text = f"{before}{fence(body, KEY, session)}{after}"
    assert strip_fenced(text, KEY, session) == f"{before}{after}".strip()


@settings(max_examples=100)
@given(any_text.filter(lambda text: TAG not in text))
def test_a_text_without_a_block_is_left_alone(text: str) -> None:
    assert strip_fenced(text, KEY, "s") is text


@settings(max_examples=100)
@given(bodies)
def test_the_same_words_always_give_the_same_bytes(body: str) -> None:
    assert fence(body, KEY, "s") == fence(body, KEY, "s")
    nonce(fence(body, KEY, "s"))


def test_another_body_session_or_key_gives_another_nonce() -> None:
    blocks = [
        fence("tea", KEY, "s"),
        fence("coffee", KEY, "s"),
        fence("tea", KEY, "t"),
        fence("tea", KEY, None),
        fence("tea", b"another key", "s"),
    ]
    assert len({nonce(block) for block in blocks}) == len(blocks)


@pytest.mark.parametrize(
    "forged",
    [
        fence("my cat is called Tom", b"guessed", "s"),
        fence("my cat is called Tom", KEY, "other"),
        fence("my cat is called Tom", KEY, "s").replace("Tom", "Tim"),
        f'<{TAG} nonce="0000000000000000">\nmy cat is called Tom\n</{TAG}>',
        f'<{TAG} nonce="éééééééééééééééé">\nmy cat is called Tom\n</{TAG}>',
        f'<{TAG} nonce="">\nmy cat is called Tom\n</{TAG}>',
        f'<{TAG} nonce="',
        f"<{TAG}>\nmy cat is called Tom\n</{TAG}>",
        fence("my cat is called Tom", KEY, "s").removesuffix(f"</{TAG}>"),
    ],
)
def test_what_only_looks_like_a_block_stays(forged: str) -> None:
    assert strip_fenced(f"I said: {forged} end", KEY, "s") == f"I said: {forged} end"


def test_a_forged_block_does_not_shelter_a_real_one() -> None:
    forged = fence("forged", b"guessed", "s")
    real = fence("real", KEY, "s")
    assert strip_fenced(f"a {forged} b {real} c {real} d", KEY, "s") == f"a {forged} b  c  d"


def test_an_opening_without_its_end_does_not_shelter_a_real_block() -> None:
    real = fence("a memory", KEY, "s")
    assert "a memory" not in strip_fenced(f'I quote <{TAG} nonce=" here. {real} I live in Graz.', KEY, "s")


def test_many_blocks_take_no_more_than_one_pass_each() -> None:
    blocks = fence("tea", KEY, "s") * 60
    assert strip_fenced(f"{blocks}I live in Graz.", KEY, "s") == "I live in Graz."


@settings(max_examples=100)
@given(st.lists(st.sampled_from([f'<{TAG} nonce="', "0" * 16, '">\n', f"\n</{TAG}>", "tea", fence("x", KEY, "s")])))
def test_pieces_of_fences_in_any_order_are_read_through(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert len(strip_fenced(text, KEY, "s")) <= len(text)
