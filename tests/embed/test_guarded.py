"""A query is embedded once for all who ask it in a turn; nothing else is kept."""

from __future__ import annotations

import pytest

from perdure.embed.base import QUERIES, GuardedEmbedder
from perdure.errors import ModelError
from tests.faulty import CountingEmbedder


def test_a_query_is_embedded_once() -> None:
    inner = CountingEmbedder()
    embedder = GuardedEmbedder(inner)
    first = embedder.embed(["Where is the heron?"], query=True)
    assert (embedder.embed(["Where is the heron?"], query=True) == first).all()
    assert inner.given == ["Where is the heron?"]


def test_only_the_last_queries_are_kept_and_no_documents() -> None:
    inner = CountingEmbedder()
    embedder = GuardedEmbedder(inner)
    queries = [f"heron {number}" for number in range(QUERIES + 1)]
    for text in (*queries, queries[0]):
        embedder.embed([text], query=True)
    embedder.embed([queries[0]])
    embedder.embed([queries[0]])
    assert inner.given == [*queries, queries[0], queries[0], queries[0]]


def test_a_failure_is_not_kept() -> None:
    inner = CountingEmbedder()
    embedder = GuardedEmbedder(inner)
    for _ in range(2):
        with pytest.raises(ModelError):
            embedder.embed(["broken"], query=True)
    assert inner.given == ["broken", "broken"]
