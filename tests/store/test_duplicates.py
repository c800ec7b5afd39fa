"""The four levels of duplicates: each on, each off, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.lance.table import LanceIndex
from perdure.store.sql import run
from perdure.store.store import Store
from tests.kit import START, OpenMemory, say

TEXT = "The harbour crane lifts heavy containers every single morning."
OTHER_LETTERS = "the HARBOUR crane lifts  heavy containers every single morning"
SAME_MEANING = "The harbour crane lifts the heavy containers every single morning."
NONE = {"exact": False, "normalised": False, "vector": 0, "classify": False}
NEAR = 0.85
"""What counts as near here: the deterministic embedder knows words, not meaning."""


def cosine(memory: Memory, one: str, other: str) -> float:
    vectors = [memory.admin.embed(text) for text in (one, other)]
    assert vectors[0] is not None
    assert vectors[1] is not None
    return sum((a * b for a, b in zip(vectors[0], vectors[1], strict=True)), 0.0)


def rows(home: Path) -> dict[str, int]:
    """Count the rows of each table that a fact has one row in."""
    store = Store(home)
    with store.database.read() as connection:
        counts = {
            table: run(connection, f"SELECT count(*) FROM {table}")[0][0] for table in ("facts", "facts_fts", "vectors")
        }
    store.close()
    return counts


@pytest.mark.parametrize(
    ("level", "on_with", "again"),
    [
        ("exact", True, TEXT),
        ("normalised", True, OTHER_LETTERS),
        ("normalised", True, TEXT),
        ("vector", NEAR, SAME_MEANING),
    ],
)
def test_a_level_that_is_on_confirms_and_one_that_is_off_adds(
    open_memory: OpenMemory, home: Path, tmp_path: Path, clock: ManualClock, level: str, on_with: object, again: str
) -> None:
    on = open_memory(embedder="hash", compare=NONE | {level: on_with})
    off = open_memory(tmp_path / "off", embedder="hash", compare=NONE)
    assert cosine(on, TEXT, SAME_MEANING) >= NEAR
    first = on.store(TEXT)
    off.store(TEXT)
    clock.advance(60.0)
    second = on.store(again)
    assert second.id == first.id
    assert (second.text, second.reinforced_count, second.last_confirmed_at) == (TEXT, 1, START + 60.0)
    assert rows(home) == {"facts": 1, "facts_fts": 1, "vectors": 1}
    assert off.store(again).reinforced_count == 0
    assert rows(tmp_path / "off") == {"facts": 2, "facts_fts": 2, "vectors": 2}


def test_the_exact_level_wants_every_letter(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory(compare=NONE | {"exact": True})
    memory.store(TEXT)
    memory.store(OTHER_LETTERS)
    assert rows(home)["facts"] == 2


def test_the_normalised_level_wants_the_same_words(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory(compare=NONE | {"normalised": True})
    memory.store(TEXT)
    memory.store(SAME_MEANING)
    assert rows(home)["facts"] == 2


def test_the_fourth_level_knows_slots(open_memory: OpenMemory, tmp_path: Path) -> None:
    on = open_memory(compare=NONE | {"classify": True})
    off = open_memory(tmp_path / "off", compare=NONE)
    for memory in (on, off):
        first = memory.store("My birthday is 3 May.")
        memory.store("I was born on 3 May.")
        memory.store("My birthday is 4 May, not 3 May.", value="4 May")
        assert memory.get(first.id).reinforced_count == (1 if memory is on else 0)
    assert [fact.value for fact in on.lookup("user", "birthday")] == ["4 May"]
    assert len(on.lookup("user", "birthday", include_superseded=True)) == 2
    assert len(off.lookup("user", "birthday")) == 3


def test_all_levels_are_on_by_default(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory(embedder="hash", compare={"vector": NEAR})
    for text in (TEXT, TEXT, OTHER_LETTERS, SAME_MEANING):
        memory.store(text)
    [fact] = memory.admin.list()
    assert fact.reinforced_count == 3
    assert rows(home) == {"facts": 1, "facts_fts": 1, "vectors": 1}


def test_what_is_said_in_a_turn_is_compared_too(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory(embedder="hash", compare={"vector": NEAR})
    say(memory, "My harbour crane lifts heavy containers every single morning.")
    say(memory, "My harbour crane lifts the heavy containers every single morning.", session="t")
    [fact] = memory.admin.list()
    assert fact.reinforced_count == 1


@pytest.mark.sqlite
def test_a_vector_duplicate_is_one_row_in_the_derived_index_too(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory(embedder="hash", vector_index="lance", compare={"vector": NEAR})
    first = memory.store(TEXT)
    assert memory.store(SAME_MEANING).id == first.id
    assert memory.admin.sync_index()
    store = Store(home)
    space = store.space()
    assert space is not None
    index = LanceIndex(store.lance_folder, space.id, space.dims, create=False)
    assert index.ids() == {first.id}
    index.close()
    store.close()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The harbour crane number 7 lifts heavy containers.", "The harbour crane number 8 lifts heavy containers."),
        ("The harbour crane lifts containers at 7:30.", "The harbour crane lifts containers at 7:45."),
        ("The harbour crane of Lisbon lifts containers.", "The harbour crane of Lisboa lifts containers."),
        ("The harbour crane does lift heavy containers.", "The harbour crane does not lift heavy containers."),
        ("The harbour crane will lift heavy containers.", "The harbour crane will never lift heavy containers."),
        ("The harbour crane works with heavy containers.", "The harbour crane works without heavy containers."),
        ("The harbour crane could lift containers.", "The harbour crane couldn't lift containers."),
        ("I call the harbour crane of my dad every morning.", "I call the harbour crane of my mum every morning."),
    ],
)
def test_other_figures_names_and_a_not_are_no_duplicates(
    open_memory: OpenMemory, home: Path, one: str, other: str
) -> None:
    # Classified before it is written, what says the opposite would withdraw the other, which is no duplicate either.
    memory = open_memory(embedder="hash", compare={"vector": 0.5, "classify": False})
    assert cosine(memory, one, other) >= 0.5
    assert memory.store(one).id != memory.store(other).id
    assert {fact.text for fact in memory.admin.list()} == {one, other}
    assert rows(home) == {"facts": 2, "facts_fts": 2, "vectors": 2}


def test_the_same_words_in_another_scope_are_another_fact(memory: Memory) -> None:
    assert memory.store(TEXT).id != memory.store(TEXT, scope="global").id


def test_the_same_words_after_their_time_are_another_fact(memory: Memory, clock: ManualClock) -> None:
    old = memory.store(TEXT, decay_class="ephemeral")
    clock.advance(5 * 3600.0)
    assert memory.store(TEXT).id != old.id
