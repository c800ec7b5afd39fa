"""POST /api/embed, the form of Ollama.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.models.remote import RemoteModel


@dataclass(slots=True)
class OllamaWire:
    """Ollama knows no tasks: a model that tells queries from documents wants a prefix in the text itself."""

    batch: int = 32
    batch_bytes: int = 100_000
    cuts: bool = True
    tasks: tuple[str, str] = ("", "")

    def request(self, model: RemoteModel, texts: Sequence[str], *, query: bool) -> tuple[str, Mapping[str, Any]]:
        """Return the path and the body."""
        body: dict[str, Any] = {"model": model.name, "input": list(texts), "truncate": True}
        return "/api/embed", body | ({"dimensions": model.dims} if model.shortened else {})

    def rows(self, answer: Any) -> Sequence[Sequence[float]]:
        """Return the vectors of an answer, which come in the order of the texts."""
        rows: Sequence[Sequence[float]] = answer["embeddings"]
        return rows
