"""Questions about memory itself are answered from it, whatever the gate says; what only looks like one is none."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bench.about import filled
from perdure.api.explain import silence
from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.clock import ManualClock
from perdure.hooks.types import RecallItem, TurnContext
from perdure.recall.receipt import Receipt
from tests.kit import DAY, START, OpenMemory, for_each

HERE = TurnContext(session_id="s", host="test")
BOAT = TurnContext(session_id="b", host="test", project="project:boat")
NONE = Path(__file__).parents[1] / "data" / "not_about_memory.toml"
TUNED = Path(__file__).parents[2] / "bench" / "data" / "about-tuned.json"
QUESTIONS = (
    ("What do you know about me?", "I live in {}."),
    ("What's my name?", "My name is {}."),
    ("Where were we?", "{} still has to be painted."),
    ("What did we decide about the hull?", "We decided to paint the hull {}."),
    ("What have we decided so far?", "We agreed to sail to {}."),
    ("What changed since yesterday?", "The mast is at the {} yard."),
    ("Who is Leah?", "Leah is my sister, she owns a {}."),
    ("What do I have in June?", "The {} concert is on 12 June."),
)
"""Each with what answers it."""
SHOWN = "Bergen"
THINGS = (
    "a kayak", "two bikes", "an old piano", "the red barn", "a telescope", "a lathe", "three clocks", "a loom",
    "an anvil", "a canoe", "the mill", "a cider press", "a kiln", "an orchard",
)  # fmt: skip


def asked(memory: Memory, prompt: str, context: TurnContext = HERE) -> list[str]:
    return [item.text for item in answering(memory, prompt, context)]


def answering(memory: Memory, prompt: str, context: TurnContext = HERE) -> list[RecallItem]:
    recall = memory.turns.before(prompt, context)
    return [item for item in recall.items if item.leg == "about"] if recall else []


def block(memory: Memory, prompt: str, context: TurnContext = HERE) -> str:
    recall = memory.turns.before(prompt, context)
    return recall.block if recall else ""


@pytest.fixture
def boat(open_memory: OpenMemory) -> Memory:
    return open_memory(scopes=["project:boat"])


@for_each(("prompt", "text"), QUESTIONS)
def test_each_question_is_answered_in_a_turn_by_a_search_and_by_the_tool(
    open_memory: OpenMemory, tmp_path: Path, prompt: str, text: str
) -> None:
    memory = open_memory(tmp_path / str(QUESTIONS.index((prompt, text))))
    known = text.format(SHOWN)
    memory.store(known)
    assert known in asked(memory, prompt)
    recall = memory.recall(prompt)
    assert recall is not None
    assert [item.text for item in recall.items] == asked(memory, prompt)
    told = call_tool(memory, "memory_recall", {"query": prompt}, HERE)
    assert [each["text"] for each in told.details["memories"]] == asked(memory, prompt)


@for_each(
    ("prompt", "text"),
    [
        ("Wie heiße ich?", "Ich heiße Teo."), ("Comment je m'appelle ?", "Je m'appelle Teo."),
        ("¿Cómo me llamo?", "Me llamo Teo."), ("Qual é o meu nome?", "Meu nome é Teo."),
        ("Come mi chiamo?", "My name is Teo."), ("我叫什么名字?", "My name is Teo."),
        ("私の名前は何ですか?", "My name is Teo."),
        ("Was weißt du über mich?", "I live in Bergen."), ("Wo waren wir?", "The mast is at the yard."),
        ("Was haben wir zum Rumpf entschieden?", "Wir haben entschieden, den Rumpf grün zu streichen."),
        ("Was habe ich im Juni vor?", "Das Konzert ist am 12. Juni."),
        ("¿Qué tengo en junio?", "El concierto es el 12 de junio."),
        ("Wer ist Leah?", "Leah is my sister."), ("What's my shirt size?", "My shirt size is M."),
        ("how old am I?", "I'm 41 years old."), ("where do I live", "I live in Bergen."),
        ("what do I do for a living", "I work as a nurse."), ("when was I born?", "My birthday is 3 May."),
        ("remind me who my boss is", "My boss is called Ulla."),
        ("what have I told you about the boiler?", "The boiler is from 1998."),
    ],
)  # fmt: skip
def test_questions_are_understood_in_several_languages_and_wordings(
    open_memory: OpenMemory, tmp_path: Path, prompt: str, text: str
) -> None:
    memory = open_memory(tmp_path / str(len(list(tmp_path.iterdir()))))
    memory.store(text)
    recall = memory.turns.before(prompt, HERE)
    assert recall is not None
    assert text in [item.text for item in recall.items]


def test_what_only_looks_like_such_a_question_is_none() -> None:
    kinds = tomllib.loads(NONE.read_text(encoding="utf-8"))
    assert sum(map(len, kinds.values())) >= 150
    known = json.loads(TUNED.read_text(encoding="utf-8"))
    failed = []
    with filled(known["memories"]) as (memory, _):
        for kind, prompts in kinds.items():
            for number, prompt in enumerate(prompts):
                context = TurnContext(session_id=f"{kind} {number}", host="test", project="project:roster")
                failed += [f"{kind}: {prompt}: {text}" for text in asked(memory, prompt, context)]
    assert not failed


def hidden(memory: Memory, text: str) -> None:
    """Store a text in each way in which nobody may be shown it."""
    memory.for_user("tom").store(text.format("Toms"))
    memory.store(text.format("Elsewhere"), scope="project:boat")
    memory.admin.reject(memory.store(text.format("Rejected")).id)
    memory.forget(memory.store(text.format("Forgotten")).id)
    if "12 June" not in text:  # a day to come keeps what is of these days
        memory.store(text.format("Expired"), decay_class="short")


def test_nothing_comes_up_that_the_caller_may_not_be_shown(boat: Memory, clock: ManualClock) -> None:
    for _, text in QUESTIONS:
        hidden(boat, text)
    clock.advance(3 * DAY)
    for _, text in QUESTIONS:
        boat.store(text.format(SHOWN))
    for number, (prompt, text) in enumerate(QUESTIONS):
        shown = asked(boat, prompt, TurnContext(session_id=f"{number}", host="test"))
        assert text.format(SHOWN) in shown, prompt
        for way in ("Toms", "Elsewhere", "Rejected", "Forgotten", "Expired"):
            assert not [each for each in shown if way in each], prompt


@for_each("prompt", [prompt for prompt, _ in QUESTIONS])
def test_a_group_a_foreign_program_and_an_empty_store_are_told_nothing(
    open_memory: OpenMemory, tmp_path: Path, prompt: str
) -> None:
    memory = open_memory(tmp_path / prompt[:12])
    assert memory.turns.before(prompt, HERE) is None
    for _, text in QUESTIONS:
        memory.store(text.format(SHOWN))
    assert memory.turns.before(prompt, TurnContext(session_id="g", chat="group")) is None
    assert asked(memory, prompt, TurnContext(session_id="f", user_id="")) == []


def test_the_receipt_says_why_nothing_came(boat: Memory) -> None:
    boat.store("The mast is at the yard.")
    for prompt, reason in (("What do I have in June?", "nothing in memory stands"), ("What's my name?", "attribute")):
        receipts: list[Receipt] = []
        assert boat.recall(prompt, receipt_to=receipts.append) is None
        assert reason in (silence(boat.why(receipts[0])) or "")


def test_what_is_asked_for_is_told_again_but_not_beside_what_the_session_begins_with(
    open_memory: OpenMemory,
) -> None:
    memory = open_memory(opening_tokens=300)
    memory.store("My name is Teo.")
    keeps = TurnContext(session_id="one", keeps_block=True)
    assert memory.turns.opening(keeps) is not None
    assert asked(memory, "what's my name?", keeps) == []
    for _ in range(2):
        assert asked(memory, "What do you know about me?", keeps) == ["My name is Teo."]
        assert asked(memory, "what's my name?", keeps) == ["My name is Teo."]


def test_more_than_there_is_room_for_is_counted(boat: Memory) -> None:
    for number in range(14):
        boat.store(f"I own {THINGS[number]}.")
    assert len(asked(boat, "What do you know about me?")) == 10
    assert "and 4 more" in block(boat, "What do you know about me?")
    told = call_tool(boat, "memory_recall", {"query": "What do you know about me?", "limit": 5}, HERE)
    assert (len(told.details["memories"]), told.details["more"]) == (5, 9)
    assert "9 more" in told.text


def test_the_name_comes_first_of_what_is_known_of_a_person(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="auto")
    for text in ("My name is Teo.", "I'm allergic to nuts.", "The blue folder is on shelf 4.", "We decided to sail."):
        memory.store(text)
    told = asked(memory, "what do you know about me?")
    assert told[:2] == ["My name is Teo.", "I'm allergic to nuts."]
    assert "We decided to sail." not in told


def test_where_the_work_stopped_is_the_newest_of_the_project_and_what_is_open(boat: Memory, clock: ManualClock) -> None:
    boat.store("The hull still has to be measured.", scope="project:boat")
    for number in range(12):
        clock.advance(DAY)
        boat.store(f"Plank {number} is in place.", scope="project:boat")
    boat.store("I live in Bergen.")
    told = asked(boat, "morning! where were we?", BOAT)
    assert told[0] == "Plank 11 is in place."
    assert "The hull still has to be measured." in told
    assert "I live in Bergen." not in told
    assert "I live in Bergen." in asked(boat, "morning! where were we?")


def test_a_decision_is_found_by_words_and_by_meaning(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="auto")
    for text in ("We decided to take the electric engine.", "We agreed to meet on Tuesdays.", "The engine is loud."):
        memory.store(text)
    assert asked(memory, "What did we decide about the engine?") == ["We decided to take the electric engine."]
    assert "We decided to take the electric engine." in asked(memory, "what did we decide about the motor?")
    assert asked(memory, "what did we decide about the curtains?") == []


def test_what_changed_names_what_was_replaced_and_counts_what_was_forgotten(boat: Memory, clock: ManualClock) -> None:
    old = boat.store("I live in Bergen.")
    gone = boat.store("My boss is Ulla.")
    boat.store("The mast is at the yard.")
    clock.advance(3 * DAY)
    boat.update(old.id, text="I live in Oslo.")
    boat.forget(gone.id)
    told = block(boat, "what changed since yesterday?")
    assert 'I live in Oslo. (before: "I live in Bergen.")' in told.replace("&quot;", '"')
    assert "1 memory forgotten since then" in told
    assert "Ulla" not in told
    assert "mast" not in told
    assert "mast" in block(boat, "what has changed lately?")
    assert "Oslo" in block(boat, "what changed today?")


def test_what_was_withdrawn_is_told_as_withdrawn(boat: Memory, clock: ManualClock) -> None:
    boat.store("I have a car.")
    clock.advance(3 * DAY)
    boat.turns.after([{"role": "user", "content": "I don't have a car any more."}], True, HERE)
    assert boat.settle()
    assert "I have a car. (3 days ago, 2027-01-15; withdrawn)" in block(boat, "what changed since yesterday?")
    assert "car" not in block(boat, "what do you know about me?")


def test_only_a_name_that_memory_holds_is_somebody(boat: Memory) -> None:
    boat.store("Rose paints the hull.")
    boat.store("The rose is red.")
    assert asked(boat, "who is Rose?") == ["Rose paints the hull."]
    assert asked(boat, "who is the president of France") == []
    assert asked(boat, "who is red?") == []


def test_days_to_come_are_told_the_soonest_first(boat: Memory) -> None:
    for text in (
        "The concert is on 12 June.", "The trip is from 3 June 2027 to 5 June 2027.", "Ida's exam was on 4 June 2025.",
        "In June Leah visits us.", "The survey is on 2 July.", "We may go out.",
    ):  # fmt: skip
        boat.store(text)
    assert asked(boat, "What do I have in June?") == [
        "In June Leah visits us.", "The trip is from 3 June 2027 to 5 June 2027.", "The concert is on 12 June.",
    ]  # fmt: skip
    assert asked(boat, "anything on 2 July?") == ["The survey is on 2 July."]
    assert asked(boat, "what do I have next week?") == []


def test_what_the_agent_tried_is_told_from_its_notes(boat: Memory) -> None:
    noted = "Flaky test: raised the timeout, it still fails."
    call_tool(boat, "memory_store", {"text": noted}, HERE)
    boat.store("The flaky test is called test_sync.")
    found = answering(boat, "what did you try on the flaky test?")
    assert [item.text for item in found] == [noted]
    assert "agent's note" in found[0].category


def test_what_the_agent_said_of_what_it_tried_is_told_to_who_asks_for_it(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="auto")
    work = TurnContext(session_id="work", host="test")
    said = [
        {"role": "user", "content": "The flaky test test_sync fails again."},
        {"role": "assistant", "content": "I tried a longer timeout on the flaky test test_sync, it still fails."},
    ]
    memory.turns.after(said, True, work)
    memory.turns.session_end(work)
    assert memory.settle()
    assert "longer timeout" in block(memory, "what did you try on the flaky test?")
    assert "longer timeout" not in block(memory, "the flaky test fails, what now?")
    assert "longer timeout" not in block(memory, "what did you try?", TurnContext(session_id="u", user_id="tom"))


def test_a_task_or_a_quotation_is_no_question_of_memorys(boat: Memory) -> None:
    boat.store("My name is Teo.")
    for prompt in (
        "Translate this into German. What's my name?", "Explain the sentence 'what's my name?' to me",
        f"What's my name? {'It is for a form that I fill in. ' * 20}",
    ):  # fmt: skip
        assert answering(boat, prompt) == []
    assert asked(boat, "Hi, quick question: what's my name?") == ["My name is Teo."]


def test_an_earlier_time_or_a_tag_is_answered_by_the_search_alone(boat: Memory) -> None:
    boat.store("My name is Teo.", tags=["self"])
    for narrowed in ({"tag": "self"}, {"as_of": START}):
        kept: dict[str, Any] = narrowed
        recall = boat.recall("What do you know about me?", **kept)
        assert recall is None or all(item.leg != "about" for item in recall.items)
