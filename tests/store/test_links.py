"""Links between facts, and where they lead."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import InputError, NotFoundError
from perdure.store.sql import run
from perdure.store.store import Store
from tests.kit import DAY, START, OpenMemory, say

CORE = ("SUPERSEDES", "CAUSED_BY", "PART_OF", "RELATED_TO", "DEPENDS_ON")
FURTHER = ("CONTRADICTS", "INSTANCE_OF", "DERIVED_FROM")


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    """A memory that replaces nothing and links nothing unasked, however much alike the facts are."""
    return open_memory(compare={"classify": False})


def chain(memory: Memory, count: int) -> list[str]:
    """Store facts and link each to the next, every second link the other way round."""
    ids = [memory.store(f"Berth number {number} is free.").id for number in range(count)]
    for number in range(count - 1):
        ends = (ids[number], ids[number + 1])
        memory.link(*(ends if number % 2 == 0 else ends[::-1]))
    return ids


def reached(memory: Memory, fact_id: str, depth: int = 2) -> dict[str, int]:
    return {found.fact.id: found.depth for found in memory.related(fact_id, depth)}


def link_rows(home: Path) -> int:
    store = Store(home)
    with store.database.read() as connection:
        [(count,)] = run(connection, "SELECT count(*) FROM memory_links")
    store.close()
    return int(count)


@pytest.mark.parametrize("link_type", [*CORE, *FURTHER])
def test_facts_are_linked_by_each_type(memory: Memory, link_type: str) -> None:
    one, other = memory.store("The build failed."), memory.store("The tool was new.")
    made = memory.link(one.id[:8], other.id[:8], link_type, 0.25)
    assert (made.source, made.target, made.type, made.strength) == (one.id, other.id, link_type, 0.25)
    [found] = memory.related(one.id)
    assert (found.fact.id, found.depth, found.link) == (other.id, 1, made)
    memory.unlink(one.id, other.id, link_type)
    assert memory.related(one.id) == []


def test_a_link_is_strong_unless_said_otherwise(memory: Memory) -> None:
    one, other = chain(memory, 2)
    [found] = memory.related(one)
    assert (found.link.type, found.link.strength, found.link.created_at) == ("RELATED_TO", 1.0, START)
    assert found.link.target == other


def test_linking_again_sets_the_strength(memory: Memory, home: Path) -> None:
    one, other = chain(memory, 2)
    assert memory.link(one, other, strength=0.5).strength == 0.5
    assert link_rows(home) == 1
    memory.link(one, other, "PART_OF")
    memory.link(other, one)
    assert link_rows(home) == 3


@pytest.mark.parametrize("strength", [-0.01, 1.01, float("nan"), float("inf")])
def test_a_strength_is_from_0_to_1(memory: Memory, home: Path, strength: float) -> None:
    one, other = (memory.store(text).id for text in ("The build failed.", "The tool was new."))
    with pytest.raises(InputError, match="strength is"):
        memory.link(one, other, strength=strength)
    assert link_rows(home) == 0


@pytest.mark.parametrize("link_type", ["", "related_to", "LIKES", "RELATED_TO; DROP TABLE facts"])
def test_an_unknown_type_is_refused(memory: Memory, link_type: str) -> None:
    one, other = chain(memory, 2)
    with pytest.raises(InputError, match="link type"):
        memory.link(one, other, link_type)


def test_a_fact_is_not_linked_to_itself(memory: Memory) -> None:
    fact = memory.store("The build failed.")
    with pytest.raises(InputError, match="itself"):
        memory.link(fact.id, fact.id)


def test_a_link_that_is_not_there_cannot_be_removed(memory: Memory) -> None:
    one, other = chain(memory, 2)
    for ends in ((other, one, "RELATED_TO"), (one, other, "PART_OF")):
        with pytest.raises(NotFoundError, match=r"no .* link"):
            memory.unlink(*ends)


@pytest.mark.parametrize("depth", [1, 2, 3, 5, 10])
def test_links_are_followed_both_ways_to_a_depth(memory: Memory, depth: int) -> None:
    ids = chain(memory, 13)
    assert reached(memory, ids[0], depth) == {ids[step]: step for step in range(1, depth + 1)}
    assert reached(memory, ids[12], depth) == {ids[12 - step]: step for step in range(1, depth + 1)}
    middle = reached(memory, ids[6], min(depth, 6))
    assert len(middle) == 2 * min(depth, 6)


@pytest.mark.parametrize("depth", [0, -1, 11])
def test_the_depth_has_limits(memory: Memory, depth: int) -> None:
    [fact_id, _] = chain(memory, 2)
    with pytest.raises(InputError, match="depth is"):
        memory.related(fact_id, depth)


def test_in_a_ring_each_fact_comes_once_by_the_shortest_way(memory: Memory) -> None:
    ids = chain(memory, 5)
    memory.link(ids[0], ids[4])
    assert reached(memory, ids[0], 10) == {ids[1]: 1, ids[4]: 1, ids[2]: 2, ids[3]: 2}


def test_of_equally_near_facts_the_stronger_link_comes_first(memory: Memory) -> None:
    hub, weak, strong = (memory.store(text).id for text in ("The hub.", "A weak one.", "A strong one."))
    memory.link(hub, weak, strength=0.2)
    memory.link(strong, hub, strength=0.9)
    assert [found.fact.id for found in memory.related(hub)] == [strong, weak]


def test_what_may_not_be_seen_is_not_passed_through(memory: Memory) -> None:
    ids = chain(memory, 4)
    memory.forget(ids[1])
    assert reached(memory, ids[0], 10) == {}
    memory.unforget(ids[1])
    assert reached(memory, ids[0], 10) == {ids[1]: 1, ids[2]: 2, ids[3]: 3}


def test_what_has_expired_is_not_passed_through(memory: Memory, clock: ManualClock) -> None:
    one, three = (memory.store(text).id for text in ("The first.", "The third."))
    two = memory.store("The second.", decay_class="ephemeral").id
    memory.link(one, two)
    memory.link(two, three)
    assert reached(memory, one) == {two: 1, three: 2}
    clock.advance(DAY)
    assert reached(memory, one) == {}


def test_what_others_own_is_neither_shown_nor_passed_through(memory: Memory, open_memory: OpenMemory) -> None:
    one, three = (memory.store(text, scope="global").id for text in ("The first.", "The third."))
    private = memory.store("The second, mine alone.").id
    memory.link(one, private)
    memory.link(private, three)
    assert reached(memory, one) == {private: 1, three: 2}
    assert reached(open_memory(user="eva"), one) == {}


def test_links_go_with_their_fact(memory: Memory, home: Path) -> None:
    ids = chain(memory, 3)
    store = Store(home)
    with store.database.write() as connection:
        run(connection, "DELETE FROM facts WHERE id = ?", (ids[1],))
    store.close()
    assert link_rows(home) == 0
    assert reached(memory, ids[0], 10) == {}


NEAR = [f"The harbour crane number {number} lifts heavy containers every morning." for number in range(6)]


def links_of_last(memory: Memory) -> list[float]:
    """Store near facts and return how strong the links are that the last of them got."""
    last = [memory.store(text) for text in NEAR][-1]
    return [found.link.strength for found in memory.related(last.id, 1) if found.link.source == last.id]


def test_new_facts_are_linked_to_near_ones_if_that_is_wanted(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="hash", compare={"auto_link": 3})
    strengths = links_of_last(memory)
    assert len(strengths) == 3
    assert all(0.7 <= strength <= 1 for strength in strengths)
    assert memory.related(memory.store("Basil wants more water than thyme.").id) == []


def test_by_default_nothing_is_linked(open_memory: OpenMemory, home: Path) -> None:
    assert links_of_last(open_memory(embedder="hash")) == []
    assert link_rows(home) == 0


def test_how_many_can_be_set(open_memory: OpenMemory) -> None:
    assert len(links_of_last(open_memory(embedder="hash", compare={"auto_link": 1}))) == 1


def test_captured_facts_are_linked_too(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="hash", compare={"auto_link": 3})
    first = memory.store("My harbour crane lifts heavy containers every single morning on Monday.")
    say(memory, "My harbour crane lifts heavy containers every single morning on Tuesday too.")
    [other] = [fact for fact in memory.admin.list() if fact.id != first.id]
    assert [found.fact.id for found in memory.related(first.id)] == [other.id]
