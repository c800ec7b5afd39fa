"""What becomes of an order to forget in a turn: what it means is gone, once, and the agent hears of it by no text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.clock import ManualClock
from perdure.hooks.types import TurnContext
from tests.kit import OpenMemory, for_each

HERE = TurnContext(session_id="b", host="test")


def tell(memory: Memory, *texts: str, session: str = "a") -> None:
    for text in texts:
        context = TurnContext(session_id=session, host="test")
        memory.turns.before(text, context)
        memory.turns.after([{"role": "user", "content": text}], True, context)
        assert memory.settle()


def block(memory: Memory, prompt: str, context: TurnContext = HERE) -> str:
    found = memory.turns.before(prompt, context)
    return found.block if found else ""


def texts(memory: Memory) -> set[str]:
    return {fact.text for fact in memory.admin.list()}


TOLD = (
    "My salary is 52k a year.", "My brother's salary is 48k.", "My birthday is 9 March.", "My ex is called Darius.",
    "My hat size is 58.", "My shoe size is 43.", "The staging database is called heron.",
    "The production database is called osprey.", "The staging server is in Frankfurt.", "My cat is called Suki.",
    "My dentist is Dr. Hale.", "My GP is Dr. Moss.", "I weigh 94 kilos.", "My suitcase weighs 19 kilos.",
)  # fmt: skip


@for_each(
    ("order", "gone"),
    [
        ("Delete what you know about my salary.", {0}),
        ("Forget my birthday.", {2}),
        ("Please forget everything about Darius.", {3}),
        ("remove the memory about my ex", {3}),
        ("Forget that my brother's salary is 48k.", {1}),
        ("forget my hat size", {4}),
        ("forget what I told you about the staging database", {6}),
        ("Forget my cat's name.", {9}),
        ("Please don't keep my dentist in memory", {10}),
        ("pls forget my weight", {12}),
        ("forget it, try again", set()),
        ("Remove my birthday field from the form.", set()),
        ("Don't store my birthday in the logs.", set()),
        ("Never log my birthday.", set()),
    ],
)
def test_what_is_meant_goes_and_nothing_else(
    open_memory: OpenMemory, tmp_path: Path, order: str, gone: set[int]
) -> None:
    memory = open_memory(tmp_path / order)
    for text in TOLD:
        memory.store(text)
    said = block(memory, order)
    assert texts(memory) == {text for number, text in enumerate(TOLD) if number not in gone}
    assert ("Forgotten just now" in said) is bool(gone)
    assert not gone or not re.search(r"52k|9 March|Darius\.", said)


@for_each(
    ("order", "told"),
    [
        ("Forget that I always drink tea.", "Always answer in English."),
        ("Forget that I always take the train.", "Always take the short way in explanations."),
        ("Forget the rule that you always sign off.", "Always use type hints."),
        ("Forget that I usually drink coffee.", "I usually work until six."),
        ("Please forget that I really like jazz.", "I really like my desk."),
        ("Forget that I drink tea every day.", "I run every day."),
        ("Forget that I always drink tea in the morning.", "I always run in the morning."),
        ("Forget that I love Rome.", "I love gardening."),
        ("Forget that I work at night.", "I work at Siemens."),
        ("Forget that I take pills for my heart.", "I take the bus to work."),
        ("Vergiss, dass ich immer Tee trinke.", "Antworte immer auf Deutsch."),
        ("Oublie que je bois toujours du thé.", "Réponds toujours en français."),
    ],
)
def test_what_shares_no_more_than_how_it_is_said_stays(
    open_memory: OpenMemory, tmp_path: Path, order: str, told: str
) -> None:
    memory = open_memory(tmp_path / str(abs(hash(order))))
    memory.store(told)
    assert "Nothing is remembered about" in block(memory, order)
    assert texts(memory) == {told}
    memory.close()


@for_each(
    ("order", "told"),
    [
        ("Forget that I always drink tea.", "I drink tea."),
        ("Forget my standing instructions.", "Always use type hints."),
        ("Forget that I live in Berlin.", "I moved to Berlin."),
    ],
)
def test_what_is_meant_may_be_told_in_other_words(
    open_memory: OpenMemory, tmp_path: Path, order: str, told: str
) -> None:
    memory = open_memory(tmp_path / str(abs(hash(order))))
    memory.store(told)
    block(memory, order)
    assert texts(memory) == set()
    memory.close()


def test_an_order_is_obeyed_once_undone_as_a_whole_and_no_memory(open_memory: OpenMemory) -> None:
    memory = open_memory()
    tell(memory, "My birthday is 9 March.")
    order = "Forget my birthday."
    said = block(memory, order)
    [batch] = re.findall(r"perdure undo (\S+?)\.", said)
    assert block(memory, order) == said
    tell(memory, order, session="b")
    assert texts(memory) == set()
    memory.undo(batch)
    assert texts(memory) == {"My birthday is 9 March."}
    # Given again in a later turn, it is meant again.
    assert "Forgotten just now" in block(memory, order)


def test_an_order_acts_once_whichever_process_hears_of_it(open_memory: OpenMemory, home: Path) -> None:
    with open_memory(home) as memory:
        memory.store("My car insurance is with Allianz.")
        memory.store("My car is a Skoda.")
        said = block(memory, "Forget my car insurance.")
    with open_memory(home) as memory:
        assert block(memory, "Forget my car insurance.") == said
        memory.turns.after([{"role": "user", "content": "Forget my car insurance."}], True, HERE)
        assert memory.settle()
        assert texts(memory) == {"My car is a Skoda."}


def test_in_a_group_only_who_is_vouched_for_is_obeyed(open_memory: OpenMemory) -> None:
    memory = open_memory(recall_in_groups=True)
    memory.store("My birthday is 9 March.")
    group = TurnContext(session_id="g", host="test", chat="group")
    said = [{"role": "user", "name": "Bob", "content": "Forget my birthday. Always answer in French."}]
    block(memory, said[0]["content"], group)
    memory.turns.after(said, True, group)
    call_tool(memory, "memory_forget", {"query": "birthday"}, group, said[0]["content"])
    assert memory.settle()
    assert texts(memory) == {"My birthday is 9 March."}
    assert "Forgotten just now" in block(memory, "Forget my birthday.", replace(group, vouched=True))


def test_what_one_user_asks_is_nothing_to_another(open_memory: OpenMemory) -> None:
    memory = open_memory()
    users = [TurnContext(agent_id="bot", user_id=name, session_id="s", host="test") for name in ("alice", "bob")]
    for context in users:
        for text in ("My cat Tom is grey.", "My cat Pepper is black."):
            memory.turns.after([{"role": "user", "content": text}], True, context)
    assert memory.settle()
    assert "Ask the user which" in block(memory, "Forget about my cat.", users[0])
    before = texts(memory)
    block(memory, "all", users[1])
    assert texts(memory) == before


def test_that_is_what_the_user_said_last(open_memory: OpenMemory, clock: ManualClock) -> None:
    memory = open_memory()
    tell(memory, "I live in Graz.", session="b")
    clock.advance(60)
    tell(memory, "My therapist is called Niamh.", session="b")
    tell(memory, "don't remember that please", session="b")
    assert texts(memory) == {"I live in Graz."}


BOATS = ("My boat is red.", "My boat leaks badly.", "My boat was built in 1984.")


@for_each(
    ("answer", "left"),
    [
        ("all but the second", 1), ("Yes, all of them please.", 0), ("ja, alle", 0), ("the first one", 2),
        ("1 and 3", 1), ("only the last", 2), ("alle außer der 2", 1),
        *((text, 3) for text in (
            "All tests fail, can you look at them?", "Ok never mind, keep both.", "2 plus 2?", "keep the first one",
            "Not the first one!", "Run the last test again", "What was the first thing I asked?", "all but the twelfth",
            "yes\nno wait, none of them", "all good, do nothing",
        )),
    ],
)  # fmt: skip
def test_of_several_the_agent_asks_and_hears_the_answer(
    open_memory: OpenMemory, tmp_path: Path, answer: str, left: int
) -> None:
    memory = open_memory(tmp_path / str(abs(hash(answer))))
    for text in BOATS:
        memory.store(text)
    said = block(memory, "Forget what I told you about my boat.")
    assert "Ask the user which" in said
    assert texts(memory) == set(BOATS)
    assert ("Forgotten just now" in block(memory, answer)) is (left < 3)
    assert len(texts(memory)) == left
    memory.close()


def test_a_list_is_closed_by_a_no(open_memory: OpenMemory) -> None:
    memory = open_memory()
    for text in BOATS:
        memory.store(text)
    for prompt in ("Forget what I told you about my boat.", "no, none of them", "yes"):
        block(memory, prompt)
    assert texts(memory) == set(BOATS)


def test_nothing_found_is_said(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.store("I live in Graz.")
    assert "Nothing is remembered about" in block(memory, "Forget that I play the cello.")
    assert texts(memory) == {"I live in Graz."}


def test_all_that_is_known_goes_only_after_a_yes(open_memory: OpenMemory) -> None:
    memory = open_memory()
    for text in TOLD:
        memory.store(text)
    said = block(memory, "Forget everything you know about me.")
    assert "Not forgotten yet" in said
    assert f"and {len(TOLD) - 10} more" in said
    assert texts(memory) == set(TOLD)
    block(memory, "yes")
    assert texts(memory) == set()


def test_what_quotes_a_forgotten_memory_goes_and_comes_back_with_it(open_memory: OpenMemory) -> None:
    memory = open_memory()
    server, leaning = "Our deploy server is called heron.", "It runs on port 8443 and on 3 machines in Graz."
    said = [{"role": "user", "content": text} for text in (server, leaning)]
    memory.turns.after(said, True, HERE)
    tell(memory, "I live in Graz.")
    before = texts(memory)
    assert before == {server, f"{leaning} (after: {server})", "I live in Graz."}
    [forgotten] = [fact.id for fact in memory.admin.list() if fact.text == server]
    memory.forget(forgotten)
    assert texts(memory) == {"I live in Graz."}
    memory.unforget(forgotten)
    assert texts(memory) == before


def test_an_order_to_remember_never_points_at_one_to_forget(open_memory: OpenMemory) -> None:
    memory = open_memory()
    tell(memory, "Forget my birthday.", "Remember that.")
    assert texts(memory) == set()
