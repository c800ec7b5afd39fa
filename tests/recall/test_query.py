"""What is asked, and what is no question at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.recall.query import MAX_CHARACTERS, understand
from tests.kit import for_each


@for_each(
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
        ("HEARTBEAT_OK", "system message"),
        ("Read HEARTBEAT.md if it exists. If nothing needs attention, reply HEARTBEAT_OK.", "system message"),
        ("...", "no words"),
        ("👍", "no words"),
        ("👩🏽‍💻 🇩🇪 ❤️", "no words"),
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


@for_each(
    "prompt",
    [
        "Yes please",
        "ok thanks 👍",
        "Hallo! Wie geht es dir?",
        "Danke schön, alles klar",
        "Tschüß",
        "vielen Dank, super",
        "Bonjour, ça va ?",
        "D’accord, merci beaucoup",
        "très bien",
        "¡Hola! ¿Qué tal?",
        "Muchas gracias, perfecto",
        "sí, de acuerdo",
        "Olá, bom dia",
        "muito obrigada, tudo bem",
        "não",
        "ありがとうございます!",
        "了解です。お願いします",
        "おはようございます",
        "你好\uff0c谢谢",
        "好的。明白了",
        "안녕하세요!",
        "네, 감사합니다",
        "Привет!",
        "Хорошо, большое спасибо",
        "Добрый день",
    ],
)
def test_small_talk_in_other_languages_asks_nothing(prompt: str) -> None:
    query = understand(prompt)
    assert query.trivial == "small talk"
    assert query.parts == ()


@pytest.mark.parametrize(
    "prompt",
    [
        "ok, where do I live?",
        "Danke, wo wohne ich?",
        "merci, où habite Anna ?",
        "Hola, ¿dónde vivo?",
        "obrigado, onde moro?",
        "ありがとう。私の犬の名前は?",
        "你好\uff0c我住在哪里",
        "안녕하세요, 제 개 이름이 뭐예요?",
        "Спасибо, где я живу?",
        "👍 and the invoice",
    ],
)
def test_politeness_before_a_question_does_not_silence_it(prompt: str) -> None:
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
