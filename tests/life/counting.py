"""An extension with an embedder that counts what it is asked to embed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.embed.deterministic import HashEmbedder
from perdure.engine.extensions import Register, hookimpl

if TYPE_CHECKING:
    from perdure.embed.base import Vectors


class CountingEmbedder(HashEmbedder):
    """The deterministic embedder, with a list of all texts that it was given."""

    texts: list[str] = []  # noqa: RUF012 - shared on purpose: the test has no hand on the instance

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts and note them."""
        CountingEmbedder.texts += texts
        return super().embed(texts, query=query)


@hookimpl
def perdure_register_embedders(register: Register) -> None:
    """Register the embedder as "counting"."""
    register("counting", lambda settings: CountingEmbedder())
