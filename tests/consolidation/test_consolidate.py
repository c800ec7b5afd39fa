"""Facts that say the same become one; what differs in a detail stays apart; nothing is lost meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.clock import ManualClock
from perdure.consolidation.consolidate import Consolidated, consolidate
from perdure.embed.deterministic import HashEmbedder
from perdure.hooks.types import Channel
from perdure.store import links
from perdure.store.fact import Fact
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, ids
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector
from perdure.store.undo import undo

AUTHOR = Author(Channel.LIBRARY)
OWNER = Audience.of()
START = 1_800_000_000.0


class House:
    """A store of which each fact has the vector that it is given: near or far."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(START)
        self.store = Store(folder, clock=self.clock)
        self.embedder = HashEmbedder(8)
        identity = self.embedder.identity
        self.store.adopt_space(VectorSpace(identity.id, identity.dims, {"model": "hash"}))

    @property
    def view(self) -> View:
        return View(OWNER, self.clock.now())

    def put(self, text: str, near: str = "same", **values: Any) -> Fact:
        blob = self.embedder.embed([near])[0].astype("<f4").tobytes()
        scope = Scope.parse(values.pop("scope", "user:owner"))
        fact = Fact(text, scope=scope.kind, scope_target=scope.target, **{"channel": Channel.USER, **values})
        with self.store.write(AUTHOR) as tx:
            return tx.add(fact, StoredVector(self.embedder.identity.id, blob))

    def run(self, pause: Callable[[], None] = lambda: None, *, dry_run: bool = False) -> Consolidated:
        return consolidate(self.store, self.view, AUTHOR, pause=pause, dry_run=dry_run)

    def live(self) -> dict[str, Fact]:
        with self.store.database.read() as connection:
            seen = ids(connection, self.view)
        with self.store.write(AUTHOR) as tx:
            facts = [tx.fact(fact_id) for fact_id in seen]
        return {fact.text: fact for fact in facts}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path / "home")
    yield house
    house.store.close()


def test_two_wordings_become_one_fact_that_has_what_both_had(house: House) -> None:
    first = house.put("I love hiking.", tags=("sport",), source_date=START - 500, access_count=2, importance=0.9)
    second = house.put("I really enjoy hiking.", tags=("hills",), source_date=START - 100, access_count=3)
    done = house.run()
    (merged,) = house.live().values()
    assert merged.text == "I really enjoy hiking."
    assert (set(merged.tags), merged.source_date, merged.access_count) == ({"sport", "hills"}, START - 500, 5)
    assert merged.importance == 0.9
    assert [merge.id for merge in done.merges] == [merged.id]
    with house.store.database.read() as connection:
        found = links.links_of(connection, [merged.id])
        assert {(link.source, link.target, link.type) for link in found} == {
            (merged.id, first.id, "DERIVED_FROM"), (merged.id, second.id, "DERIVED_FROM"),
        }  # fmt: skip
        assert run(connection, "SELECT count(*) FROM vectors WHERE fact_id = ?", (merged.id,)) == [(1,)]


def test_one_undo_brings_all_of_a_run_back(house: House) -> None:
    for thing in ("hiking", "sailing", "cooking"):
        house.put(f"I love {thing}.", near=thing)
        house.put(f"I really love {thing}.", near=thing)
    before = set(house.live())
    done = house.run()
    assert len(house.live()) == 3
    with house.store.write(AUTHOR) as tx:
        undone = undo(tx, done.batch, OWNER)
    assert undone.conflicts == ()
    assert set(house.live()) == before


def test_before_the_merge_it_is_as_it_was(house: House) -> None:
    house.put("I love hiking.")
    house.put("I really love hiking.")
    house.clock.advance(1_000)
    house.run()
    then = View(OWNER, house.clock.now(), as_of=START + 500)
    with house.store.database.read() as connection:
        assert len(ids(connection, then)) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"text": "The code of the gate is 10."}, {"text": "The code of the gate is 11."}),
        ({"text": "I met Ann in town."}, {"text": "I met Bob in town."}),
        ({"text": "I like tea."}, {"text": "I don't like tea."}),
        ({"text": "likes tea", "entity": "Ann", "key": "a"}, {"text": "Likes tea!", "entity": "Bob", "key": "a"}),
        ({"text": "I like tea."}, {"text": "I like tea!", "scope": "global"}),
        ({"text": "I like tea."}, {"text": "I like tea!", "channel": Channel.FILE}),
        ({"text": "I like tea."}, {"text": "I like tea!", "review_state": "pending"}),
        ({"text": "The dentist is tomorrow."}, {"text": "The dentist is tomorrow!", "source_date": START - 9e6}),
    ],
)  # fmt: skip
def test_what_differs_stays_apart(house: House, one: dict[str, Any], other: dict[str, Any]) -> None:
    house.put(**one)
    house.put(**other)
    assert house.run().merges == ()
    assert len(house.live()) == 2


def test_what_is_far_by_its_vector_stays_apart(house: House) -> None:
    house.put("I love hiking.", near="one")
    house.put("I really love hiking.", near="quite another")
    assert house.run().merges == ()


def test_a_dry_run_tells_and_changes_nothing(house: House) -> None:
    house.put("I love hiking.")
    house.put("I really love hiking.")
    done = house.run(dry_run=True)
    assert [merge.texts for merge in done.merges] == [("I love hiking.", "I really love hiking.")]
    assert (done.batch, len(house.live())) == ("", 2)


def test_a_second_run_finds_nothing(house: House) -> None:
    house.put("I love hiking.")
    house.put("I really love hiking.")
    house.run()
    assert house.run().merges == ()


def test_a_hundred_stores_while_it_looks_are_all_kept(house: House) -> None:
    one = house.put("I love hiking.", access_count=1)
    house.put("I really love hiking.")
    gone = house.put("I love sailing.", near="sail")
    house.put("I really love sailing.", near="sail")
    looks, free = threading.Event(), threading.Event()

    def pause() -> None:
        looks.set()
        assert free.wait(30)

    results: list[Consolidated] = []
    work = threading.Thread(target=lambda: results.append(house.run(pause)))
    work.start()
    assert looks.wait(30)
    for number in range(100):
        house.put(f"Room {number} is free.", near=f"room {number}")
    with house.store.write(AUTHOR) as tx:
        tx.change(one.id, "use", {"access_count": 41})
        tx.change(gone.id, "forget", {"forgotten_at": tx.now})
    free.set()
    work.join(60)
    live = house.live()
    assert {f"Room {number} is free." for number in range(100)} <= set(live)
    assert live["I really love hiking."].access_count == 41
    assert "I really love sailing." in live
    assert (len(results[0].merges), results[0].skipped) == (1, 1)
    assert len(live) == 102
