"""A whole extension of perdure: an embedder, a reranker, a capture rule and a host."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.embed.base import EmbedderIdentity
from perdure.engine.extensions import Register, hookimpl
from perdure.hooks.fake_host import FakeHost
from perdure.hooks.host import HookRunner

if TYPE_CHECKING:
    from perdure.embed.base import Vectors


class LetterEmbedder:
    """Counts letters: no model, and still a vector space."""

    identity = EmbedderIdentity("sample-letters", "1", dims=26, max_tokens=10_000, pooling="none")

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        import numpy as np

        counts = [[1e-6 + text.lower().count(chr(97 + i)) for i in range(26)] for text in texts]
        vectors = np.array(counts, dtype=np.float32).reshape(len(texts), 26)
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def interrupt(self) -> None:
        return None


def shortest_first(query: str, texts: Sequence[str]) -> list[float]:
    """Rate texts by their length."""
    return [-float(len(text)) for text in texts]


def shouted(text: str) -> str | None:
    """Name what is written in capitals."""
    return hashlib.sha256(text.encode()).hexdigest()[:8] if text.isupper() else None


def sample_host() -> FakeHost:
    """Make a host with its own session name."""
    return FakeHost(HookRunner(), session_id="sample")


@hookimpl
def perdure_register_embedders(register: Register) -> None:
    register("sample-letters", lambda settings: LetterEmbedder())


@hookimpl
def perdure_register_rerankers(register: Register) -> None:
    register("sample-shortest", lambda: shortest_first)


@hookimpl
def perdure_register_capture_rules(register: Register) -> None:
    register("sample-shouted", lambda: shouted)


@hookimpl
def perdure_register_hosts(register: Register) -> None:
    register("sample-host", sample_host)
