"""An extension with an embedder that counts what it is asked to embed."""

from __future__ import annotations

from perdure.engine.extensions import Register, hookimpl
from tests.faulty import CountingEmbedder

EMBEDDER = CountingEmbedder()
"""The only one: the test has no other hand on what the extension makes."""


@hookimpl
def perdure_register_embedders(register: Register) -> None:
    """Register the embedder as "counting"."""
    register("counting", lambda settings: EMBEDDER)
