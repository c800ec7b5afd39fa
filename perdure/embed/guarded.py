"""What an embedder returns is checked here, and whatever it raises becomes a ModelError."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.embed.base import Embedder, EmbedderIdentity, Vectors
from perdure.errors import ModelError
from perdure.recent import Recent

QUERIES = 4
"""Queries whose vectors are at hand: a turn is foreseen, asked, and often asked again by a tool."""


class GuardedEmbedder:
    """Wraps any embedder: other people's code may raise anything and return anything."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._queries: Recent[tuple[str, ...], Vectors] = Recent(QUERIES)

    @property
    def identity(self) -> EmbedderIdentity:
        """Which vector space the embedder writes to."""
        return self._inner.identity

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts; see `Embedder.embed`."""
        if not query:
            return self._embedded(texts, query)
        asked = tuple(texts)
        known = self._queries.get(asked)
        return self._queries.first(asked, self._embedded(texts, query)) if known is None else known

    def _embedded(self, texts: Sequence[str], query: bool) -> Vectors:
        import numpy as np

        try:
            vectors: Vectors = np.asarray(self._inner.embed(texts, query=query), dtype=np.float32)
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"embedder {self.identity.model} raised {type(error).__name__}") from error
        expected = (len(texts), self.identity.dims)
        if vectors.shape != expected:
            raise ModelError(f"embedder {self.identity.model} returned shape {vectors.shape}, not {expected}")
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(vectors).all() and (norms > 0).all()):
            raise ModelError(f"embedder {self.identity.model} returned a vector without a direction")
        vectors = vectors / norms
        return vectors

    def count_tokens(self, text: str) -> int:
        """Return how many tokens the text has."""
        try:
            return self._inner.count_tokens(text)
        except Exception as error:
            raise ModelError(f"tokenizer of {self.identity.model} raised {type(error).__name__}") from error

    def interrupt(self) -> None:
        """Make running calls end soon."""
        self._inner.interrupt()
