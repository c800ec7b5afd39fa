"""The interface of embedders, what they share, and a wrapper that enforces it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from perdure.errors import ModelError
from perdure.recent import Recent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float32]"
Vector: TypeAlias = "NDArray[np.float32]"
"""Of shape (dims,)."""
Vectors: TypeAlias = "NDArray[np.float32]"
"""Of shape (rows, dims)."""


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Everything that decides whether two vectors may be compared.

    Attributes:
        model: name of the model, for people.
        digest: sha256 of the weights, or a version string where there are none.
        dims: length of a vector.
        max_tokens: longer texts are truncated here.
        pooling: how token states become one vector ("mean", "cls", "last", "none").
        query_prefix: prepended to a query.
        document_prefix: prepended to a document.
    """

    model: str
    digest: str
    dims: int
    max_tokens: int
    pooling: str = "mean"
    query_prefix: str = ""
    document_prefix: str = ""

    @property
    def id(self) -> str:
        """Short stable name of this identity: 16 hex digits."""
        return hashlib.sha256(repr(astuple(self)).encode()).hexdigest()[:16]


class Embedder(Protocol):
    """Turns texts into unit vectors.

    A text's vector must not depend on the other texts of the same call.
    """

    @property
    def identity(self) -> EmbedderIdentity:
        """The vector space of this embedder."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts.

        Args:
            texts: any number of texts, of any length.
            query: whether they are queries to match against documents.

        Returns:
            float32 array of shape (len(texts), dims), each row of length one (an empty text: any unit row).

        Raises:
            ModelError: the model failed or was interrupted.
        """

    def count_tokens(self, text: str) -> int:
        """Return the number of this model's tokens in the whole text, without special tokens."""

    def interrupt(self) -> None:
        """Make running `embed` calls raise ModelError soon; callable from any thread. May do nothing."""


_CHARS_PER_TOKEN: Final = 64
"""Far above what any language needs: a text cut here has lost nothing that the model would have read."""


def clean_text(text: str) -> str:
    """Return `text` with lone surrogates replaced by "?": no tokenizer accepts them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def model_input(text: str, max_tokens: int) -> str:
    """Return what a model of `max_tokens` tokens can read of `text`.

    A text of megabytes would otherwise be tokenised whole, without a way to interrupt it, only for
    its first `max_tokens` tokens.
    """
    return clean_text(text[: max_tokens * _CHARS_PER_TOKEN])


def unit_rows(rows: Any) -> Vectors:
    """Scale each row to length one; a row of zeros becomes the first unit vector.

    Args:
        rows: array of shape (texts, dims) of any float type.

    Returns:
        float32 array of the same shape.

    Raises:
        ModelError: a value is NaN or infinite.
    """
    import numpy as np

    vectors: Vectors = np.array(rows, dtype=np.float32)
    if not np.isfinite(vectors).all():
        raise ModelError("the embedding model returned NaN or infinity; check its files or use another model")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[norms[:, 0] == 0, 0] = 1.0
    vectors /= np.where(norms == 0, np.float32(1), norms)
    return vectors


QUERIES = 4
"""Queries whose vectors are at hand: a turn is foreseen, asked, and often asked again by a tool."""
COUNTED = 256
"""Texts whose tokens have been counted: the frame of a session's blocks, and the memories that keep coming up."""


class GuardedEmbedder:
    """Wraps any embedder and checks its results: third-party code may raise or return anything."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._queries: Recent[tuple[str, ...], Vectors] = Recent(QUERIES)
        self._counted: Recent[str, int] = Recent(COUNTED)

    @property
    def identity(self) -> EmbedderIdentity:
        """The vector space of the embedder."""
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
            raise ModelError(f"embedder {self.identity.model} returned a zero vector")
        vectors = vectors / norms
        return vectors

    def count_tokens(self, text: str) -> int:
        """Return how many tokens the text has."""
        if (known := self._counted.get(text)) is not None:
            return known
        try:
            return self._counted.first(text, self._inner.count_tokens(text))
        except Exception as error:
            raise ModelError(f"tokenizer of {self.identity.model} raised {type(error).__name__}") from error

    def interrupt(self) -> None:
        """Make running calls end soon."""
        self._inner.interrupt()
