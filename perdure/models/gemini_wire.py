"""POST models/<model>:batchEmbedContents, the form of the Gemini API.

Source: https://ai.google.dev/api/embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from perdure.models.remote import RemoteModel

QUERY = "RETRIEVAL_QUERY"
DOCUMENT = "RETRIEVAL_DOCUMENT"


@dataclass(slots=True)
class GeminiWire:
    """One request holds a list of requests, each with its task type."""

    batch: int = 100
    batch_bytes: int = 100_000
    cuts: bool = True
    tasks: tuple[str, str] = (f"taskType={QUERY} ", f"taskType={DOCUMENT} ")

    def request(self, model: RemoteModel, texts: Sequence[str], *, query: bool) -> tuple[str, Mapping[str, Any]]:
        """Return the path and the body."""
        name = f"models/{model.name.removeprefix('models/')}"
        common: dict[str, Any] = {"model": name, "taskType": QUERY if query else DOCUMENT}
        if model.shortened:
            common["outputDimensionality"] = model.dims
        requests = [{**common, "content": {"parts": [{"text": text}]}} for text in texts]
        return f"/{quote(name)}:batchEmbedContents", {"requests": requests}

    def rows(self, answer: Any) -> Sequence[Sequence[float]]:
        """Return the vectors of an answer, which come in the order of the requests."""
        return [entry["values"] for entry in answer["embeddings"]]
