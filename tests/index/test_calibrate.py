"""The calibration of a space: measured once for a model, and again for a store that grows."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from perdure.background.scheduler import Stopping
from perdure.embed.base import Embedder
from perdure.embed.deterministic import HashEmbedder
from perdure.embed.load import load_default
from perdure.engine.settings import Settings
from perdure.engine.work import work
from perdure.errors import ModelError
from perdure.hooks.types import Channel
from perdure.index.calibrate import NOTE, calibrate, grown, known, measure, scaled, told
from perdure.ranking.calibration import DEFAULT, MAX_LIFT, Calibration, Scale
from perdure.store import schedule, spaces
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector
from perdure.text.questions import FOREIGN_QUESTIONS
from tests.faulty import ShiftedEmbedder

if TYPE_CHECKING:
    from perdure.embed.base import Vectors

MANY = 220
NAME_ENDS = [f"{vowel}{end}" for vowel in "aeiou" for end in ("n", "ld", "ss", "rt", "mi", "ka", "to", "ve")]


class Counting(ShiftedEmbedder):
    """Counts the texts that it is asked for."""

    texts = 0

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        self.texts += len(texts)
        return super().embed(texts, query=query)


class Failing(HashEmbedder):
    """Never answers."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        raise ModelError("the server does not answer")


def no_pause() -> None:
    """Nobody waits."""


def space_of(store: Store, embedder: Embedder) -> VectorSpace:
    """Bind a store to an embedder and return its space."""
    store.adopt_space(VectorSpace(embedder.identity.id, embedder.identity.dims, asdict(embedder.identity)))
    space = store.space()
    assert space is not None
    return space


def put(store: Store, embedder: Embedder, texts: Sequence[str]) -> None:
    """Store facts of the user."""
    identity = embedder.identity.id
    with store.write(Author(Channel.USER)) as tx:
        for text, vector in zip(texts, StoredVector.rows(embedder.embed(texts), identity), strict=True):
            tx.add(Fact(text, channel=Channel.USER, scope="user", scope_target="owner"), vector)


def numbered(count: int, start: int = 0) -> list[str]:
    """Return texts that have nothing to do with any question."""
    return [f"Zylqat{number} brovnik{number * 7}" for number in range(start, start + count)]


def everything(store: Store) -> View:
    """Return what the user may see."""
    return View(Audience.of(), store.clock.now())


def lift_of(store: Store) -> float:
    """Return what is noted."""
    space = store.space()
    assert space is not None
    found = known(space)
    assert found is not None
    return found.lift


def test_a_model_is_measured_once_for_a_store(store: Store) -> None:
    embedder = Counting(HashEmbedder())
    space = space_of(store, embedder)
    assert known(space) is None
    first = measure(store, space, embedder, no_pause)
    asked = embedder.texts
    assert asked == 120
    assert first.scale.stretch > 1.0
    assert measure(store, space, embedder, no_pause) == first
    assert embedder.texts == asked
    again = store.space()
    assert again is not None
    assert known(again) == first


def test_the_note_outlives_the_next_start(store: Store) -> None:
    embedder = HashEmbedder()
    found = measure(store, space_of(store, embedder), embedder, no_pause)
    assert known(space_of(store, embedder)) == found


def test_what_was_measured_on_other_pairs_does_not_count(store: Store) -> None:
    embedder = Counting(HashEmbedder())
    space = space_of(store, embedder)
    found = measure(store, space, embedder, no_pause)
    with store.database.write() as connection:
        spaces.note(connection, space.id, NOTE, {"yardstick": "of an older version"})
    assert measure(store, space, embedder, no_pause) == found
    assert embedder.texts == 240


def test_a_lift_that_was_found_by_other_pairs_is_found_anew(store: Store) -> None:
    embedder = HashEmbedder()
    space = space_of(store, embedder)
    put(store, embedder, numbered(MANY))
    calibrate(store, lambda each: embedder, no_pause)
    assert not grown(store)
    with store.database.write() as connection:
        spaces.note(connection, space.id, NOTE, {"yardstick": "of an older version"})
    measure(store, space, embedder, no_pause)
    assert grown(store)


def test_the_default_model_needs_no_measuring(store: Store) -> None:
    embedder = load_default()
    space = space_of(store, embedder)
    assert known(space) == measure(store, space, embedder, no_pause) == Calibration(Scale.of(DEFAULT))
    assert NOTE not in space_of(store, embedder).description


def test_of_a_model_that_was_not_measured_nothing_is_near(store: Store) -> None:
    embedder = ShiftedEmbedder(HashEmbedder(), 0.9)
    space = space_of(store, embedder)
    put(store, embedder, ["My harbour crane is yellow."])
    [hit] = scaled(store, space).search(embedder.embed(["The weather was mild."])[0], everything(store), 1)
    assert hit.cosine == 0.0


def test_a_small_store_is_not_measured_but_its_model_is(store: Store) -> None:
    embedder = HashEmbedder()
    space_of(store, embedder)
    put(store, embedder, [*FOREIGN_QUESTIONS, *numbered(20)])
    assert not grown(store)
    assert "68 memories" in calibrate(store, lambda space: embedder, no_pause)
    assert lift_of(store) == 0.0


def test_a_store_that_chance_comes_near_to_asks_for_more_within_a_limit(store: Store) -> None:
    embedder = HashEmbedder(256)
    space_of(store, embedder)
    put(store, embedder, [*FOREIGN_QUESTIONS, *numbered(MANY)])
    assert grown(store)
    line = calibrate(store, lambda space: embedder, no_pause)
    assert lift_of(store) == MAX_LIFT
    assert "as chance hits come close" in line


def test_an_ordinary_store_asks_for_nothing_more(store: Store) -> None:
    embedder = load_default()
    space_of(store, embedder)
    names = (f"{first}{second}" for first in ("Bren", "Dor", "Fal", "Gim", "Hul") for second in NAME_ENDS)
    put(store, embedder, [f"{name} sits at desk {number} in the office." for number, name in enumerate(names)])
    assert grown(store)
    calibrate(store, lambda space: embedder, no_pause)
    assert lift_of(store) == 0.0


def test_it_is_made_anew_when_a_twentieth_has_come(store: Store) -> None:
    embedder = HashEmbedder()
    space_of(store, embedder)
    put(store, embedder, numbered(MANY))
    assert grown(store)
    calibrate(store, lambda space: embedder, no_pause)
    assert not grown(store)
    put(store, embedder, numbered(10, MANY))
    assert not grown(store)
    put(store, embedder, numbered(1, MANY + 10))
    assert grown(store)


def test_without_a_model_nothing_is_measured(store: Store) -> None:
    assert not grown(store)
    assert calibrate(store, lambda space: None, no_pause) == "there is no model"
    space_of(store, HashEmbedder())
    assert calibrate(store, lambda space: None, no_pause) == "there is no model"


def test_a_model_that_does_not_answer_leaves_no_note(store: Store) -> None:
    embedder = Failing()
    space = space_of(store, embedder)
    with pytest.raises(ModelError):
        calibrate(store, lambda each: embedder, no_pause)
    assert known(space) is None


def test_it_gives_up_when_the_host_ends(store: Store) -> None:
    embedder = HashEmbedder()
    space_of(store, embedder)

    def ending() -> None:
        raise Stopping("the host is exiting")

    with pytest.raises(Stopping):
        calibrate(store, lambda space: embedder, ending)


def test_an_index_answers_on_the_common_scale(store: Store) -> None:
    embedder = ShiftedEmbedder(HashEmbedder(), 0.7)
    space = space_of(store, embedder)
    measure(store, space, embedder, no_pause)
    put(store, embedder, ["My harbour crane is yellow.", *numbered(3)])
    space = space_of(store, embedder)
    query = embedder.embed(["My harbour crane is yellow."])[0]
    hits = scaled(store, space).search(query, everything(store), 4)
    assert hits[0].cosine == pytest.approx(1.0, abs=1e-3)
    assert max(hit.cosine for hit in hits[1:]) < 0.5


def test_the_worker_calibrates_a_store_that_has_grown_and_says_so(store: Store) -> None:
    settings = Settings.load({"embedder": "hash"}, environ={})
    embedder = HashEmbedder()
    space_of(store, embedder)
    put(store, embedder, numbered(MANY))
    work(store.folder, settings, threading.Event(), idle_seconds=0.0)
    assert not grown(store)
    with store.database.read() as connection:
        state = schedule.states(connection)["calibrate"]
    assert state.result is not None
    assert f"{MANY} memories" in state.result


def test_it_is_told_in_the_cosines_of_the_model() -> None:
    assert told(Calibration()) == "cosine of a clear hit: 0.54; of unrelated texts: 0.10"
    shifted = Calibration(Scale(stretch=1 / 0.3, offset=-0.7 / 0.3), lift=0.1)
    assert told(shifted) == (
        "cosine of a clear hit: 0.86 (plus 0.03, as chance hits come close); of unrelated texts: 0.73"
    )
