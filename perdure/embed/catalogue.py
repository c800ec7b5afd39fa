"""The ONNX models that perdure knows, as frozen descriptions. What has no pinned sha256 is not among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from perdure.embed.base import EmbedderIdentity
from perdure.text.lexicon import table

_DATA: Final = Path(__file__).with_name("data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """Where a model lies on the Hugging Face hub; `revision` is a commit, as what a branch holds may change."""

    repo: str
    revision: str

    def path(self, file: str) -> str:
        """Return the path of a file below the address of the hub."""
        return f"/{self.repo}/resolve/{self.revision}/{file}"

    @property
    def page(self) -> str:
        """The page that describes the model to people."""
        return f"https://huggingface.co/{self.repo}/tree/{self.revision}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxModel:
    """One exact build of an ONNX embedding model."""

    key: str  # what settings and commands call it
    name: str  # for people; a part of its identity
    hub: Hub | None = None  # None: its files are perdure's own data
    file: str  # path of the weights on the hub or among the data
    size: int  # bytes of the weights
    sha256: str
    tokenizer: str = "tokenizer.json"  # path on the hub, or among the data, or absolute
    tokenizer_size: int = 0  # bytes if it is on the hub; 0: it is among perdure's own data
    tokenizer_sha256: str
    dims: int
    max_tokens: int  # longer texts are cut here, the special tokens counted
    pooling: str = "mean"  # how token states become one vector: "mean" or "cls"
    query_prefix: str = ""
    document_prefix: str = ""
    # Whether each text must be embedded by itself. One scale for all activations of a batch makes a text's vector
    # depend on the others (dynamic quantisation: cosine down to 0.98).
    alone: bool = False
    licence: str  # of the weights, an SPDX expression
    about: str

    @property
    def identity(self) -> EmbedderIdentity:
        """The vector space that this build writes to."""
        return EmbedderIdentity(
            self.name, self.sha256, self.dims, self.max_tokens, self.pooling, self.query_prefix, self.document_prefix
        )

    @property
    def data_path(self) -> Path | None:
        """The weights among perdure's own data; None if they come from the hub."""
        return None if self.hub else _DATA / self.file

    @property
    def tokenizer_path(self) -> Path | None:
        """The tokenizer among perdure's own data; None if it comes with the weights."""
        return None if self.tokenizer_size else _DATA / self.tokenizer

    @property
    def pins(self) -> Mapping[str, tuple[int, str]]:
        """Bytes and sha256 of the weights, and of a tokenizer that comes with them, by path."""
        pins = {self.file: (self.size, self.sha256)}
        if self.tokenizer_size:
            pins[self.tokenizer] = (self.tokenizer_size, self.tokenizer_sha256)
        return MappingProxyType(pins)

    @property
    def digests(self) -> dict[str, str]:
        """The sha256 of each file that the model is fetched as, by its path."""
        return {file: sha256 for file, (_, sha256) in self.pins.items()}


RECALL: Final = OnnxModel(
    key="perdure-recall-1", name="perdure-recall-1 (int8)", file="perdure-recall-1.onnx", size=23_400_881,
    sha256="3b804aadee1a0693692920a68599fc5e0c3146ca25bbd67bf80ff1b8b9a07141",
    tokenizer_sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    dims=384, max_tokens=256, alone=True,
    licence="Apache-2.0", about="the default; English, trained for memory, shipped with perdure",
)  # fmt: skip
"""The default: all-MiniLM-L6-v2, tuned to bring a prompt near to what it needs; `training/` is how it was made."""

SUCCESSORS: Final[Mapping[str, str]] = MappingProxyType({})
"""By the space of a former default, that of the one in its place: a store follows by itself. So far there is none."""


@cache
def models() -> Mapping[str, OnnxModel]:
    """Return all models by key, the default first. The others are as their publishers describe them."""
    described = table("embed", "models")["model"]
    others = [OnnxModel(**{**each, "hub": Hub(**each["hub"])}) for each in described]
    return MappingProxyType({model.key: model for model in (RECALL, *others)})
