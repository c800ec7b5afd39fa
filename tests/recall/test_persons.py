"""A memory about one person does not answer for another."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext
from perdure.recall.kinds import anothers, owned
from tests.kit import OpenMemory, for_each

NAMES = st.sampled_from(["Tom", "Jonah", "Nora", "Mia", "Wren"])
THINGS = st.sampled_from(["email", "birthday", "desk", "flight"])


def brought(memory: Memory, prompt: str, session: str) -> set[str]:
    recall = memory.turns.before(prompt, TurnContext(session_id=session, host="test"))
    return {item.text for item in recall.items} if recall else set()


def test_the_thing_of_one_person_does_not_come_up_for_anothers(tmp_path: Path, open_memory: OpenMemory) -> None:
    memory = open_memory(tmp_path, embedder="auto")
    assert memory.ready()
    for text in ("My sister's birthday is May 4.", "Tom's email is tom@example.org.", "Ana likes green tea."):
        memory.store(text)
    assert brought(memory, "When is my sister's birthday?", "a") == {"My sister's birthday is May 4."}
    assert brought(memory, "What is Tom's email?", "b") == {"Tom's email is tom@example.org."}
    assert brought(memory, "When is my birthday?", "c") == set()
    assert brought(memory, "What's Jonah's email?", "d") == set()
    assert "Ana likes green tea." not in brought(memory, "What do I like?", "e")


@given(NAMES, NAMES, THINGS, THINGS)
def test_only_the_same_thing_of_another_person_is_anothers(one: str, other: str, thing: str, told: str) -> None:
    found = anothers(owned(f"What was {one}'s {thing} again?"), f"{other}'s {told} is in the notes.")
    # Of two names that begin alike one may be short for the other.
    assert found is (one[0] != other[0] and thing == told)


@for_each(
    ("prompt", "text", "found"),
    [
        ("When is my birthday?", "My sister's birthday is May 4.", True),
        ("When is my birthday?", "My birthday is two days after my sister's birthday.", False),
        # A name may be the user's own.
        ("When is my exam?", "Pip's exam is on the 9th.", False),
        ("What would Jonah's session cost?", "My session costs 80.", False),
        ("Is Tom's flight late?", "Jonah's flight lands an hour after Tom lands.", False),
        ("When is my flight?", "My wife's flight leaves at 9, mine at 10.", False),
        ("What is my mom's address?", "My mother's address is Elm Road 1.", False),
        ("What is my boss's name?", "My manager's name is Eva Klein.", False),
        ("What is Kate's email?", "Katherine's email is k@example.org.", False),
        # Who has which name another memory may tell.
        ("When is my daughter's birthday?", "Mia's birthday is 7 July.", False),
        ("What is Lena's shoe size?", "My wife's shoe size is 38.", False),
        ("What is my sister's address?", "My wife's address is Elm Road 1.", True),
        ("What's up with my flight?", "It's my wife's flight.", True),
        ("my " * 900, "my " * 20_000 + "a-" * 20_000, False),
        ("What is the port of heron's database?", "Osprey's database is small.", False),
    ],
)  # fmt: skip
def test_where_it_may_be_the_right_person_nothing_is_left_out(prompt: str, text: str, found: bool) -> None:
    assert anothers(owned(prompt), text) is found
