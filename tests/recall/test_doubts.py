"""What speaks against a memory that was found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.recall.doubts import COMMON_NOUN, COST, GENERAL, ONLY_SUBJECT, Asking, doubts
from perdure.recall.query import understand


def against(prompt: str, text: str, subject: str | None = "", coverage: float = 0.3) -> list[str]:
    return doubts(Asking.of(prompt, understand(prompt).names), text, subject, coverage)


@pytest.mark.parametrize(
    ("prompt", "text", "subject", "expected"),
    [
        ("Who is Carla's supervisor?", "Carla's birthday is 9 November.", "Carla", [ONLY_SUBJECT]),
        ("How heavy is Biscuit?", "Biscuit gets a joint tablet.", "Biscuit", [ONLY_SUBJECT]),
        ("How old is Carla?", "Carla's birthday is 9 November.", "Carla", []),  # age asks for the birthday
        ("When is Carla's birthday?", "Carla's birthday is 9 November.", "Carla", []),
        ("Can I serve mussels to Carla?", "Carla is allergic to shellfish.", "Carla", []),  # no single attribute
        ("Who is Carla?", "Carla is my sister.", "Carla", []),
        ("How is a fjord formed?", "Fjord is the customer in Bergen.", "Fjord", [COMMON_NOUN, GENERAL]),
        ("What do herons eat?", "heron answers on port 8443.", "heron", [COMMON_NOUN, GENERAL]),
        ("Which port is heron on?", "heron answers on port 8443.", "heron", []),
        ("Do the boilers need oil?", "When the boiler shows F28 the tap is shut.", "boiler", []),  # never was a name
        ("Who discovered penicillin?", "Penicillin gives me a rash.", "", [GENERAL]),
        ("Do I react to penicillin?", "Penicillin gives me a rash.", "", []),
        ("Wer hat Penicillin entdeckt?", "Penicillin gives me a rash.", "", []),
    ],
)
def test_what_is_doubted(prompt: str, text: str, subject: str, expected: list[str]) -> None:
    assert against(prompt, text, subject) == expected


def test_a_memory_without_a_subject_is_named_by_its_words() -> None:
    told = "Penicillin gives me a rash."
    assert against("Who discovered penicillin?", told, None, coverage=0.4) == [GENERAL]
    assert against("Who discovered penicillin?", told, None, coverage=0.5) == []
    assert against("Which drug like penicillin gives the worst rash?", told, None, coverage=0.4) == []


@given(st.text(max_size=60), st.text(max_size=60), st.none() | st.text(max_size=20), st.floats(0, 1))
def test_any_text_is_read(prompt: str, text: str, subject: str | None, coverage: float) -> None:
    assert set(against(prompt, text, subject, coverage)) <= COST.keys()
