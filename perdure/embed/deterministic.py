"""Deterministic embedders without a model, for tests and for trying perdure out."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from perdure.embed.base import Embedder, EmbedderIdentity, clean_text, unit_rows
from perdure.errors import InputError

if TYPE_CHECKING:
    from perdure.embed.base import Vectors

_MAX_WORDS: Final = 256
_FULL_WEIGHT_LETTERS: Final = 8
"""Shorter words count less, in proportion: they are mostly "the" and "is"."""
_TRIGRAM_WEIGHT: Final = 0.15
"""Small, so that a shared word counts more than a shared ending."""


class HashEmbedder:
    """Signed feature hashing of words and their character trigrams.

    Texts that share words are near each other; meaning plays no part. The same text has the same vector
    in every process and on every machine. Source of the method: Weinberger et al. 2009, "Feature Hashing
    for Large Scale Multitask Learning", section 2.
    """

    def __init__(self, dims: int = 64) -> None:
        """Choose the length of a vector.

        Raises:
            InputError: `dims` is below 1.
        """
        if dims < 1:
            raise InputError(f"dims is {dims}; give at least 1")
        self._identity = EmbedderIdentity("hash", "1", dims, _MAX_WORDS, pooling="none")

    @property
    def identity(self) -> EmbedderIdentity:
        """Which vector space this embedder writes to."""
        return self._identity

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts; queries and documents alike.

        Returns:
            float32 array of shape (len(texts), dims), each row of length one.
        """
        import numpy as np

        rows = np.zeros((len(texts), self._identity.dims))
        for row, text in zip(rows, texts, strict=True):
            for feature, weight in _features(text):
                digest = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "big")
                row[(digest >> 1) % self._identity.dims] += weight if digest & 1 else -weight
        return unit_rows(rows)

    def count_tokens(self, text: str) -> int:
        """Return how many words the whole text has."""
        return len(_words(text))

    def interrupt(self) -> None:
        """Do nothing: a call is over in microseconds."""


class ShiftedEmbedder:
    """Another embedder whose cosines all lie high, as those of many models do that were trained with a low temperature.

    Every vector gets the same component, so that a cosine c becomes share + (1 - share) c. What is near stays near.
    """

    def __init__(self, inner: Embedder, share: float = 0.7) -> None:
        """Shift `inner`.

        Args:
            inner: any embedder.
            share: the cosine of texts whose cosine was 0, from 0 to below 1.

        Raises:
            InputError: `share` is out of range.
        """
        if not 0.0 <= share < 1.0:
            raise InputError(f"share is {share}; give 0 or more, and less than 1")
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
        """Embed texts; see `Embedder.embed`.

        Returns:
            float32 array of shape (len(texts), dims), each row of length one.

        Raises:
            ModelError: `inner` failed.
        """
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


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKD", clean_text(text)).casefold()
    return re.findall(r"\w+", "".join(char for char in folded if not unicodedata.combining(char)))


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in _words(text)[:_MAX_WORDS]:
        yield word, min(len(word), _FULL_WEIGHT_LETTERS) / _FULL_WEIGHT_LETTERS
        bounded = f"^{word}$"
        for start in range(len(bounded) - 2):
            yield f"3:{bounded[start : start + 3]}", _TRIGRAM_WEIGHT
