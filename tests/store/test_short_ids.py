"""The short ids that models are shown: how short they are, what they find, and what they must not find."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.api.memory import Memory
from perdure.errors import AmbiguousIdError, InputError, NotFoundError
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View, named_shortly
from perdure.store.short_ids import DIGITS, SHORTEST, spans
from tests.cli.calling import call, call_json
from tests.kit import AUTHOR, OpenMemory, put

NEAR = "abcdef01-2345-4678-9abc-def012345678", "abcdef01-2345-4678-9abc-def012345679"


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory(embedder="none")


def digits(fact_id: str) -> str:
    """Return an id in base32 as Python writes it."""
    return base64.b32encode(uuid.UUID(fact_id).bytes).decode().rstrip("=").lower()


def names(memory: Memory, *ids: str, audience: Audience | None = None) -> dict[str, str]:
    view = View(audience or Audience.of(), memory._engine.clock.now())
    return memory._engine.store.database.query(named_shortly, ids, view)


@settings(max_examples=200)
@given(number=st.integers(0, 2**128 - 1), size=st.integers(SHORTEST, 26))
def test_a_beginning_in_base32_is_a_range_of_ids_that_holds_the_id_and_no_other_beginning(
    number: int, size: int
) -> None:
    fact_id = str(uuid.UUID(int=number))
    begun = digits(fact_id)[:size]
    low, high = spans(begun)[-1]
    assert low <= fact_id < high
    for edge in {low, str(uuid.UUID(int=2**128 - 1)) if high == "g" else str(uuid.UUID(int=uuid.UUID(high).int - 1))}:
        assert digits(edge).startswith(begun)


def test_four_characters_name_a_memory_for_everything_that_takes_an_id(memory: Memory) -> None:
    facts = [memory.store(f"The boat number {number} is blue.") for number in range(40)]
    found = names(memory, *(fact.id for fact in facts))
    assert {len(name) for name in found.values()} <= {4, 5}
    for fact in facts:
        name = found[fact.id]
        assert digits(fact.id).startswith(name)
        assert set(name) <= set(DIGITS)
        assert memory.get(name).id == memory.get(f" #{name.upper()}").id == memory.get(fact.id[:8]).id == fact.id
        assert memory.history(name).versions
        assert memory.admin.has(name)
    first = found[facts[0].id]
    assert memory.pin(first).pinned
    assert memory.forget(first).id == memory.unforget(first).id == facts[0].id


def test_what_is_near_has_a_longer_name_also_if_it_is_forgotten(memory: Memory, home: Path) -> None:
    put(home, *(Fact(f"One of two, {fact_id[-1]}.", id=fact_id) for fact_id in NEAR))
    found = names(memory, *NEAR)
    assert len(set(found.values())) == 2
    assert {memory.get(name).id for name in found.values()} == {*NEAR}
    memory.forget(NEAR[0])
    assert names(memory, NEAR[1]) == {NEAR[1]: found[NEAR[1]]}
    with pytest.raises(AmbiguousIdError, match="give more digits"):
        memory.unforget(digits(NEAR[0])[:4])


def test_what_others_have_makes_no_name_longer_and_is_not_found(memory: Memory, home: Path) -> None:
    put(home, Fact("Mine.", id=NEAR[0]))
    with memory._engine.store.write(AUTHOR) as tx:
        tx.add(Fact("Another's.", id=NEAR[1], scope="user", scope_target="bob"))
    assert names(memory, NEAR[0]) == {NEAR[0]: digits(NEAR[0])[:4]}
    assert memory.get(digits(NEAR[0])[:4]).text == "Mine."
    with pytest.raises(NotFoundError):
        memory.get(digits(NEAR[1]))


def test_a_name_that_is_a_beginning_in_base32_and_in_hex_is_ambiguous(memory: Memory, home: Path) -> None:
    name = "abcdef23"
    number = sum(DIGITS.index(digit) << (123 - 5 * place) for place, digit in enumerate(name))
    one, other = f"{name}-0000-4000-8000-000000000000", str(uuid.UUID(int=number))
    put(home, Fact("By its hex digits.", id=one))
    assert memory.get(name).id == one
    put(home, Fact("By its short id.", id=other))
    with pytest.raises(AmbiguousIdError, match=name):
        memory.get(name)
    assert (memory.get(one[:9]).id, memory.get(f"{name}a").id) == (one, other)


@pytest.mark.parametrize("name", ["", "#", "abc", "k3f1", "k3f8q", "k" * 27, "k3-q", "ab%", "k3fq x"])
def test_what_is_neither_is_refused(memory: Memory, name: str) -> None:
    with pytest.raises(InputError, match="short id"):
        memory.get(name)


def test_commands_find_a_memory_by_its_short_id(memory: Memory, home: Path) -> None:
    fact = memory.store("The boat is blue.")
    [name] = names(memory, fact.id).values()
    memory.close()
    at = ("--home", home)
    assert "The boat is blue." in call("show", name, *at).stdout
    for command in ("pin", "history", "forget", "unforget"):
        assert call(command, name, *at, code=None).code == 0, command
    assert call_json("show", f"#{name}", *at)["id"] == fact.id
    call("purge", name, "--yes", *at, code=None)
    with Memory.open(home, embedder="none") as left:
        assert not left.admin.list()
