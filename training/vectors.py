"""Vectors of an ONNX file as the product computes them: one text at a time, the mean of the last states."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

DIMS = 384
TOKENS = 256
"""Tokens that the product reads of a text."""


class Embedder:
    """Embeds texts with an ONNX file, each by itself."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        """Load the file, and the tokenizer beside it."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = threads
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._inputs = {node.name for node in self._session.get_inputs()}
        self._tokenizer: Any = Tokenizer.from_file(str(path.with_name("tokenizer.json")))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TOKENS)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return an array of shape (texts, dims), each row of length one."""
        found = np.zeros((len(texts), DIMS), dtype=np.float32)
        for row, text in enumerate(texts):
            ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
            given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            wanted = {name: value for name, value in given.items() if name in self._inputs}
            [states] = self._session.run(["last_hidden_state"], wanted)
            mean = states[0].mean(axis=0)
            found[row] = mean / np.linalg.norm(mean)
        return found


def cached(texts: Sequence[str], model: Path, cache: Path) -> dict[str, NDArray[np.float32]]:
    """Return the vector of each text, those in `cache` (an .npz of this very model) without computing them again."""
    known: dict[str, NDArray[np.float32]] = {}
    if cache.exists() and cache.stat().st_mtime > model.stat().st_mtime:
        with np.load(cache) as stored:
            known = dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    if missing:
        known |= dict(zip(missing, Embedder(model, threads=2).embed(missing), strict=True))
        np.savez(cache, texts=np.array(list(known)), vectors=np.stack(list(known.values())))
    return known
