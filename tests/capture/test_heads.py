"""What the heads keep of messages, and what they leave to the rules."""

from __future__ import annotations

import numpy as np
import pytest

from perdure.capture.describe import describe
from perdure.capture.heads import BUCKETS, NAMES, Heads, learnt
from perdure.capture.statements import LEARNT, Statement, statements

TASK = "Write a short note to the landlord about the boiler.\nKeep it polite."


def kept(text: str) -> list[str]:
    return [statement.text for statement in statements(text, (), learnt)]


@pytest.mark.parametrize("said", [
    "My car is a Volvo V60.",
    "My sister is called Anna.",
    "Our office is in Leith.",
])  # fmt: skip
def test_a_statement_among_requests_is_kept_alone(said: str) -> None:
    assert kept(f"{TASK}\n{said}") == [said]


@pytest.mark.parametrize("message", [
    "Quiz me on the tides. Five questions. After each answer tell me what was weak in it. Thanks.",
    "Draw me a goat. One drawing described in words that I can give to our illustrator. No horns.",
])  # fmt: skip
def test_a_request_that_has_the_shape_of_a_fact_is_not_kept(message: str) -> None:
    assert statements(message) != []
    assert kept(message) == []


def test_what_the_heads_alone_find_says_so_and_has_a_category() -> None:
    said = "The inverter on the waltzer's second-hand from Odense, so the book's in Danish."
    assert statements(said) == []
    [found] = statements(said, (), learnt)
    assert (found.cue, 0 < found.confidence < 1) == (LEARNT, True)
    assert describe(found).category == found.category == "fact"


def test_an_order_to_remember_is_obeyed() -> None:
    said = "Remember that I like the second version better."
    assert kept(f"{TASK}\n{said}") == kept(said) == ["I like the second version better."]


def test_a_rule_of_an_extension_is_obeyed() -> None:
    ticket = "Look at PERD-17 please, make it shorter"

    def rule(sentence: str) -> str | None:
        return "ticket" if "PERD-" in sentence else None

    assert statements(f"{TASK}\n{ticket}", (rule,), learnt) == [Statement(ticket, "ticket")]


def test_what_needs_no_reading_is_never_kept() -> None:
    assert kept("My token is ghp_" + "a1B2" * 9 + ".\ngit commit -m 'My car is a Volvo'\nThanks!") == []


def test_where_the_heads_do_worse_the_rules_decide() -> None:
    row = [[0.0] * BUCKETS]
    weights = {"words": row, "shapes": row, "exact": [[0.0] * len(NAMES)], "base": [-9.0], "least": [0.8, 0.1]}
    arrays = {name: np.array(values, dtype=np.float32) for name, values in weights.items()}
    names = {name: np.array([], dtype=str) for name in ("common", "categories")}
    said = "My sister is called Anna."
    for code, expected in (("en", []), ("fr", [said])):
        heads = Heads(arrays | names | {"codes": np.array([code])})
        assert [statement.text for statement in statements(said, (), heads)] == expected
