"""Other names that the user sets: searches go by them, and they are memories like others."""

from __future__ import annotations

import pytest

from perdure.api.memory import Memory
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import Channel
from perdure.recall.receipt import Receipt
from tests.kit import OpenMemory


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    """A memory that knows one thing by two names."""
    memory = open_memory()
    memory.aliases.add("GitHub Actions", "GHA")
    return memory


def test_a_search_and_a_lookup_go_by_every_name(memory: Memory) -> None:
    runners = memory.store("The runners stand in Oslo.", entity="GitHub Actions", key="place", value="Oslo")
    assert [fact.id for fact in memory.lookup("gha", "place")] == [runners.id]
    assert runners.id in {hit.fact.id for hit in memory.admin.search("gha")}
    memory.aliases.remove("GHA")
    assert memory.lookup("gha") == []
    assert runners.id not in {hit.fact.id for hit in memory.admin.search("gha") if hit.coverage}


def test_recall_goes_by_every_name(memory: Memory) -> None:
    memory.store("GitHub Actions has 2,000 free minutes a month.")
    recall = memory.recall("How many free minutes does GHA have?")
    assert recall is not None
    assert "GitHub Actions has 2,000 free minutes a month." in [item.text for item in recall.items]


def test_an_explained_recall_tells_the_names_unless_they_are_gone(memory: Memory) -> None:
    kept: list[Receipt] = []
    memory.recall("How many free minutes does GHA have?", receipt_to=kept.append)
    explained = memory.why(kept[0])
    assert explained.query == "How many free minutes does GHA have?"
    assert explained.aliases == ("GitHub Actions is also called GHA.",)
    memory.admin.purge(memory.aliases.list()[0].id)
    assert memory.why(kept[0]).aliases == ()


def test_it_is_told_as_it_was_set_and_only_once(memory: Memory) -> None:
    again = memory.aliases.add("  GitHub   Actions ", "GHA")
    assert [(fact.entity, fact.value, fact.id) for fact in memory.aliases.list()] == [
        ("GitHub Actions", "GHA", again.id)
    ]


def test_a_second_name_stands_beside_the_first(memory: Memory) -> None:
    memory.aliases.add("GitHub Actions", "the robots", channel=Channel.CLI)
    assert [fact.value for fact in memory.aliases.list()] == ["the robots", "GHA"]


def test_removing_takes_either_side_and_undo_brings_it_back(memory: Memory) -> None:
    memory.aliases.add("GitHub Actions", "the robots")
    assert [fact.value for fact in memory.aliases.remove("gha", dry_run=True)] == ["GHA"]
    assert len(memory.aliases.list()) == 2
    assert [fact.value for fact in memory.aliases.remove("the robots", "github actions")] == ["the robots"]
    assert [fact.value for fact in memory.aliases.list()] == ["GHA"]
    memory.undo()
    assert len(memory.aliases.remove("GitHub Actions")) == 2
    assert memory.aliases.list() == []


@pytest.mark.parametrize(("name", "other"), [("GHA", "heron"), ("heron", None)])
def test_what_nobody_has_said_cannot_be_removed(memory: Memory, name: str, other: str | None) -> None:
    with pytest.raises(NotFoundError, match="perdure alias list"):
        memory.aliases.remove(name, other)


@pytest.mark.parametrize(
    ("name", "other", "told"),
    [
        ("heron", "HERON", "are spellings of the same name"),
        ("heron", " ", "is not a name; give 1 to 6 words"),
        ("...", "heron", "is not a name"),
        ("heron", "the one that stands behind the door", "is not a name"),
        ("heron", "x" * 61, "up to 60 characters"),
    ],
)
def test_what_is_no_other_name_is_refused(memory: Memory, name: str, other: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        memory.aliases.add(name, other)
    assert len(memory.aliases.list()) == 1
