"""A store, and somebody who talks to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perdure.capture.pipeline import Capturer
from perdure.capture.statements import CaptureRule
from perdure.capture.writing import Writer, WritingOptions, Written
from perdure.clock import ManualClock
from perdure.embed.base import Embedder
from perdure.hooks.types import Channel
from perdure.index.vector_index import VectorHit, VectorIndex
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View, by_prefix, lexical, lookup
from perdure.store.store import Store
from perdure.store.transaction import Author

if TYPE_CHECKING:
    from perdure.embed.base import Vector

DAY = 86_400.0


class NoIndex:
    """An index that finds nothing: what is compared here goes by words."""

    def search(self, query: Vector, view: View, limit: int) -> list[VectorHit]:
        """Return nothing."""
        return []

    def close(self) -> None:
        """Do nothing."""


class Notebook:
    """Captures what one user says, and reads it back."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.store = Store(folder, clock=self.clock)
        self.embedder: Embedder | None = None
        self.rules: tuple[CaptureRule, ...] = ()
        self._capturer = Capturer(self.store, Writer(self._leg, WritingOptions()), lambda: self.rules)
        self._numbers = itertools.count(1)

    def _leg(self) -> tuple[Embedder, VectorIndex] | None:
        return (self.embedder, NoIndex()) if self.embedder else None

    def say(self, *texts: str, scope: str = "user:owner", entry: str | None = None) -> list[Written]:
        """Let a turn with these messages be captured, a day after the one before."""
        self.clock.advance(DAY)
        now = self.clock.now()
        return self._capturer.process({
            "id": entry or f"file:{next(self._numbers)}",
            "at": now,
            "session": "s",
            "cursor": "user:owner\0s",
            "tail": "",
            "scope": scope,
            "host": "fake",
            "turn": "t",
            "messages": [{"text": text, "at": now} for text in texts],
        })  # fmt: skip

    def view(self, *, include_superseded: bool = False) -> View:
        return View(Audience.of(), self.clock.now(), include_superseded=include_superseded)

    def slot(self, entity: str, key: str, *, include_superseded: bool = False) -> list[str | None]:
        """Return the values of a slot, newest first."""
        view = self.view(include_superseded=include_superseded)
        with self.store.database.read() as connection:
            return [fact.value for fact in lookup(connection, entity, key, view)]

    def find(self, words: str, *, include_superseded: bool = False) -> list[str]:
        """Return the texts of the facts that share words with these."""
        view = self.view(include_superseded=include_superseded)
        with self.store.database.read() as connection:
            return [hit.fact.text for hit in lexical(connection, words, view, 50).hits]

    def get(self, fact_id: str) -> Fact:
        with self.store.database.read() as connection:
            return by_prefix(connection, fact_id, self.view(include_superseded=True))

    def put(self, fact: Fact) -> Fact:
        """Store a fact as it is."""
        self.clock.advance(DAY)
        with self.store.write(Author(Channel.UNKNOWN)) as tx:
            return tx.add(fact)


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    notebook = Notebook(tmp_path / "home")
    yield notebook
    notebook.store.close()
