"""Triggers of memories: how they are kept, carried along, taken back, and which of them count."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from perdure.api.memory import Memory
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.store import triggers
from perdure.store.fact import Fact
from perdure.store.transaction import Author
from tests.kit import OpenMemory, for_each

SORE, DINNER = "what can I take for my sore throat", "book us a table for dinner"


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory()


def put(memory: Memory, fact_id: str, texts: Sequence[str], origin: str = triggers.USER) -> None:
    with memory._engine.store.write(Author(Channel.CLI)) as tx:
        tx.put_triggers(fact_id, texts, origin)


def told(memory: Memory, fact_id: str) -> dict[str, str]:
    """Return the triggers of a memory with their origins."""
    found = memory._engine.store.database.query(triggers.of, [fact_id])
    return {each.text: each.origin for each in found.get(fact_id, ())}


def test_those_of_another_origin_stay_and_the_stronger_word_counts(memory: Memory) -> None:
    fact = memory.store("I'm allergic to penicillin.")
    put(memory, fact.id, [SORE, DINNER], triggers.AGENT)
    put(memory, fact.id, [SORE.upper()])
    assert told(memory, fact.id) == {SORE.upper(): "user", DINNER: "agent"}
    put(memory, fact.id, [SORE], triggers.AGENT)
    assert told(memory, fact.id) == {SORE.upper(): "user"}
    put(memory, fact.id, [])
    assert told(memory, fact.id) == {}
    memory.undo()
    assert told(memory, fact.id) == {SORE.upper(): "user"}


def test_a_new_version_keeps_them_and_an_undo_gives_them_back(memory: Memory) -> None:
    fact = memory.store("I'm allergic to penicillin.")
    put(memory, fact.id, [SORE])
    new = memory.update(fact.id, text="I'm allergic to penicillin and to nuts.")
    assert told(memory, new.id) == {SORE: "user"}
    memory.undo()
    assert told(memory, fact.id) == {SORE: "user"}
    memory.undo()
    assert told(memory, fact.id) == {}
    assert memory.admin.verify() == []


REFUSED = {
    "there are 9; a memory has at most 8": [f"situation {number}" for number in range(9)],
    "201 characters; the limit is 200": ["x" * 201],
    "'  ' is empty": ["  "],
    "'one' is not accepted": "one",
    "5 is not accepted": 5,
    r"\[7\] is not accepted": [7],
}


@for_each(["message", "texts"], REFUSED.items())
def test_what_cannot_be_a_trigger_is_refused(message: str, texts: object) -> None:
    with pytest.raises(InputError, match=message):
        triggers.checked(texts)


def test_all_origins_together_keep_the_limit(memory: Memory) -> None:
    fact = memory.store("I'm allergic to penicillin.")
    put(memory, fact.id, [f"situation {number}" for number in range(6)], triggers.AGENT)
    with pytest.raises(
        InputError, match="with those set by others, the memory would have 9; the limit is 8; give at most 2 more"
    ):
        put(memory, fact.id, ["one", "two", "three"])
    assert len(told(memory, fact.id)) == 6


def test_a_secret_is_left_out(memory: Memory) -> None:
    fact = memory.store("The vault of the bank is closed on Sundays.")
    put(memory, fact.id, ["log in with password hunter2!Xy"])
    [text] = told(memory, fact.id)
    assert "hunter2" not in text


def test_only_a_memory_that_a_person_vouches_for_is_aimed_by_an_agent(memory: Memory) -> None:
    store = memory._engine.store
    facts: dict[str, Fact] = {}
    for channel in Channel:
        with store.write(Author(channel)) as tx:
            fact = tx.add(Fact(f"The berth of {channel} is free.", channel=channel, scope="user", scope_target="owner"))
            tx.put_triggers(fact.id, [SORE], triggers.AGENT)
            facts[channel] = fact

    def counting() -> set[str]:
        with store.database.read() as connection:
            found = triggers.of(connection, [fact.id for fact in facts.values()])
        return {name for name, fact in facts.items() if triggers.counts(fact, found[fact.id][0])}

    said = {"user", "library", "cli", "tool_asked", "owner_file", "transcript_user"}
    assert counting() == said
    noted = facts["tool_unasked"]
    with store.write(Author(Channel.CLI)) as tx:
        tx.change(noted.id, "ask", {"review_state": "pending"})
    memory.admin.approve(noted.id)
    assert counting() == said | {"tool_unasked"}
    put(memory, facts["import"].id, [DINNER])
    with store.database.read() as connection:
        own = triggers.of(connection, [facts["import"].id])[facts["import"].id]
    assert [triggers.counts(facts["import"], each) for each in own] == [True, False]
