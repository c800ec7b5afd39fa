"""POST /embeddings as OpenAI has it. Mistral, Voyage and most local servers understand it too.

Sources: https://platform.openai.com/docs/api-reference/embeddings,
https://docs.voyageai.com/reference/embeddings-api, https://docs.mistral.ai/api/endpoint/embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.models.remote import RemoteModel


@dataclass(slots=True)
class OpenAiWire:
    """The plain form; each server has limits of its own."""

    batch: int = 128
    batch_bytes: int = 100_000
    cuts: bool = False
    tasks: tuple[str, str] = ("", "")
    dims_field: str = "dimensions"

    def request(self, model: RemoteModel, texts: Sequence[str], *, query: bool) -> tuple[str, Mapping[str, Any]]:
        """Return the path and the body."""
        body: dict[str, Any] = {"model": model.name, "input": list(texts)}
        if model.shortened:
            body[self.dims_field] = model.dims
        return "/embeddings", body

    def rows(self, answer: Any) -> Sequence[Sequence[float]]:
        """Return the vectors of an answer. Its entries say themselves which text they are of."""
        entries = sorted(answer["data"], key=lambda entry: int(entry["index"]))
        return [entry["embedding"] for entry in entries]


@dataclass(slots=True)
class VoyageWire(OpenAiWire):
    """Voyage says whether a text is a query or a document, and cuts long ones."""

    cuts: bool = True
    tasks: tuple[str, str] = ("input_type=query ", "input_type=document ")
    dims_field: str = "output_dimension"

    def request(self, model: RemoteModel, texts: Sequence[str], *, query: bool) -> tuple[str, Mapping[str, Any]]:
        """Return the path and the body."""
        path, body = OpenAiWire.request(self, model, texts, query=query)
        return path, {**body, "input_type": "query" if query else "document", "truncation": True}
