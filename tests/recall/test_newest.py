"""Of one thing the newest comes first, and what it has overtaken says so."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import Channel
from perdure.ranking.decay import DAY
from perdure.recall.block import Overtaken, day, in_order
from perdure.store.fact import Fact
from perdure.store.links import link
from perdure.store.transaction import Author
from tests.recall.conftest import Desk

HEARING = "The hearing is on 3 May, the budget is 4,000 euros, and a report on the pool is missing."


def lines(block: str) -> list[str]:
    return block.splitlines()[2:-1]


def test_a_corrected_memory_brings_its_correction_and_says_what_is_out_of_date(tmp_path: Path) -> None:
    clock = ManualClock()
    with Memory.open(tmp_path / "home", embedder="none", clock=clock) as memory:
        old = memory.store(HEARING)
        clock.advance(3 * DAY)
        new = memory.store("The hearing is on 12 May.")
        recall = memory.recall("What is the budget for the pool, and which report is missing?")
        assert recall is not None
        assert [item.id for item in recall.items] == [new.id, old.id]
        assert lines(recall.block)[1].endswith(
            f'{HEARING} (3 days ago, {day(old.effective_date)}; out of date: "3 May")'
        )


def test_undoing_the_correction_takes_its_mark_back(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", embedder="none", recall_format="minimal") as memory:
        memory.store(HEARING)
        memory.store("The hearing is on 12 May.")
        memory.undo()
        recall = memory.recall("What is the budget for the pool, and which report is missing?")
        assert recall is not None
        assert lines(recall.block) == [HEARING]


def test_a_mark_stands_in_the_shortest_format_too(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", embedder="none", recall_format="minimal") as memory:
        memory.store(HEARING)
        memory.store("The hearing is on 12 May.")
        recall = memory.recall("What is the budget for the pool, and which report is missing?")
        assert recall is not None
        assert lines(recall.block) == ["The hearing is on 12 May.", f'{HEARING} (out of date: "3 May")']


def test_of_two_that_contradict_each_other_the_older_says_that_it_is_earlier(desk: Desk) -> None:
    old = desk.put("The heron server sleeps in winter.")
    desk.clock.advance(DAY)
    new = desk.put("The heron server never sleeps in winter.")
    with desk.store.write(Author(Channel.USER)) as tx:
        link(tx, new.id, old.id, "CONTRADICTS")
    recall, _ = desk.ask("Does the heron server sleep in winter?")
    assert recall is not None
    assert [item.id for item in recall.items] == [new.id, old.id]
    assert lines(recall.block)[1].endswith(f"{old.text} (earlier, {day(old.effective_date)})")


def test_a_weaker_word_overtakes_nothing(desk: Desk) -> None:
    old = desk.put("The heron server sleeps in winter.")
    note = desk.put("The heron server never sleeps in winter.", Channel.TOOL_UNASKED)
    with desk.store.write(Author(Channel.USER)) as tx:
        link(tx, note.id, old.id, "CONTRADICTS")
    recall, _ = desk.ask("Does the heron server sleep in winter?")
    assert recall is not None
    assert "(earlier" not in recall.block


def test_a_block_goes_from_the_newest_to_the_oldest(desk: Desk) -> None:
    texts = [f"The heron server has {count} fans." for count in ("no", "many", "broken")]
    for text in texts:
        desk.put(text)
    assert desk.texts("Which fans has the heron server?") == texts[::-1]


names = st.sampled_from("abcdef")


@given(st.lists(names, unique=True), st.lists(st.tuples(names, names, st.floats(0, 9)), max_size=8))
def test_nothing_is_dropped_and_nothing_stands_twice(ids: list[str], pairs: list[tuple[str, str, float]]) -> None:
    found = [Overtaken(older, Fact("x", id=newer, source_date=at), part=True) for older, newer, at in pairs]
    order = in_order(ids, found)
    assert len(order) == len(set(order))
    assert set(ids) <= set(order)
