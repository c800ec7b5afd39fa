"""What has no category gets the one that its words or its neighbours have."""

from __future__ import annotations

import pytest

from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext
from tests.kit import OpenMemory


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory()


def category(memory: Memory, fact_id: str) -> str:
    return memory.get(fact_id).category


def test_words_give_a_category(memory: Memory) -> None:
    fact = memory.store("I love strong green tea.", category="other")
    [done] = memory.admin.classify()
    assert (done.id, done.category, done.by) == (fact.id, "preference", "rules")
    assert category(memory, fact.id) == "preference"
    assert [found.id for found in memory.admin.list() if found.category == "preference"] == [fact.id]


def test_neighbours_give_a_category_where_words_do_not(memory: Memory) -> None:
    for number in (1, 2, 3):
        memory.store(f"heron release train platform number {number}", category="decision")
    memory.store("something else altogether", category="entity")
    fact = memory.store("heron release train platform number nine", category="other")
    [done] = memory.admin.classify()
    assert (done.id, done.category) == (fact.id, "decision")
    assert done.by.startswith("neighbours")
    memory.undo()
    assert category(memory, fact.id) == "other"


def test_a_dry_run_changes_nothing(memory: Memory) -> None:
    fact = memory.store("I love strong green tea.", category="other")
    assert [done.id for done in memory.admin.classify(dry_run=True)] == [fact.id]
    assert category(memory, fact.id) == "other"


def test_what_is_near_nothing_stays_as_it_is(memory: Memory) -> None:
    memory.store("heron release train", category="decision")
    memory.store("quartz umbrella violin", category="other")
    assert memory.admin.classify() == []


def test_without_a_model_words_alone_decide(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="none")
    memory.store("I love strong green tea.", category="other")
    memory.store("quartz umbrella violin", category="other")
    assert [done.category for done in memory.admin.classify()] == ["preference"]


def test_many_are_classified_in_batches(memory: Memory) -> None:
    for number in range(45):
        memory.store(
            f"I prefer the {chr(97 + number // 10)}{chr(97 + number % 10)}lip chair over the sofa.", category="other"
        )
    assert len(memory.admin.classify()) == 45
    assert len(memory.undo().facts) == 5  # the last batch of 20, 20 and 5


OPAQUE = "quartz umbrella violin"


def test_nobodys_memories_give_those_of_others_a_category(memory: Memory) -> None:
    for number in (1, 2, 3):
        Memory(memory._engine, TurnContext(agent_id="ann")).store(f"heron release train {number}", category="decision")
    Memory(memory._engine, TurnContext(agent_id="bob")).store("heron release train nine", category="other")
    assert memory.admin.run_job("classify") == "nothing to classify"


def test_own_categories_are_found_by_their_patterns(open_memory: OpenMemory) -> None:
    with open_memory(embedder="none") as memory:
        memory.store(OPAQUE, category="other")
    memory = open_memory(embedder="none", categories={"music": "violin|trumpet"})
    assert [(each.category, each.by) for each in memory.admin.classify()] == [("music", "rules")]
