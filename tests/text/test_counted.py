"""Numbers with their nouns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perdure.text.pluralize import counted


@given(st.integers(0, 10**9), st.sampled_from(["memory", "day", "turn", "new memory"]))
def test_one_is_singular_and_all_else_plural(number: int, noun: str) -> None:
    told = counted(number, noun)
    assert told.replace(",", "").startswith(f"{number} ")
    assert told.endswith(noun) == (number == 1)
    assert told.endswith("s") == (number != 1)
