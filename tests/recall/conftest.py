"""A store with memories in it, and somebody who asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perdure.clock import ManualClock
from perdure.embed.base import Embedder, GuardedEmbedder
from perdure.embed.deterministic import HashEmbedder
from perdure.embed.load import load_default
from perdure.engine.model import Model
from perdure.hooks.types import Channel, Recall, RecallItem
from perdure.index.vector_index import ExactIndex, Surveyor
from perdure.recall.lane import Breaker
from perdure.recall.options import RecallOptions
from perdure.recall.pipeline import Recaller
from perdure.recall.receipt import Receipt
from perdure.recall.retrievers import PassageSource
from perdure.recall.turn import Candidate, Passage, VectorLeg
from perdure.store import triggers
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector


class Desk:
    """One store, one way to recall from it."""

    def __init__(self, folder: Path, embedder: Embedder | None) -> None:
        self.clock = ManualClock()
        self.store = Store(folder, clock=self.clock)
        self.options = RecallOptions()
        self._embedder = embedder
        self._model = Model(self.store, (lambda: embedder) if embedder else None, self._index, None, lambda: None)
        self._model.start()
        self._model.wait(30.0)
        self.leg = self._model.leg()
        self._recallers: list[Recaller] = []

    def put(self, text: str, channel: Channel = Channel.USER, **fields: Any) -> Fact:
        """Store a fact of the user, a minute after the one before."""
        self.clock.advance(60.0)
        fact = replace(Fact(text, channel=channel, scope="user", scope_target="owner"), **fields)
        vector = None
        if self._embedder is not None:
            vector = StoredVector.rows(self._embedder.embed([text]), self._embedder.identity.id)[0]
        with self.store.write(Author(channel)) as tx:
            return tx.add(fact, vector)

    def aim(self, fact: Fact, *texts: str, origin: str = triggers.USER) -> None:
        """Give a fact triggers, with their vectors."""
        assert self._embedder is not None
        space = self._embedder.identity.id
        with self.store.write(Author(Channel.USER)) as tx:
            tx.put_triggers(fact.id, texts, origin)
            for each in triggers.of(tx.connection, [fact.id]).get(fact.id, ()):
                [vector] = StoredVector.rows(self._embedder.embed([each.text]), space)
                triggers.keep_vector(tx.connection, each.id, space, vector.blob)

    def recaller(self, source: PassageSource | None = None, **options: Any) -> Recaller:
        """Return a recaller whose options differ from the defaults by these."""
        chosen = replace(self.options, **options)
        recaller = Recaller(self.store, chosen, lambda: self.leg, self.clock, source=source)
        self._recallers.append(recaller)
        return recaller

    def ask(self, prompt: str, session: str | None = "s", **options: Any) -> tuple[Recall | None, Receipt]:
        return self.recaller(**options).recall(prompt, Audience.of(), session=session)

    def texts(self, prompt: str, **options: Any) -> list[str]:
        """Return what is recalled, best first."""
        recall, _ = self.ask(prompt, **options)
        return [item.text for item in recall.items] if recall else []

    def broken(self, embedder: Embedder) -> VectorLeg:
        """Return the vector leg with another embedder in it."""
        assert self.leg is not None
        return replace(self.leg, embedder=GuardedEmbedder(embedder), breaker=Breaker())

    def close(self) -> None:
        for recaller in self._recallers:
            recaller.close()
        self._model.close()
        self.store.close()

    def _index(self, space: VectorSpace) -> Surveyor:
        return ExactIndex(self.store.database, space.id, space.dims)


OpenDesk = Callable[..., Desk]


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[OpenDesk]:
    """Open desks on folders of their own, or on the same."""
    desks: list[Desk] = []

    def open_(embedder: Embedder | None = None, name: str = "home") -> Desk:
        desks.append(Desk(tmp_path / name, embedder))
        return desks[-1]

    yield open_
    for desk in desks:
        desk.close()


@pytest.fixture
def desk(open_desk: OpenDesk) -> Desk:
    """A store with the deterministic embedder."""
    return open_desk(HashEmbedder())


@pytest.fixture
def wordy(open_desk: OpenDesk) -> Desk:
    """A store without a model."""
    return open_desk()


@pytest.fixture(scope="session")
def encoder() -> Embedder:
    """The model that is shipped."""
    return load_default()


def lines(recall: Recall | None) -> list[str]:
    """Return the lines of the memories in a block."""
    assert recall is not None
    return recall.block.split("\n")[2:-1]


def dressed(item: RecallItem, note: str = "", mark: str = "") -> Candidate:
    """Return a memory as it is to stand in the block."""
    passage = Passage(item.id, item.leg, item.text, item.category, item.score)
    return Candidate(passage, item.leg, item.score, text=item.text, category=item.category, note=note, mark=mark)
