"""The encoder in torch: a BERT of 384 dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

DIMS, HEADS, INNER = 384, 12, 1536
_BATCH = 4096


class Layer(nn.Module):
    """One layer of BERT."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(DIMS, DIMS) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(DIMS, eps=1e-12), nn.LayerNorm(DIMS, eps=1e-12)
        self.inner, self.outer = nn.Linear(DIMS, INNER), nn.Linear(INNER, DIMS)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the next states; `mask` is added to the attention's logits."""
        rows, length, _ = states.shape
        query, key, value = (
            each(states).view(rows, length, HEADS, DIMS // HEADS).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        states = self.norm1(states + self.out(seen.transpose(1, 2).reshape(rows, length, DIMS)))
        return self.norm2(states + self.outer(F.gelu(self.inner(states))))


class Encoder(nn.Module):
    """Token ids to vectors of length one: the mean of the last states."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        """Take published or tuned weights, under the names that the published file gives them."""
        super().__init__()
        self.depth = depth(weights)
        self.words, self.places, self.types = (
            nn.Embedding(len(weights[f"embeddings.{kind}_embeddings.weight"]), DIMS)
            for kind in ("word", "position", "token_type")
        )
        self.norm = nn.LayerNorm(DIMS, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(self.depth))
        self.load_state_dict({ours: weights[theirs] for ours, theirs in names(self.depth).items()})
        # A word that no store holds must not drift away from those that do.
        self.words.weight.requires_grad_(False)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the vectors of rows of ids; `mask` is 1 where there is a token."""
        places = torch.arange(ids.shape[1], device=ids.device)
        states = self.norm(self.words(ids) + self.places(places) + self.types.weight[0])
        hidden = torch.zeros_like(mask, dtype=states.dtype).masked_fill(mask == 0, -1e9)[:, None, None, :]
        for layer in self.layers:
            states = layer(states, hidden)
        weights = mask[:, :, None].to(states.dtype)
        return F.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)

    def embed(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return the vectors of tokenised texts, computed in batches of alike lengths."""
        device = self.norm.weight.device
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
        found: list[Tensor] = []
        at = 0
        while at < len(order):
            some = order[at : at + max(1, _BATCH // (4 + len(rows[order[min(at + 64, len(order) - 1)]])))][:64]
            at += len(some)
            ids = torch.zeros((len(some), max(len(rows[row]) for row in some)), dtype=torch.long)
            mask = torch.zeros_like(ids)
            for place, row in enumerate(some):
                ids[place, : len(rows[row])] = torch.tensor(rows[row])
                mask[place, : len(rows[row])] = 1
            found.append(self(ids.to(device), mask.to(device)))
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(found)[back.to(device)]

    def weights(self) -> dict[str, Tensor]:
        """Return the weights under their published names."""
        own = self.state_dict()
        return {theirs: own[ours].detach().cpu().clone() for ours, theirs in names(self.depth).items()}


def depth(weights: Mapping[str, Any]) -> int:
    """Return how many layers weights have."""
    return 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))


def names(layers: int) -> dict[str, str]:
    """Return the published name of each of our parameters."""
    both = {
        "words.weight": "embeddings.word_embeddings.weight",
        "places.weight": "embeddings.position_embeddings.weight",
        "types.weight": "embeddings.token_type_embeddings.weight",
    }
    modules = {"norm": "embeddings.LayerNorm"}
    for number in range(layers):
        for ours, theirs in (
            ("query", "attention.self.query"), ("key", "attention.self.key"), ("value", "attention.self.value"),
            ("out", "attention.output.dense"), ("norm1", "attention.output.LayerNorm"),
            ("inner", "intermediate.dense"), ("outer", "output.dense"), ("norm2", "output.LayerNorm"),
        ):  # fmt: skip
            modules[f"layers.{number}.{ours}"] = f"encoder.layer.{number}.{theirs}"
    for ours, theirs in modules.items():
        both |= {f"{ours}.{kind}": f"{theirs}.{kind}" for kind in ("weight", "bias")}
    return both
