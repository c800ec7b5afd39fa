"""The shadow score of a switch: what it counts, what it keeps, and that it holds up nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from perdure.clock import ManualClock
from perdure.embed.base import Embedder, GuardedEmbedder
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import ModelError
from perdure.hooks.types import Channel
from perdure.index import shadow
from perdure.index.reembed import Reembedder
from perdure.store import lifecycle, spaces
from perdure.store.fact import Fact
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from perdure.embed.base import Vectors

AUTHOR = Author(Channel.LIBRARY)
SMALL, LARGE = HashEmbedder(4), HashEmbedder(256)
BIRDS = ("heron", "plover", "kestrel", "bittern", "avocet", "dunlin")
PLACES = ("Ghent", "Lisbon", "Trondheim", "Bergen", "Turin", "Graz", "Lyon", "Bilbao", "Cork", "Dresden")
TEXTS = [f"The {bird} was seen near {place} by boat" for bird in BIRDS for place in PLACES]


class Flat(HashEmbedder):
    """Has the same vector for every text."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        rows = np.zeros((len(texts), self.identity.dims), dtype=np.float32)
        rows[:, 0] = 1.0
        return rows


class Silent(HashEmbedder):
    """Embeds memories, and fails on questions."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        if query:
            raise ModelError(f"cannot read {texts[0]}")
        return super().embed(texts)


class Hanging(HashEmbedder):
    """Embeds memories, and gives no answer to a question until it is broken off."""

    def __init__(self, dims: int) -> None:
        super().__init__(dims)
        self.interrupted = threading.Event()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        if query:
            assert self.interrupted.wait(PATIENCE)
            raise ModelError("interrupted")
        return super().embed(texts)

    def interrupt(self) -> None:
        self.interrupted.set()


def space_of(embedder: Embedder) -> VectorSpace:
    return VectorSpace(embedder.identity.id, embedder.identity.dims, asdict(embedder.identity))


def add(store: Store, texts: Sequence[str], embedder: Embedder = SMALL, **values: Any) -> list[str]:
    store.adopt_space(space_of(embedder))
    rows = GuardedEmbedder(embedder).embed(texts)
    with store.write(AUTHOR) as tx:
        return [
            tx.add(
                Fact(text, channel=Channel.LIBRARY, **values),
                StoredVector(embedder.identity.id, row.astype("<f4").tobytes()),
            ).id
            for text, row in zip(texts, rows, strict=True)
        ]


def switched(store: Store, new: Embedder = LARGE, former: Embedder | None = SMALL) -> dict[str, Any]:
    """Switch a store, and return what was noted."""
    by_id = {each.identity.id: GuardedEmbedder(each) for each in (new, former) if each}
    with store.database.write() as connection:
        assert spaces.begin(connection, space_of(new), store.clock.now())
    reembedder = Reembedder(store, lambda space: by_id.get(space.id))
    while reembedder.step():
        pass
    space = store.space()
    assert space is not None
    assert space.id == new.identity.id, "the switch is done, whatever the score"
    note: dict[str, Any] = space.description[shadow.NOTE]
    return note


@pytest.fixture(autouse=True)
def _no_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, the score is told."""
    monkeypatch.setattr(shadow, "PATIENCE_SECONDS", PATIENCE)


def test_the_better_model_brings_more_memories_first(store: Store) -> None:
    add(store, TEXTS)
    note = switched(store)
    assert note["against"] == SMALL.identity.id
    assert note["asked"] == shadow.MOST_QUESTIONS
    assert note["former"] < note["new"] <= 100
    assert shadow.told(note) == (
        f"of 100 questions made from your memories, the previous model ranked the right memory first for"
        f" {note['former']}, the new one for {note['new']}"
    )


def test_a_worse_model_is_told_so(store: Store) -> None:
    add(store, TEXTS, LARGE)
    note = switched(store, Flat(8), LARGE)
    assert note["new"] == 0
    assert note["former"] > 50


def test_the_note_holds_numbers_only(store: Store) -> None:
    add(store, TEXTS)
    note = switched(store)
    assert {name: type(value) for name, value in note.items()} == {
        "against": str, "asked": int, "former": int, "new": int
    }  # fmt: skip
    said = json.dumps(note).casefold()
    assert not [name for name in (*BIRDS, *PLACES) if name.casefold() in said]


def test_the_way_in_which_vectors_are_read_changes_no_figure(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add(store, TEXTS)
    first = switched(store)
    with store.database.write() as connection:
        spaces.rollback(connection, store.clock.now())
    monkeypatch.setattr(shadow, "CHUNK", 7)
    assert switched(store) == first


def test_memories_of_another_scope_are_no_rivals(store: Store) -> None:
    for user in ("alice", "bob"):
        add(store, BIRDS, LARGE, scope="user", scope_target=user)
    note = switched(store, HashEmbedder(128), LARGE)
    assert (note["asked"], note["former"], note["new"]) == (12, 12, 12)


def test_of_two_memories_that_say_the_same_neither_is_first(store: Store) -> None:
    add(store, ["heron", "heron"], LARGE)
    note = switched(store, HashEmbedder(128), LARGE)
    assert (note["asked"], note["former"], note["new"]) == (2, 0, 0)


def test_what_is_over_is_neither_asked_about_nor_a_rival(store: Store, clock: ManualClock) -> None:
    [live] = add(store, ["heron"], LARGE)
    [forgotten, former] = add(store, ["heron", "heron"], LARGE)
    add(store, ["heron"], LARGE, expires_at=clock.now() + 10)
    clock.advance(20)
    with store.write(AUTHOR) as tx:
        lifecycle.forget(tx, forgotten)
        tx.supersede(former, live)
    note = switched(store, HashEmbedder(128), LARGE)
    assert (note["asked"], note["former"], note["new"]) == (1, 1, 1)


def test_a_memory_without_a_vector_of_the_former_model_is_not_asked_about(store: Store) -> None:
    add(store, ["heron"])
    with store.write(AUTHOR) as tx:
        tx.add(Fact("kestrel", channel=Channel.LIBRARY), None)
    assert switched(store)["asked"] == 1


def test_a_former_model_that_cannot_be_loaded_is_not_compared(store: Store) -> None:
    add(store, TEXTS)
    note = switched(store, former=None)
    assert note == {"against": SMALL.identity.id, "left_out": "the previous model cannot be loaded"}
    assert shadow.told(note) == (
        "the previous model and the new one were not compared: the previous model cannot be loaded"
    )


@pytest.mark.parametrize(("former", "new"), [(Silent(4), LARGE), (SMALL, Silent(256))])
def test_a_model_that_fails_on_questions_is_not_compared(former: Embedder, new: Embedder, store: Store) -> None:
    add(store, TEXTS)
    note = switched(store, new, former)
    assert note == {"against": SMALL.identity.id, "left_out": "a model failed on the questions"}


def test_a_model_that_gives_no_answer_is_broken_off(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "PATIENCE_SECONDS", 0.01)
    add(store, TEXTS)
    note = switched(store, former=Hanging(4))
    assert note == {"against": SMALL.identity.id, "left_out": "it would have taken longer than 5 seconds"}


def test_a_store_without_memories_has_nothing_to_compare(store: Store) -> None:
    add(store, [])
    assert switched(store)["left_out"] == "there are no memories to ask about"
