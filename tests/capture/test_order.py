"""Turns may be captured in another order than they were said in: what was said last stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import Memory
from perdure.hooks.types import TurnContext

OLD, NEW = 1_700_000_000.0, 1_700_000_600.0


def say(memory: Memory, text: str, at: float, session: str) -> None:
    message = {"role": "user", "content": text, "timestamp": at}
    memory.turns.after([message], True, TurnContext(session_id=session, now=at))
    assert memory.settle(60)


def standing(memory: Memory) -> list[str]:
    return [fact.text for fact in memory.admin.list()]


@pytest.mark.parametrize("late", [False, True])
def test_a_later_correction_stands_though_the_earlier_word_comes_in_after_it(tmp_path: Path, late: bool) -> None:
    said = [
        ("My birthday is on 3 March 1990.", OLD),
        ("Actually, my birthday is on 5 March 1990, not on 3 March.", NEW),
    ]
    with Memory.open(tmp_path, embedder="hash") as memory:
        for number, (text, at) in enumerate(reversed(said) if late else said):
            say(memory, text, at, f"s{number}")
        [stands] = standing(memory)
        assert "5 March" in stands
        former = [fact.text for fact in memory.admin.list(include_superseded=True)]
        assert any("3 March 1990" in text and "5 March" not in text for text in former)


def test_a_wish_to_forget_does_not_reach_what_was_said_after_it(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="hash") as memory:
        say(memory, "My favourite colour is green.", NEW, "s1")
        say(memory, "Forget my favourite colour.", OLD, "s2")
        assert standing(memory) == ["My favourite colour is green."]
