"""Sentences that give a thing another name, and those that only look like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.capture.describe import describe
from perdure.capture.naming import abbreviates, find_naming
from perdure.capture.slots import Slot, find_slot
from perdure.capture.statements import statements
from perdure.hooks.types import TurnContext
from perdure.store.aliases import ALIAS, NAMING
from tests.kit import OpenMemory, for_each


@for_each(
    ("sentence", "thing", "other"),
    [
        ("GHA stands for GitHub Actions.", "GitHub Actions", "GHA"),
        ("FYI, the NAS stands for network attached storage here.", "network attached storage", "NAS"),
        ("k8s is short for Kubernetes.", "Kubernetes", "k8s"),
        ("In this project PR is an abbreviation for purchase request.", "purchase request", "PR"),
        ("Home Assistant, HA for short, runs on the Pi.", "Home Assistant", "HA"),
        ("We run everything on Home Assistant, or HA for short.", "Home Assistant", "HA"),
        ("We call Home Assistant HA for short.", "Home Assistant", "HA"),
        ("The continuous integration (CI for short) runs at night.", "continuous integration", "CI"),
        ("We call the staging server heron.", "staging server", "heron"),
        ("We usually call the staging server 'heron' internally.", "staging server", "heron"),
        ("Everyone calls the storage room the bunker.", "storage room", "bunker"),
        ("In our house we call the guest bathroom Siberia.", "guest bathroom", "Siberia"),
        ("The team refers to Bridge Street as the depot.", "Bridge Street", "depot"),
        ("heron is what we call the staging server.", "staging server", "heron"),
        ("Heron is our code name for the staging server.", "staging server", "Heron"),
        ("The staging server, also known as heron, was bought in May.", "staging server", "heron"),
        ("The staging server is also called heron.", "staging server", "heron"),
        ("Kubernetes (aka k8s) is what we deploy to.", "Kubernetes", "k8s"),
        ("Our billing service, a.k.a. Goldie, is written in Go.", "billing service", "Goldie"),
        ("The new office, known internally as the hangar, opens in May.", "new office", "hangar"),
        ("Our data warehouse is nicknamed the swamp.", "data warehouse", "swamp"),
        ("We just say PSQL for PostgreSQL.", "PostgreSQL", "PSQL"),
        ("The kids call the vacuum cleaner Dusty.", "vacuum cleaner", "Dusty"),
        ("When I say HA I mean Home Assistant.", "Home Assistant", "HA"),
        ("By the depot we mean Bridge Street.", "Bridge Street", "depot"),
        ("Continuous integration is abbreviated to CI.", "Continuous integration", "CI"),
        ("We abbreviate purchase request as PR.", "purchase request", "PR"),
        ("I installed Home Assistant (HA) on the Pi.", "Home Assistant", "HA"),
        ("I report to the Department for Transport (DfT) now.", "Department for Transport", "DfT"),
        ("GHA (GitHub Actions) builds the site.", "GitHub Actions", "GHA"),
    ],
)
def test_another_name_is_filed_as_one(sentence: str, thing: str, other: str) -> None:
    [statement] = statements(sentence)
    assert find_slot(statement.text) == Slot(thing, ALIAS, other)
    assert describe(statement).category == "entity"


@pytest.mark.parametrize(
    ("sentence", "thing", "key", "other"),
    [
        ("The deployment box is called heron.", "deployment box", "name", "heron"),
        ("The Tuesday meeting goes by Standup Plus.", "Tuesday meeting", "name", "Standup Plus"),
        ("The code name of the merger is Bluebell.", "merger", "code name", "Bluebell"),
    ],
)
def test_a_name_in_a_slot_of_its_own_counts_as_well(sentence: str, thing: str, key: str, other: str) -> None:
    assert find_slot(sentence) == Slot(thing, key, other)
    assert key in NAMING


@for_each(
    "sentence",
    [
        "We call him often.",
        "It is called off.",
        "The match is called off.",
        "The meeting was also called off.",
        "We call it a day at five.",
        "We call the office daily.",
        "We call the police often.",
        "We call the plumber first.",
        "I call the doctor Monday.",
        "I call the shop Tuesday mornings.",
        "I call my mum every Sunday.",
        "I also called the plumber.",
        "I called the bank back.",
        "They call the kids home at six.",
        "You can call me any time.",
        "We call that progress.",
        "I call the plan stupid.",
        "We call the new process painful.",
        "The office calls the shots.",
        "We call the payment service.",
        "We call the function twice.",
        "We call the API from the worker.",
        "We call the endpoint every minute.",
        "We don't call the staging server heron any more.",
        "The flag stands for freedom.",
        "She stands for parliament.",
        "GHA does not stand for anything.",
        "My son is short for his age.",
        "He is short for a goalkeeper.",
        "We are short for time (again).",
        "The garden is known for its roses.",
        "I live in Graz (Austria).",
        "My brother (Tom) lives in Oslo.",
        "I bought a house (finally) in Ghent.",
        "I mean the staging server.",
        "I call the red car mine.",
        "They call the new policy a disaster.",
        "The band is also known for loud shows.",
        "I say a prayer for peace.",
    ],
)
def test_what_only_looks_like_a_name_is_none(sentence: str) -> None:
    assert find_naming(sentence) is None
    slot = find_slot(sentence)
    assert slot is None or slot.key not in NAMING


@pytest.mark.parametrize(
    ("sentence", "slot"),
    [
        (
            "I work for the British Broadcasting Corporation (BBC).",
            Slot("user", "employer", "the British Broadcasting Corporation (BBC)"),
        ),
        ("My name is Robert, Bob for short.", Slot("user", "name", "Robert")),
    ],
)
def test_a_slot_that_holds_one_value_comes_before_a_name_in_passing(sentence: str, slot: Slot) -> None:
    assert find_slot(sentence) == slot


@pytest.mark.parametrize(
    ("short", "long", "made"),
    [
        ("GHA", "GitHub Actions", True),
        ("k8s", "Kubernetes", True),
        ("prod", "production", True),
        ("Beth", "Elizabeth", True),
        ("heron", "staging server", False),
        ("GHA", "GHA", False),
        ("G", "GitHub", False),
        ("...", "GitHub", False),
    ],
)
def test_abbreviates(short: str, long: str, made: bool) -> None:
    assert abbreviates(short, long) is made


@given(st.text(max_size=400))
def test_any_text_is_read(text: str) -> None:
    for sentence in (text, f"We call the {text} heron", f"{text} (HA)", f"{text}, also known as {text}"):
        found = find_naming(sentence)
        assert found is None or (found.thing and found.other)


def test_what_was_said_of_a_name_is_asked_for_by_both(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.turns.after([{"role": "user", "content": "GHA stands for GitHub Actions."}], True, TurnContext())
    memory.turns.after(
        [{"role": "user", "content": "GitHub Actions has 2,000 free minutes a month."}], True, TurnContext()
    )
    assert memory.settle()
    assert [(fact.entity, fact.value) for fact in memory.aliases.list()] == [("GitHub Actions", "GHA")]
    recall = memory.recall("How many free minutes does GHA have?")
    assert recall is not None
    assert "GitHub Actions has 2,000 free minutes a month." in [item.text for item in recall.items]
