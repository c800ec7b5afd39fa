"""All of a kind comes up for who asks for it, however many there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.hooks.types import TurnContext
from perdure.recall.kinds import asks_for_all
from tests.kit import OpenMemory, for_each

HERE = TurnContext(session_id="s", host="test")
ALLERGIES = (
    "I'm allergic to penicillin.", "Kiwi makes my mouth swell, I'm allergic to it.", "I have a peanut allergy.",
    "I'm allergic to bee stings.", "I'm allergic to birch pollen.", "I can't wear latex, I'm allergic.",
    "I have an allergy to ibuprofen.", "Shellfish gives me hives, an allergy since childhood.",
    "I'm allergic to nickel.", "I'm allergic to cats.", "I'm allergic to sulphites.", "I'm allergic to dust mites.",
)  # fmt: skip
OTHERS = (
    "I live in Graz.", "My sister is allergic to sesame.", "The staging database is called heron.",
    "We deploy on Tuesdays.", "My dentist is Dr. Kay.", "I take the night train to Rome in May.",
)  # fmt: skip


@pytest.fixture
def memory(tmp_path: Path, open_memory: OpenMemory) -> Memory:
    memory = open_memory(tmp_path, embedder="auto")
    assert memory.ready()
    for text in OTHERS:
        memory.store(text)
    return memory


@for_each("number", [1, 3, 6, 12])
def test_all_of_a_kind_comes_up_and_tells_how_many_more_there_are(memory: Memory, number: int) -> None:
    known = set(ALLERGIES[:number])
    for text in ALLERGIES[:number]:
        memory.store(text)
    recall = memory.turns.before("What am I allergic to?", HERE)
    assert recall is not None
    shown = {item.text for item in recall.items}
    assert len(shown & known) == min(number, 10)
    assert OTHERS[1] not in shown
    assert bool(re.search(r"and 2 more", recall.block)) is (number == 12)
    told = call_tool(memory, "memory_recall", {"query": "allergies", "limit": 20}, HERE)
    assert known <= {each["text"] for each in told.details["memories"]}


def test_nothing_comes_up_of_a_kind_of_which_there_is_none(memory: Memory) -> None:
    assert memory.turns.before("Which of my bikes do I ride?", HERE) is None


@for_each(
    ("prompt", "asked"),
    [
        ("What do I like?", True), ("List my likes", True), ("which servers do we have", True), ("my allergies", True),
        ("Welche Allergien habe ich?", True), ("Quels sont mes livres ?", True), ("¿A qué soy alérgico?", True),
        ("Where do I live?", False), ("What is my salary?", False), ("What are common allergies?", False),
        ("Fix all tests in our repository", False), ("What's the name of my boss?", False),
    ],
)  # fmt: skip
def test_who_asks_for_a_kind_is_told_from_who_asks_for_one_thing(prompt: str, asked: bool) -> None:
    assert asks_for_all(prompt) is asked
