"""Embedders that misbehave in one way each, one that counts and one that is shifted, for testing what is above them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from perdure.embed.base import Embedder, EmbedderIdentity
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import ModelError

if TYPE_CHECKING:
    from perdure.embed.base import Vectors

_POLL_SECONDS: Final = 0.005


class FailingEmbedder(HashEmbedder):
    """Raises ModelError at every call of `embed`."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Fail.

        Raises:
            ModelError: always.
        """
        raise ModelError(f"the embedder failed on {len(texts)} texts, as it was made to")


class HangingEmbedder(HashEmbedder):
    """Hangs in `embed` until it is interrupted or released, then raises ModelError.

    Attributes:
        started: set once a call of `embed` hangs.
    """

    def __init__(self, release: threading.Event, dims: int = 64) -> None:
        """Hang until `release` is set."""
        super().__init__(dims)
        self.started = threading.Event()
        self._release = release
        self._interrupts = 0

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Hang, then fail.

        Raises:
            ModelError: always, once interrupted or released.
        """
        before = self._interrupts
        self.started.set()
        while self._interrupts == before:
            if self._release.wait(_POLL_SECONDS):
                raise ModelError("the hanging embedder was released")
        raise ModelError("the hanging embedder was interrupted")

    def interrupt(self) -> None:
        """End every call that hangs now."""
        self._interrupts += 1


class NanEmbedder(HashEmbedder):
    """Returns NaN for every value."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return an array of shape (len(texts), dims) full of NaN."""
        import numpy as np

        return np.full((len(texts), self.identity.dims), np.nan, dtype=np.float32)


class WrongDimsEmbedder(HashEmbedder):
    """Returns vectors one longer than its identity says."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return an array of shape (len(texts), dims + 1)."""
        return HashEmbedder(self.identity.dims + 1).embed(texts, query=query)


class CountingEmbedder(HashEmbedder):
    """Notes what it is given, and fails on the text "broken".

    Attributes:
        given: all texts, in the order in which they came.
    """

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts.

        Raises:
            ModelError: one of them is "broken".
        """
        self.given += texts
        if "broken" in texts:
            raise ModelError("the embedder failed, as it was made to")
        return super().embed(texts, query=query)


class ShiftedEmbedder:
    """Another embedder whose cosines all lie high, as those of many models do that were trained with a low temperature.

    Every vector gets the same component, so that a cosine c becomes share + (1 - share) c. What is near stays near.
    """

    def __init__(self, inner: Embedder, share: float = 0.7) -> None:
        """Shift `inner`, so that a cosine of 0 becomes `share`, 0 to below 1."""
        self._inner = inner
        self._share = share
        own = inner.identity
        self._identity = replace(
            own, model=f"{own.model}, shifted by {share}", digest=f"{own.digest}, shifted", dims=own.dims + 1
        )

    @property
    def identity(self) -> EmbedderIdentity:
        """Which vector space this embedder writes to."""
        return self._identity

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts; see `Embedder.embed`."""
        import numpy as np

        vectors = self._inner.embed(texts, query=query)
        common = np.full((len(vectors), 1), self._share**0.5, dtype=np.float32)
        return np.concatenate([(1.0 - self._share) ** 0.5 * vectors, common], axis=1).astype(np.float32)

    def count_tokens(self, text: str) -> int:
        """Return how many tokens the whole text has."""
        return self._inner.count_tokens(text)

    def interrupt(self) -> None:
        """Make running calls end soon."""
        self._inner.interrupt()
