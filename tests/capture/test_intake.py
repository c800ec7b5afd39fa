"""Which messages of a turn are new, and what is left of them."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.capture.intake import Limits, as_sequence, take
from perdure.capture.statements import statements
from perdure.hooks.types import TurnContext
from perdure.speech.author import vouched_for
from perdure.text.fence import fence
from perdure.text.history import mark, new_messages
from tests.kit import for_each

KEY = b"0123456789abcdef"
LIMITS = Limits()
Said = dict[str, Any]
Pair = tuple[Said, Said]


def user(text: object) -> Said:
    return {"role": "user", "content": text}


def agent(text: object) -> Said:
    return {"role": "assistant", "content": text}


def parts(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


def texts(messages: Sequence[Any], tail: str = "", session: str | None = "s") -> list[str]:
    return [message["text"] for message in take(messages, tail, KEY, session, LIMITS).messages]


pairs = st.lists(
    st.tuples(st.sampled_from(["tea", "coffee", "milk"]), st.sampled_from(["OK.", "Noted."])),
    min_size=1,
    max_size=30,
).map(lambda said: [pair for at, pair in enumerate(said) if not at or pair != said[at - 1]])


def delivery(turns: list[Pair], at: int, how: str, keep: int) -> list[Said]:
    """Return what a host sends after turn `at`: all, the turn, or a history that lost its beginning."""
    first = {"whole": 0, "turn": at, "cut": max(0, at - keep)}[how]
    return [message for pair in turns[first : at + 1] for message in pair]


@settings(max_examples=150)
@given(pairs, st.data())
def test_every_message_is_new_exactly_once_however_the_host_sends_it(
    said: list[tuple[str, str]], data: st.DataObject
) -> None:
    turns = [(user(question), agent(answer)) for question, answer in said]
    tail = ""
    for at, turn in enumerate(turns):
        how = data.draw(st.sampled_from(["whole", "turn", "cut"]))
        sent = delivery(turns, at, how, data.draw(st.integers(0, 5)))
        fresh, tail = new_messages(sent, tail)
        assert list(fresh) == list(turn)
        for _ in range(data.draw(st.integers(0, 2))):
            again, tail = new_messages(sent, tail)
            assert list(again) == []


@settings(max_examples=100)
@given(st.lists(st.sampled_from(["tea", "coffee"]), min_size=2, max_size=20), st.booleans())
def test_the_same_message_said_again_is_new_again(said: list[str], whole: bool) -> None:
    # The answers tell the turns apart, as those of a model do.
    turns = [(user(text), agent(f"Answer {at}.")) for at, text in enumerate(said)]
    tail = ""
    for at, turn in enumerate(turns):
        fresh, tail = new_messages(delivery(turns, at, "whole" if whole else "turn", 0), tail)
        assert list(fresh) == list(turn)


def test_a_turn_longer_than_the_cursor_is_read_once() -> None:
    history = [user("run all the tools"), *({"role": "tool", "content": f"result {n}"} for n in range(100))]
    fresh, tail = new_messages(history, "")
    assert len(fresh) == 101
    assert new_messages(history, tail) == ([], tail)
    assert list(new_messages([*history, user("thank you")], tail)[0]) == [user("thank you")]


def test_a_summary_in_place_of_the_beginning_does_not_make_the_rest_new() -> None:
    history = [message for n in range(6) for message in (user(f"question {n}"), agent(f"answer {n}"))]
    _, tail = new_messages(history, "")
    compacted = [
        user("Summary of the conversation so far"),
        *history[-4:],
        user("question 6"),
        agent("answer 6"),
    ]
    fresh, _ = new_messages(compacted, tail)
    assert [message for message in fresh if message in history] == []


def test_a_string_and_a_list_of_parts_are_the_same_message() -> None:
    first = [user("I live in Graz."), agent("Noted.")]
    _, tail = new_messages(first, "")
    reshaped = [user(parts("I live in Graz.")), agent(parts("Noted.")), user("I like tea.")]
    assert list(new_messages(reshaped, tail)[0]) == [user("I like tea.")]


def test_other_fields_do_not_make_a_message_new() -> None:
    _, tail = new_messages([user("I live in Graz.")], "")
    stamped = {**user("I live in Graz."), "timestamp": 1_800_000_000_000, "id": "m1"}
    assert list(new_messages([stamped], tail)[0]) == []


def test_the_role_makes_a_difference() -> None:
    _, tail = new_messages([user("I live in Graz.")], "")
    assert list(new_messages([agent("I live in Graz.")], tail)[0]) == [agent("I live in Graz.")]


def test_only_what_the_user_said_is_taken() -> None:
    history = [
        {"role": "system", "content": "You live in a computer."},
        user("I live in Graz."),
        agent("My memory says Linz."),
        {"role": "tool", "content": "My result is 42 today."},
        {"content": "My role is missing here."},
        {"role": None, "content": "My role is nothing here."},
    ]
    assert texts(history) == ["I live in Graz."]


def test_parts_that_are_no_text_are_passed_over() -> None:
    content = [
        {"type": "image", "text": "hidden"},
        {"type": "text", "text": 7},
        None,
        *parts("I like tea."),
    ]
    assert texts([user(content)]) == ["I like tea."]


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("I am Ann", False),
        ("I am Anna.", True),
        ("我住在北京", True),
        ("我住", False),
        ("   \n  ", False),
        ("", False),
    ],
)
def test_short_messages_are_passed_over_by_their_script(text: str, taken: bool) -> None:
    assert bool(texts([user(text)])) is taken


def test_a_long_message_is_cut_and_counted() -> None:
    intake = take([user("I like tea. " * 1000)], "", KEY, "s", LIMITS)
    assert intake.clipped == 1
    assert len(intake.messages[0]["text"]) <= LIMITS.max_chars
    assert take([user("I like tea very much.")], "", KEY, "s", LIMITS).clipped == 0


def test_secrets_are_gone_before_anything_is_kept() -> None:
    secret = "ghp_abcdefghij0123456789abcdefghij012345"
    [text] = texts([user(f"My token is {secret}, and I live in Graz.")])
    assert secret not in text
    assert text.endswith("and I live in Graz.")


@pytest.mark.parametrize(
    ("timestamp", "seconds"),
    [
        (1_800_000_000, 1_800_000_000.0),
        (1_800_000_000_000, 1_800_000_000.0),
        (1.5e9, 1.5e9),
        (None, None),
        ("yesterday", None),
        (True, None),
        (0, None),
        (-5, None),
        (float("nan"), None),
    ],
)
def test_times_are_seconds_whatever_the_host_counts_in(timestamp: object, seconds: float | None) -> None:
    intake = take([{**user("I live in Graz."), "timestamp": timestamp}], "", KEY, "s", LIMITS)
    assert intake.messages[0]["at"] == seconds


@pytest.mark.parametrize("timestamp", [float("inf"), 10**400])
def test_an_endless_time_is_no_time(timestamp: float) -> None:
    intake = take([{**user("I live in Graz."), "timestamp": timestamp}], "", KEY, "s", LIMITS)
    assert intake.messages[0]["at"] is None


def test_our_own_block_is_taken_out_and_the_users_words_stay() -> None:
    block = fence("[sqlite/fact] I live in Vienna.", KEY, "s")
    assert texts([user(f"{block}\n\nI moved to Linz.")]) == ["I moved to Linz."]
    assert texts([user(f"I moved to Linz.\n\n{block}")]) == ["I moved to Linz."]
    assert texts([user(parts(block, "I moved to Linz."))]) == ["I moved to Linz."]
    assert texts([user(block)]) == []


@pytest.mark.parametrize("session", ["other", None, ""])
def test_a_block_of_another_session_is_not_the_users(session: str | None) -> None:
    block = fence("I live in Vienna.", KEY, session)
    assert texts([user(f"{block}\n\nI moved to Linz.")]) == ["I moved to Linz."]


@pytest.mark.parametrize("messages", [None, 7, "I live in Graz.", b"I live in Graz.", {"role": "user"}, object()])
def test_what_is_no_list_brings_nothing(messages: object) -> None:
    assert as_sequence(messages) == ()


def test_any_sequence_of_messages_will_do() -> None:
    history = deque([{"role": "user", "content": "I live in Graz."}])
    assert texts(as_sequence(history)) == ["I live in Graz."]


def test_what_is_no_message_does_not_hide_the_others() -> None:
    odd: list[Any] = [
        None,
        7,
        "text",
        ["a"],
        user(None),
        user(7),
        user({"text": "x"}),
        {},
        user("I live in Graz."),
    ]
    assert texts(as_sequence(odd)) == ["I live in Graz."]
    _, tail = new_messages(odd, "")
    assert list(new_messages([*odd, user("I like tea.")], tail)[0]) == [user("I like tea.")]


@settings(max_examples=100)
@given(st.lists(st.text(alphabet=st.characters(codec=None, exclude_categories=())), max_size=6))
def test_any_characters_can_be_taken_in(said: list[str]) -> None:
    intake = take([user(text) for text in said], "", KEY, "s", LIMITS)
    for message in intake.messages:
        message["text"].encode()
        assert "\0" not in message["text"]


def test_a_cursor_cannot_be_guessed_without_the_key() -> None:
    tails = [take([user("1234")], "", key, "s", LIMITS).tail for key in (KEY, b"another key")]
    assert tails[0] != tails[1]
    assert mark(user("1234")) not in tails[0]


def test_a_turn_with_no_messages_leaves_the_cursor_as_it_is() -> None:
    old = take([user("I live in Graz."), agent("Noted.")], "", KEY, "s", LIMITS).tail
    assert take([], old, KEY, "s", LIMITS).tail == old


AUTOMATED = [
    user("HEARTBEAT: my disk is full, check it."),
    user("Read HEARTBEAT.md if it exists. My next task is in there."),
    user("[cron:nightly] My backup ran at 3."),
    user("System: my queue has 3 messages."),
    user("[Subagent Context] My task is to list the files."),
    user("Pre-compaction memory flush. My notes go to memory/today.md."),
    user(parts("A new session was started via /new. My name is Claw.")),
    {**user("My boss is called Ann."), "provenance": {"kind": "inter_session"}},
    {**user("My boss is called Ann."), "__openclaw": {"senderIsOwner": False}},
    {**user("My boss is called Ann."), "display": False},
    user([{"type": "tool_result", "text": "My result is Graz."}]),
]


@pytest.mark.parametrize("message", AUTOMATED)
def test_what_no_person_said_is_passed_over_with_its_answer(message: Said) -> None:
    limits = Limits(assistant=True)
    history = [message, agent("The staging host is called atlas.")]
    assert take(history, "", KEY, "s", limits).messages == ()


def test_where_others_write_only_what_the_host_vouches_for_is_the_users() -> None:
    owner, noted = {**user("My boss is Ann."), "senderIsOwner": True}, {"__openclaw": {"senderIsOwner": True}}
    bob, nobody, newest = {**user("I live in Graz."), "name": "Bob"}, user("My cat is Tom."), user("I own a boat.")
    history = [owner, agent("Fine."), bob, agent("Noted."), nobody, {**user("My dog is Rex."), **noted}, newest]
    group = TurnContext(chat="group")
    for context, theirs in (
        (group, ["My boss is Ann.", "Fine.", "My dog is Rex."]),
        (replace(group, vouched=True), ["My boss is Ann.", "Fine.", "My dog is Rex.", "I own a boat."]),
        (TurnContext(), [each["content"] for each in history]),
    ):
        taken = take(vouched_for(history, context), "", KEY, "s", Limits(min_chars=1, assistant=True)).messages
        assert [each["text"] for each in taken] == theirs


def test_what_people_say_of_such_things_is_taken() -> None:
    said = [
        "My heartbeat is 60 at rest.",
        "The system is called atlas.",
        "I wrote the cron job on Monday.",
    ]
    assert texts([user(text) for text in said]) == said
    owner = {**user("My boss is called Ann."), "__openclaw": {"senderIsOwner": True}}
    assert texts([owner]) == ["My boss is called Ann."]


def test_answers_are_taken_if_asked_for_and_none_that_a_tool_helped_with() -> None:
    limits = Limits(assistant=True)
    asked, answered = user("Which host is staging?"), agent("The staging host is atlas.")
    found = take([asked, answered], "", KEY, "s", limits).messages
    assert [(message.get("role"), message["text"]) for message in found] == [
        (None, "Which host is staging?"),
        ("assistant", "The staging host is atlas."),
    ]
    for used in (
        {"role": "tool", "content": "atlas"},
        agent([{"type": "tool_use"}]),
        {**agent(""), "tool_calls": [{"id": "1"}]},
        user([{"type": "tool_result", "text": "atlas"}]),
    ):
        found = take([asked, used, answered], "", KEY, "s", limits).messages
        assert [message["text"] for message in found] == ["Which host is staging?"]


def test_a_secret_across_the_limit_is_gone_whole() -> None:
    secret = "ghp_abcdefghij0123456789abcdefghij012345"
    text = ("I like tea. " * 500)[: LIMITS.max_chars - 12] + " " + secret + " and milk."
    [kept] = texts([user(text)])
    assert "ghp_" not in kept


def test_a_message_of_ten_megabytes_costs_little_more_than_its_beginning() -> None:
    def cost(text: str) -> float:
        began = time.process_time()
        for _ in range(5):
            take([user(text)], "", KEY, "s", LIMITS)
        return time.process_time() - began

    sentence = "I live in Graz, said the fox; call 0664-5550199. "
    small, large = sentence * 350, sentence * 210_000
    intake = take([user(large)], "", KEY, "s", LIMITS)
    assert intake.clipped == 1
    assert len(intake.messages[0]["text"]) <= LIMITS.max_chars
    # Six hundred times as long: the rest is looked at for what it is made of, never by a pattern.
    assert cost(large) < 40 * cost(small) + 0.5


def test_ten_thousand_odd_messages_are_taken_in_and_read() -> None:
    chance = random.Random(11)
    ranges = [(0, 0x2FF), (0x300, 0x36F), (0x590, 0x6FF), (0xD7F0, 0xE010), (0x2000, 0x206F), (0x4E00, 0x9FFF)]
    ranges += [(0xFE00, 0xFFFF), (0x1F300, 0x1FAFF), (0xE0000, 0xE01EF)]
    words = ["I live in ", "my name is ", "```", "<memory-context", '="', "\n", "password: ", "> ", "\0"]
    for _ in range(10_000):
        pieces = []
        for _ in range(chance.randrange(8)):
            low, high = chance.choice(ranges)
            pieces.append("".join(chr(chance.randint(low, high)) for _ in range(chance.randrange(12))))
            pieces.append(chance.choice(words))
        for message in take([user("".join(pieces))], "", KEY, "s", LIMITS).messages:
            message["text"].encode()
            for statement in statements(message["text"]):
                assert statement.text.strip()


def test_what_the_user_said_before_stands_beside_a_new_message() -> None:
    history = [
        user("When's the next partners' meeting?"),
        agent("Wednesday at 1 pm."),
        user("It's moved to Mondays now."),
    ]
    tail = take(history[:2], "", KEY, "s", LIMITS).tail
    [said] = take(history, tail, KEY, "s", LIMITS).messages
    assert said["before"] == "When's the next partners' meeting?"
    first, second = take(history, "", KEY, "s", LIMITS).messages
    assert "before" not in first
    assert second["before"] == first["text"]


def test_the_question_that_a_message_answers_stands_beside_it_unless_a_tool_was_used() -> None:
    history = [user("I need a Dockerfile."), agent("Sure. Which Python do you run?"), user("We're on 3.12, for good.")]
    tail = take(history[:2], "", KEY, "s", LIMITS).tail
    for messages in (take(history, tail, KEY, "s", LIMITS).messages, take(history, "", KEY, "s", LIMITS).messages[1:]):
        assert [message.get("asked") for message in messages] == ["Which Python do you run?"]
    searched = {**agent("Which Python do you run?"), "tool_calls": [{"id": "1", "function": {"name": "web"}}]}
    [_, said] = take([history[0], searched, history[2]], "", KEY, "s", LIMITS).messages
    assert "asked" not in said


@pytest.mark.parametrize(
    "before",
    [
        agent("Shall I move the partners' meeting?"),
        user("word " * 60),
        {**user("Remind them of the partners' meeting"), "provenance": {"kind": "cron"}},
    ],
)
def test_only_what_the_user_said_shortly_before_counts(before: Said) -> None:
    tail = take([before], "", KEY, "s", LIMITS).tail
    [said] = take([before, user("It's moved to Mondays now.")], tail, KEY, "s", LIMITS).messages
    assert "before" not in said


def test_a_secret_in_the_message_before_is_taken_out() -> None:
    history = [user("the token is sk-proj-" + "a1B2c3D4" * 5)]
    tail = take(history, "", KEY, "s", LIMITS).tail
    [said] = take([*history, user("It's for the staging server.")], tail, KEY, "s", LIMITS).messages
    assert "a1B2c3D4" not in said["before"]


@for_each(
    "message",
    [
        {"content": ["I like tea."]},
        {"content": [{"type": "input_text", "text": "I like tea."}]},
        {"content": [{"text": "I like tea."}]},
        {"parts": [{"text": "I like tea."}]},
    ],
)
def test_text_is_read_in_the_forms_of_other_providers(message: dict[str, Any]) -> None:
    assert texts([{"role": "user", **message}]) == ["I like tea."]


@for_each("name", ["content", "parts"])
def test_words_of_a_machine_are_told_in_parts_too(name: str) -> None:
    assert texts([{"role": "user", name: ["[system] I like tea."]}]) == []
