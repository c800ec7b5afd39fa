"""Other memory stores beside perdure, where they are installed: the same texts, the same vectors, the same prompts.

Each is given its vectors: what is measured is the store, not a model. What is not installed is skipped, and said so.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.measuring import p50, timed

Search = Callable[[str], object]
BATCH = 1_000
LIMIT = 10
DIMS = 384
MODULES = ("chromadb", "mem0")


class Given:
    """In the place of mem0's embedder: looks vectors up, so that no peer computes its own."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        """Know the vectors of these texts."""
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Return the vector of a text that is known, whatever it is for."""
        return self._vectors[text]


def measure(folder: Path, texts: Sequence[str], prompts: Sequence[str], vectors: Any) -> dict[str, float]:
    """Return the median milliseconds of a search, by the name of each peer that is installed.

    `vectors` are float32 of the texts, then of the prompts, of shape (texts + prompts, 384).
    """
    known = dict(zip([*texts, *prompts], vectors.tolist(), strict=True))
    found = {}
    for name in MODULES:
        if importlib.util.find_spec(name) is None:
            print(f"{name}: skipped, it is not installed", file=sys.stderr)
            continue
        search = _OPEN[name](folder / name, texts, known)
        found[name] = p50([timed(partial(search, prompt))[1] for prompt in prompts])
    return found


def _chromadb(folder: Path, texts: Sequence[str], known: dict[str, list[float]]) -> Search:
    chromadb = importlib.import_module("chromadb")
    client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("bench", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    for start in range(0, len(texts), BATCH):
        part = list(texts[start : start + BATCH])
        ids = [str(number) for number in range(start, start + len(part))]
        collection.add(ids=ids, documents=part, embeddings=[known[text] for text in part])
    return lambda prompt: collection.query(query_embeddings=[known[prompt]], n_results=LIMIT)


def _mem0(folder: Path, texts: Sequence[str], known: dict[str, list[float]]) -> Search:
    os.environ["MEM0_TELEMETRY"] = "False"  # read when the module is loaded
    mem0 = importlib.import_module("mem0")
    store = {"path": str(folder), "collection_name": "bench", "embedding_model_dims": DIMS, "on_disk": True}
    unused = {"api_key": "nothing is inferred or embedded"}
    memory = mem0.Memory.from_config({
        "vector_store": {"provider": "qdrant", "config": store},
        "embedder": {"provider": "openai", "config": unused},
        "llm": {"provider": "openai", "config": unused},
        "history_db_path": str(folder.with_suffix(".history")),
    })  # fmt: skip
    memory.embedding_model = Given(known)
    for text in texts:
        memory.add(text, user_id="bench", infer=False)
    return lambda prompt: memory.search(prompt, filters={"user_id": "bench"}, top_k=LIMIT)


_OPEN = {"chromadb": _chromadb, "mem0": _mem0}
