"""Text to vectors with any model that the package sentence-transformers loads."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from perdure.embed.base import EmbedderIdentity, Vectors, clean_text, model_input, unit_rows
from perdure.embed.load import hub_snapshot, sha256_of
from perdure.errors import ModelError
from perdure.extras import how_to_install
from perdure.native import native_call

_UNLIMITED: Final = 1_000_000
"""Stands for the limit of a model that has none (a static one, for example)."""
_QUERY_PROMPTS: Final = ("query",)
_DOCUMENT_PROMPTS: Final = ("document", "passage", "corpus")
"""Names under which models keep their prompt, the usual one first."""
_ORGANISATION: Final = "sentence-transformers"
"""Whose model the package takes for a name without an owner."""
_OTHER_BACKENDS: Final = frozenset({"onnx", "openvino"})
_UNREAD: Final = frozenset({".h5", ".md", ".msgpack", ".onnx", ".ot", ".py", ".tflite"})
"""Endings of files that no number comes from: descriptions, and weights in forms that are not loaded here."""


class SentenceTransformerEmbedder:
    """Embeds texts with a sentence-transformers model. Safe to use from several threads.

    Texts go through the model one by one: in a batch, a text's vector depends on the others' padding with
    some models (half precision, dynamic quantisation). One by one also lets a query in between.
    """

    def __init__(self, model: str, *, device: str | None = None) -> None:
        """Load a model from a folder, or by its name from the local cache of the hub. Nothing is downloaded."""
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise ModelError(
                f"model {model!r} needs the package sentence-transformers ({error}); "
                f"run: {how_to_install('sentence-transformers')}"
            ) from error
        folder = _folder(model)
        try:
            # From its folder: by its name the package would ask the hub, at every start, what is new there.
            self._model = SentenceTransformer(str(folder), device=device, local_files_only=True)
        except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise ModelError(
                f"sentence-transformers cannot load model {model!r}: {error}; check the name or the folder"
            ) from error
        self._name = Path(model).name if Path(model).is_dir() else model
        self._lock = threading.Lock()
        self._interrupts = 0
        self._max_tokens = min(self._model.max_seq_length or _UNLIMITED, _UNLIMITED)
        self.identity = EmbedderIdentity(
            self._name, _files_digest(folder), len(self._encode("", query=False)), self._max_tokens,
            _pooling(self._model), _prompt(self._model, _QUERY_PROMPTS), _prompt(self._model, _DOCUMENT_PROMPTS),
        )  # fmt: skip

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts.

        Returns float32 array of shape (len(texts), dims), each row of length one.
        """
        import numpy as np

        before = self._interrupts
        vectors: Vectors = np.empty((len(texts), self.identity.dims), dtype=np.float32)
        for index, text in enumerate(texts):
            with self._lock:
                if self._interrupts != before:
                    raise ModelError(f"model {self._name} was interrupted after {index} texts; call it again")
                vectors[index] = self._encode(text, query=query)
        return vectors

    def count_tokens(self, text: str) -> int:
        """Return how many tokens of this model the whole text has, special tokens not counted."""
        tokenizer = self._model.tokenizer
        with self._lock:  # the tokenizer's settings are changed by each of its calls
            if callable(tokenizer):
                return len(tokenizer(clean_text(text), add_special_tokens=False, verbose=False)["input_ids"])
            return len(tokenizer.encode(clean_text(text), add_special_tokens=False))

    def interrupt(self) -> None:
        """Make every running `embed` call raise ModelError before its next text."""
        self._interrupts += 1

    def _encode(self, text: str, *, query: bool) -> Any:
        encode = self._model.encode_query if query else self._model.encode_document
        # Chosen here, so that the identity tells the truth: the package prefers an empty "document" prompt
        # that it made itself to a model's own "passage" prompt.
        prompt = _prompt(self._model, _QUERY_PROMPTS if query else _DOCUMENT_PROMPTS)
        try:
            with native_call():
                rows = encode([model_input(text, self._max_tokens)], prompt=prompt, show_progress_bar=False)
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            raise ModelError(f"model {self._name} failed on a text of {len(text)} characters") from error
        return unit_rows(rows)[0]


def _folder(model: str) -> Path:
    """Return the folder of a model."""
    if Path(model).is_dir():
        return Path(model)
    names = (model,) if "/" in model else (f"{_ORGANISATION}/{model}", model)
    found = next(filter(None, map(hub_snapshot, names)), None)
    if found is None:
        raise ModelError(
            f"model {model!r} is not on this machine, and perdure downloads none for sentence-transformers; name its "
            "folder, or fetch it once with that package: "
            f"python -c \"from sentence_transformers import SentenceTransformer as S; S('{model}')\""
        )
    return found


def _files_digest(folder: Path) -> str:
    """Return the sha256 over the paths and contents of all files that the model's numbers come from.

    Not over the weights in memory: what a model's files lack, such as a pooler that nothing reads, is filled up
    with random numbers at each load.
    """
    try:
        digests = {path.relative_to(folder).as_posix(): sha256_of(path) for path in _deciding(folder)}
    except OSError as error:
        raise ModelError(f"model file {error.filename} cannot be read: {error.strerror}") from error
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


def _deciding(folder: Path) -> Iterator[Path]:
    """Yield weights, configurations, vocabularies, and whatever is not known to be without influence."""
    files = [path for path in folder.iterdir() if not path.name.startswith(".")]
    safe = any(path.suffix == ".safetensors" for path in files)
    for path in files:
        if path.is_dir():
            if path.name not in _OTHER_BACKENDS:
                yield from _deciding(path)
        elif path.suffix not in _UNREAD and not (safe and path.suffix == ".bin"):
            # Where both forms of the weights are there, the package reads the safe one.
            yield path


def _prompt(model: Any, names: Sequence[str]) -> str:
    """Return the first prompt of these names, or the model's default one, or nothing."""
    found = (model.prompts.get(name) for name in (*names, model.default_prompt_name))
    return next(filter(None, found), "")


def _pooling(model: Any) -> str:
    """Return the name of the model's pooling, "none" if it has no such module."""
    for module in model:
        mode = getattr(module, "pooling_mode", None)
        if mode is None and hasattr(module, "get_pooling_mode_str"):
            mode = module.get_pooling_mode_str()
        if mode is not None:
            return mode if isinstance(mode, str) else "+".join(mode)
    return "none"
