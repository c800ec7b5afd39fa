"""What every embedder does to texts before its model sees them, and to vectors afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from perdure.errors import ModelError

if TYPE_CHECKING:
    from perdure.embed.base import Vectors

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
