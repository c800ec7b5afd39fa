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


@pytest.mark.parametrize(
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
    assert query.names == ()


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


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("Where does Anna work?", ("anna",)),
        ("Where does Anna’s brother Łukasz live, in New York?", ("anna", "lukasz", "new", "york")),
        ("Did Jean-Luc meet O'Brien (Fido saw it)?", ("jean-luc", "o'brien", "fido")),
        ("Anna works. Bob sleeps! Where?\nCarol?", ()),
        ("what did I say when I'm tired, and I've slept", ()),
        ("WHERE IS MY DOG FIDO", ()),
        ("what does ERR_4412 on api-gw-2 mean", ("err_4412", "api-gw-2")),
        ("app.log of v2 in user_id, at Node.js", ("app.log", "v2", "user_id", "node.js")),
        ("查一下ERR_4412的原因", ("err_4412",)),
        ("e.g. well-known 42 8th 10:30 2023-05-08 3.5 things, don't they", ()),
        ('who sang "Yellow  Submarine" or «Ça ira»?', ("yellow submarine", "ca ira")),
        ("「東京タワー」とは", ("東京タワー",)),
        ("what is `git stash`, and what is Git, or Git again", ("git stash", "git")),
        ('an open "quote without an end', ()),
    ],
)
def test_names_are_found(prompt: str, names: tuple[str, ...]) -> None:
    assert understand(prompt).names == names


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
