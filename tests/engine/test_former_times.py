"""What was true at a former time is found whatever has been said since, by whichever index a store has."""

from __future__ import annotations

from typing import Literal

import pytest

from perdure.clock import ManualClock
from perdure.embed.deterministic import HashEmbedder
from perdure.engine.composing import vector_index
from perdure.engine.settings import Settings
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store
from perdure.store.transaction import StoredVector
from tests.kit import AUTHOR

EMBEDDER = HashEmbedder(64)
SPACE = VectorSpace(EMBEDDER.identity.id, 64, {"model": "hash"})


def put(store: Store, *texts: str) -> list[str]:
    vectors = StoredVector.rows(EMBEDDER.embed(list(texts)), SPACE.id)
    with store.write(AUTHOR) as tx:
        return [tx.add(Fact(text), vector).id for text, vector in zip(texts, vectors, strict=True)]


@pytest.mark.parametrize("mode", ["auto", "exact"])
def test_later_memories_leave_room_for_what_was_true_then(
    store: Store, clock: ManualClock, mode: Literal["auto", "exact"]
) -> None:
    store.adopt_space(SPACE)
    [known] = put(store, "the heron was seen once at the mill pond by somebody")
    clock.advance(60.0)
    then = clock.now()
    clock.advance(60.0)
    put(store, *(f"the heron {number}" for number in range(60)))
    index = vector_index(store, SPACE, Settings(vector_index=mode), lambda: None)
    view = View(Audience.of(), clock.now(), as_of=then)
    queries = EMBEDDER.embed(["the heron"], query=True)
    survey = index.survey(queries, view, 10)
    assert [hit.id for hit in index.search(queries[0], view, 10)] == [known] == list(survey.ids)
    assert survey.texts == 1
    index.close()
