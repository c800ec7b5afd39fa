"""Deterministic embedders without a model, for tests and for trying perdure out."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from perdure.embed.base import EmbedderIdentity, Vectors, clean_text, unit_rows
from perdure.errors import InputError

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
        """Choose the length of a vector."""
        if dims < 1:
            raise InputError(f"dims is {dims}; give at least 1")
        self.identity = EmbedderIdentity("hash", "1", dims, _MAX_WORDS, pooling="none")

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts; queries and documents alike.

        Returns float32 array of shape (len(texts), dims), each row of length one.
        """
        import numpy as np

        rows = np.zeros((len(texts), self.identity.dims))
        for row, text in zip(rows, texts, strict=True):
            for feature, weight in _features(text):
                digest = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "big")
                row[(digest >> 1) % self.identity.dims] += weight if digest & 1 else -weight
        return unit_rows(rows)

    def count_tokens(self, text: str) -> int:
        """Return how many words the whole text has."""
        return len(_words(text))

    def interrupt(self) -> None:
        """Do nothing: a call is over in microseconds."""


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKD", clean_text(text)).casefold()
    return re.findall(r"\w+", "".join(char for char in folded if not unicodedata.combining(char)))


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in _words(text)[:_MAX_WORDS]:
        yield word, min(len(word), _FULL_WEIGHT_LETTERS) / _FULL_WEIGHT_LETTERS
        bounded = f"^{word}$"
        for start in range(len(bounded) - 2):
            yield f"3:{bounded[start : start + 3]}", _TRIGRAM_WEIGHT
