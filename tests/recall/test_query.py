"""What is asked, and what is no question at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.recall.query import MAX_CHARACTERS, understand


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("", "empty"),
        ("  \n\t ", "empty"),
        ("\0", "empty"),
        ("hi", "small talk"),
        ("Hello there!", "small talk"),
        ("Good morning", "small talk"),
        ("Thanks a lot!", "small talk"),
        ("thank you very much", "small talk"),
        ("ok", "small talk"),
        ("OK, go ahead.", "small talk"),
        ("Yes.", "small talk"),
        ("How are you?", "small talk"),
        ("What's up?", "small talk"),
        ("lol", "small talk"),
        ("sounds good, thanks", "small talk"),
        ("/status", "command"),
        ("!reload all", "command"),
        ("[System Message] heartbeat", "system message"),
        ("HEARTBEAT check", "system message"),
        ("...", "no words"),
        ("👍", "no words"),
        ("?!", "no words"),
    ],
)
def test_trivial_prompts_ask_nothing(prompt: str, why: str) -> None:
    assert understand(prompt).trivial == why


@pytest.mark.parametrize(
    "prompt",
    [
        "Where do I live?",
        "hi, where do I live?",
        "Thanks! And what is my dog called?",
        "/usr/bin/env is where?",
        "heartbeats of my daughter",
        "42",
        "住",
        "ok google is what I call it",
        "Fido?",
        "next flight",
    ],
)
def test_questions_are_asked(prompt: str) -> None:
    assert understand(prompt).trivial is None


def test_of_a_long_prompt_the_beginning_and_the_end_are_asked() -> None:
    query = understand(f"Where is heron? {'x ' * 100_000} Who is Fido?")
    assert len(query.text) <= MAX_CHARACTERS + 1
    assert query.text.startswith("Where is heron?")
    assert query.text.endswith("Who is Fido?")
    assert {"heron", "fido"} <= set(query.terms)


@settings(max_examples=100)
@given(st.text(alphabet=st.characters(codec=None, exclude_categories=())))
def test_any_prompt_can_be_read(prompt: str) -> None:
    query = understand(prompt)
    query.text.encode()
    assert "\0" not in query.text
