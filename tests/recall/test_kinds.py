"""All of a kind comes up for who asks for it, however many there are."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.hooks.types import TurnContext
from perdure.recall.kinds import kind_asked
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


LIKES = (
    "I like sailing.", "Jazz is what I love most.", "I really enjoy sour cherries.", "I'm a fan of old maps.",
    "I like rye bread.", "I am fond of figs.", "I love thunderstorms.", "I enjoy chess problems.",
)  # fmt: skip
SERVERS = (
    "Server atlas runs kafka.", "Server birch runs redis.", "The mail server is called cedar.",
    "Server delta runs grafana.", "Our build server has 64 GB.", "Server falcon runs the wiki.",
)  # fmt: skip


@for_each(
    ("texts", "prompts", "query"),
    [
        (LIKES, ["What do I like?", "List my likes", "What are my preferences?"], "likes"),
        (SERVERS, ["Which servers do we have?", "List all servers", "Which servers are there?"], "servers"),
    ],
)  # fmt: skip
def test_each_way_of_asking_brings_all_of_a_kind(
    memory: Memory, texts: tuple[str, ...], prompts: list[str], query: str
) -> None:
    for text in (*texts, "I hate coriander.", *ALLERGIES[:3]):
        memory.store(text)
    for number, prompt in enumerate(prompts):
        recall = memory.turns.before(prompt, replace(HERE, session_id=f"s{number}"))
        assert recall is not None, prompt
        shown = {item.text for item in recall.items}
        assert set(texts) <= shown, prompt
        assert "I hate coriander." not in shown, prompt
    told = call_tool(memory, "memory_recall", {"query": query, "limit": 20}, HERE)
    assert set(texts) <= {each["text"] for each in told.details["memories"]}
    assert set(texts) <= {hit.fact.text for hit in memory.admin.search(query, limit=len(texts))}


def test_what_somebody_does_not_like_is_none_of_their_likes(memory: Memory) -> None:
    for text in (*LIKES, "I hate coriander.", "I can't stand techno."):
        memory.store(text)
    recall = memory.turns.before("What do I not like?", HERE)
    assert recall is not None
    shown = {item.text for item in recall.items}
    assert shown >= {"I hate coriander.", "I can't stand techno."}
    assert shown.isdisjoint(LIKES)


@for_each(
    ("texts", "prompts", "others"),
    [
        (["User is allergic to shellfish.", "User is allergic to nuts."], ["List all my allergies"], []),
        (
            ["Je suis allergique aux noix.", "Peanuts trigger my asthma allergy.", "Pollen triggers an allergy."],
            ["What are my allergies?", "Quelles sont mes allergies ?"],
            [],
        ),
        (
            ["I love spicy food but I can't stand cilantro.", "My favourite film is Detestable Me, I like it a lot."],
            ["What do I like?", "What are my preferences?"],
            ["I don't like horror films.", "I don't enjoy running.", "Ben likes rye bread."],
        ),
        (
            ["I don't like horror films.", "I do not like eels.", "I hate running."],
            ["What don't I like?", "What do I not like?", "What do I hate?"],
            ["I like comedies.", "I love sushi."],
        ),
        (
            ["Our client Bolt is in Bonn.", "My client Acme pays late.", "Norwell is a client, they pay monthly."],
            ["Who are our clients?", "my clients"],
            [],
        ),
        (
            ["Always use type hints in the code you write for me.", "Use tabs in my Go code."],
            ["What are my coding preferences?", "Show me all my preferences for code"],
            [],
        ),
    ],
)  # fmt: skip
def test_what_is_the_askers_own_comes_up_however_it_is_worded(
    tmp_path: Path, open_memory: OpenMemory, texts: list[str], prompts: list[str], others: list[str]
) -> None:
    memory = open_memory(tmp_path / str(len(list(tmp_path.iterdir()))), embedder="auto")
    assert memory.ready()
    for text in (*texts, *others, "The garden fence needs a new board.", "We deploy on Tuesdays."):
        memory.store(text)
    for number, prompt in enumerate(prompts):
        recall = memory.turns.before(prompt, replace(HERE, session_id=f"s{number}"))
        shown = {item.text for item in recall.items} if recall else set()
        assert set(texts) <= shown, prompt
        assert shown.isdisjoint(others), prompt


def test_a_search_leaves_nothing_out_that_is_near(memory: Memory) -> None:
    assert len(memory.admin.search("volcano", limit=4)) == 4


def test_nothing_comes_up_of_a_kind_of_which_there_is_none(memory: Memory) -> None:
    assert memory.turns.before("Which of my bikes do I ride?", HERE) is None


@for_each(
    ("prompt", "asked"),
    [
        ("What do I like?", True), ("List my likes", True), ("which servers do we have", True), ("my allergies", True),
        ("Welche Allergien habe ich?", True), ("Quels sont mes livres ?", True), ("¿A qué soy alérgico?", True),
        ("List all servers", True),
        ("List all our servers with what they are for.", True), ("Remind me what books I have", True),
        ("Which books does my brother-in-law own?", False), ("Who are our clients?", True),
        ("Which dietary needs do my two sisters have?", False), ("List all files in src", False),
        ("Where do I live?", False), ("What is my salary?", False), ("What are common allergies?", False),
        ("Fix all tests in our repository", False), ("What's the name of my boss?", False),
        ("Do we have everything of mine in one place?", True), ("a list of my medicines", True),
        ("I retire in May, and my successor should understand everything.", False),
        ("On assembly: it is every Friday for everybody, I place no class there.", False),
        ("We have guests, make a list of drinks for the high table", False),
    ],
)  # fmt: skip
def test_who_asks_for_a_kind_is_told_from_who_asks_for_one_thing(prompt: str, asked: bool) -> None:
    assert (kind_asked(prompt) is not None) is asked
