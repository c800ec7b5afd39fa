"""What a memory learns from being missed: triggers from use."""

from __future__ import annotations

import pytest

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.errors import NotFoundError
from perdure.hooks.types import Channel, TurnContext
from tests.kit import OpenMemory

PENICILLIN = "I'm allergic to penicillin."
SORE = "what can I take for my sore throat"
ASIDE = "The weather was fine all week and the children played in the garden until it was dark. "


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory(embedder="auto", record_sessions=False)


def learnt(memory: Memory, fact_id: str) -> list[str]:
    return [each.text for each in memory.admin.triggers(fact_id) if each.origin == "use"]


def missed(memory: Memory, prompt: str, session: str) -> str:
    """Ask something in a turn; return the turn's id."""
    memory.turns.before(prompt, TurnContext(session_id=session))
    memory.settle()
    return memory.turns.past(1)[0].id


def test_a_memory_marked_as_missed_learns_the_prompt_until_the_mark_is_taken_back(memory: Memory) -> None:
    fact = memory.store(PENICILLIN)
    turn = missed(memory, SORE, "s")
    memory.turns.mark(turn, fact.id, True)
    memory.turns.mark(turn, fact.id, True)
    assert learnt(memory, fact.id) == [SORE]
    # It is nobody's last change.
    assert memory.undo().facts == (fact.id,)
    memory.unforget(fact)
    memory.turns.mark(turn, fact.id, None)
    assert learnt(memory, fact.id) == []


def test_of_a_long_prompt_it_is_the_nearest_part_and_no_secret(memory: Memory) -> None:
    fact = memory.store(PENICILLIN)
    password = "zq" + "7-heron-" + "Kx41"
    said = f"{ASIDE * 3}The wifi password is {password}. Which antibiotic may I take? {ASIDE * 3}"
    memory.turns.mark(missed(memory, said, "s"), fact.id, True)
    [text] = learnt(memory, fact.id)
    assert ("antibiotic" in text, password in text, len(text) <= 200) == (True, False, True)


def test_the_newest_three_stay_and_everyday_prompts_are_none(memory: Memory) -> None:
    fact = memory.store(PENICILLIN, triggers=["book a table for dinner"])
    prompts = [SORE, "the little one has a temperature", "my tooth hurts badly", "what helps against a cough"]
    for number, prompt in enumerate([*prompts, "run the tests"]):
        memory.turns.mark(missed(memory, prompt, f"s{number}"), fact.id, True)
    assert learnt(memory, fact.id) == prompts[1:]
    assert len(memory.admin.triggers(fact)) == 4


@pytest.mark.parametrize(
    ("channel", "reply", "learns"),
    [
        (Channel.USER, "Your towel, and the key of locker 61.", True),
        (Channel.USER, "Something warm.", False),
        (Channel.TOOL_UNASKED, "Your towel, and the key of locker 61.", False),
    ],
)
def test_a_memory_that_the_agent_had_to_search_for_and_used(
    memory: Memory, channel: Channel, reply: str, learns: bool
) -> None:
    context, prompt = TurnContext(session_id="s"), "what shall I pack for tomorrow morning"
    fact = memory.store("My locker at the gym is number 61.", channel=channel)
    memory._engine.clock.advance(60)  # type: ignore[attr-defined]
    assert memory.turns.before(prompt, context) is None
    call_tool(memory, "memory_recall", {"query": "locker gym"}, context, prompt)
    said = [{"role": "user", "content": prompt}, {"role": "assistant", "content": reply}]
    memory.turns.after(said, True, context)
    memory.settle()
    assert learnt(memory, fact.id) == [prompt] * learns


@pytest.mark.parametrize(
    ("said", "learns"),
    [
        ("I told you I'm vegetarian!", True),
        ("Ich hab dir doch schon gesagt: I'm vegetarian", True),
        ("Am I a vegetarian?", False),
    ],
)
def test_what_the_user_has_to_say_again_was_missed(memory: Memory, said: str, learns: bool) -> None:
    fact = memory.store("I'm vegetarian.", channel=Channel.USER)
    prompt = "book the night train to Vienna for Friday"
    assert memory.turns.before(prompt, TurnContext(session_id="s")) is None
    assert memory.turns.before(said, TurnContext(session_id="s")) is not None
    memory.settle()
    assert learnt(memory, fact.id) == [prompt] * learns


def test_a_turn_that_nothing_is_known_of_teaches_nothing(memory: Memory) -> None:
    fact = memory.store(PENICILLIN)
    with pytest.raises(NotFoundError):
        memory.turns.mark("12345678", fact.id, True)
    assert learnt(memory, fact.id) == []
