"""A reply made use of a memory if it says what only the memory held."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.capture.used import used_in

FACT = "The staging database runs on port 5433 and Ludmila maintains it."


def is_used(reply: str, fact: str, prompt: str = "") -> bool:
    return used_in(reply, [("fact", fact)], prompt) == ["fact"]


@pytest.mark.parametrize(
    ("fact", "prompt", "reply"),
    [
        (FACT, "Which port has the staging database?", "It listens on 5433."),
        (FACT, "Who looks after the staging database?", "That would be Ludmila."),
        ("My sister lives in Brno.", "Where is my sister?", "She's in Brno, as far as I know."),
        ("We deploy with make_release.sh.", "How do we deploy?", "Run `make_release.sh` from main."),
        ("Our broker is 10.0.7.12:9092.", "What is the broker?", "Connect to 10.0.7.12:9092."),
        ("The hook is called useTabs.", "What is the hook called?", "You named it useTabs."),
        ("AWS hosts our cluster.", "Who hosts our cluster?", "It runs at AWS."),
        ("I am allergic to peanuts.", "Suggest a snack", "Fruit. Since you're allergic, nothing with peanuts."),
        ("I prefer short answers with bullet points.", "Explain DNS", "Short answer first:\n- bullet one"),
        ("My dog is a beagle.", "What breed is my dog?", "A beagle!"),
        ("Der Server steht in Wien.", "Wo steht der Server?", "In Wien."),
        ("Сервер стоит в Брно.", "на каком месте сервер?", "Он в Брно."),
        ("我们的测试数据库叫白鹭。", "数据库叫什么？", "它叫白鹭。"),
        ("東京の会議は火曜日です。", "会議はいつ？", "火曜日に東京で行われます。"),
        ("우리 서버는 서울에 있습니다.", "서버가 어디에 있어?", "서울에 있어요."),
        ("เซิร์ฟเวอร์ของเราอยู่ที่เชียงใหม่", "เซิร์ฟเวอร์อยู่ที่ไหน", "อยู่ที่เชียงใหม่"),
        ("会議は15時からです。", "会議は何時？", "15時です。"),
    ],
)  # fmt: skip
def test_a_reply_that_says_what_the_memory_held(fact: str, prompt: str, reply: str) -> None:
    assert is_used(reply, fact, prompt)


@pytest.mark.parametrize(
    ("fact", "prompt", "reply"),
    [
        (FACT, "Which port has the staging database?", "I don't know which port the staging database has."),
        (FACT, "Write a haiku", "An old silent pond. A frog jumps into the pond."),
        (FACT, "What can a database do?", "A database keeps rows. Somebody has to run backups. Use port forwarding."),
        ("My birthday is 3 May.", "Plan my week", "You may begin with three tasks.\n1. Rest\n3. Run"),
        ("My sister lives in Brno.", "Is Brno nice? My sister lives there.", "Brno is nice. Your sister lives in it."),
        ("I prefer short answers with bullet points.", "Explain DNS", "Keep the TTL short. Few prefer it."),
        ("NEVER deploy on a holiday.", "What is an invariant?", "Something that is never false."),
        ("Der Server steht im Keller.", "Was ist ein Weinkeller?", "Ein Keller für Wein."),
        ("我们的测试数据库叫白鹭。", "今天天气怎么样？", "今天的天气很好。测试完成了。"),
        ("東京の会議は火曜日です。", "犬は好き？", "はい、犬は大好きです。会議はありません。"),
        ("우리 서버는 서울에 있습니다.", "오늘 날씨 어때?", "오늘은 맑습니다."),
        ("เซิร์ฟเวอร์ของเราอยู่ที่เชียงใหม่", "สวัสดี", "สวัสดีครับ"),
        ("", "hello", "hello"),
        ("...", "", "..."),
        (FACT, "", ""),
    ],
)  # fmt: skip
def test_a_reply_that_does_not(fact: str, prompt: str, reply: str) -> None:
    assert not is_used(reply, fact, prompt)


def test_words_scattered_over_a_long_reply_are_chance() -> None:
    fact = "I keep bees on the balcony."
    assert is_used("So your bees on the balcony will like lavender.", fact)
    assert not is_used("Some bees sleep in the ground. A house may have a balcony.", fact)


def test_a_long_memory_must_share_more_words() -> None:
    fact = (
        "When we plan a sprint the whole team sits together, everybody brings a list of open tasks, we estimate"
        " them with cards, discuss what is unclear, write down every open question and leave room for repairs."
    )
    assert not is_used("Here is a list of common tasks in gardening.", fact)
    assert is_used("Sit together, bring the list of open tasks, then estimate with cards.", fact)


def test_a_name_that_several_memories_hold_does_not_tell_which_was_used() -> None:
    injected = [("birthday", "The birthday of Anna is 14 June."), ("phone", "The phone of Anna is 555-0173.")]
    assert used_in("Anna's birthday? 14 June.", injected, "When is her birthday?") == ["birthday"]
    assert used_in("I know Anna.", injected, "Whom do you know?") == []


def test_memories_that_say_the_same_are_both_used() -> None:
    injected = [("one", "The cat of Anna is called Minka."), ("two", "The cat is called Minka by Anna.")]
    assert used_in("Anna's cat is Minka.", injected, "hello") == ["one", "two"]


def test_the_order_is_that_of_the_prompt() -> None:
    injected = [("c", "We pay with Stripe."), ("a", "We log to Sentry."), ("b", "We chat on Zulip.")]
    assert used_in("Zulip, Sentry and Stripe.", injected, "Name our services") == ["c", "a", "b"]
    assert used_in("Zulip and Stripe.", injected, "Name our services") == ["c", "b"]


texts = st.text(max_size=60)


@given(texts, st.lists(st.tuples(st.uuids().map(str), texts), max_size=4, unique_by=lambda pair: pair[0]), texts)
def test_whatever_is_said_the_answer_is_some_of_the_ids_in_order(
    reply: str, injected: list[tuple[str, str]], prompt: str
) -> None:
    found = used_in(reply, injected, prompt)
    assert found == [fact_id for fact_id, _ in injected if fact_id in found]


@given(texts, texts)
def test_a_reply_that_only_repeats_the_prompt_uses_nothing(fact: str, prompt: str) -> None:
    assert not is_used(prompt, fact, prompt)
