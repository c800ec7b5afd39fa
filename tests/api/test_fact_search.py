"""Explicit search in the library, with the model that comes with perdure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.store.listing import Filter

DOG = "Our dog is afraid of thunder."
TAX = "The tax return is due in May."
QUERY = "Which pet fears loud storms?"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Lend a store with two memories and the model loaded."""
    with Memory.open(tmp_path / "home") as opened:
        assert opened.ready()
        opened.store(DOG, category="fact", tags=["home"])
        opened.store(TAX, category="decision", tags=["money"])
        yield opened


def test_what_shares_no_word_is_found_by_meaning(memory: Memory) -> None:
    [best, *_] = memory.admin.search(QUERY)
    assert (best.fact.text, best.leg, best.coverage) == (DOG, "semantic", 0.0)
    assert best.cosine is not None
    assert best.cosine > 0.3


@pytest.mark.parametrize(("chosen", "tag"), [(Filter(category="fact"), None), (Filter(), "home")])
def test_a_filter_narrows_the_search_by_meaning_too(memory: Memory, chosen: Filter, tag: str | None) -> None:
    assert [hit.fact.text for hit in memory.admin.search(QUERY, chosen, tag=tag)] == [DOG]


def test_a_search_leaves_nothing_behind(memory: Memory) -> None:
    before, changes = memory.admin.list(), memory.admin.changes()
    memory.admin.search(QUERY)
    memory.settle()
    assert (memory.admin.list(), memory.admin.changes()) == (before, changes)
