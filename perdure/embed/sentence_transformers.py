"""Text to vectors with any model that the package sentence-transformers loads."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perdure.embed.base import EmbedderIdentity
from perdure.embed.prepare import clean_text, model_input, unit_rows
from perdure.errors import ModelError
from perdure.native import native_call

if TYPE_CHECKING:
    from perdure.embed.base import Vectors

_UNLIMITED: Final = 1_000_000
"""Stands for the limit of a model that has none (a static one, for example)."""
_QUERY_PROMPTS: Final = ("query",)
_DOCUMENT_PROMPTS: Final = ("document", "passage", "corpus")
"""Names under which models keep their prompt, the usual one first."""


class SentenceTransformerEmbedder:
    """Embeds texts with a sentence-transformers model. Safe to use from several threads.

    Texts go through the model one by one: in a batch, a text's vector depends on the others' padding with
    some models (half precision, dynamic quantisation). One by one also lets a query in between.
    """

    def __init__(self, model: str, *, device: str | None = None) -> None:
        """Load a model.

        Args:
            model: a folder, or a name on the Hugging Face hub. A name that is not yet in its local cache is
                downloaded by that package, unless HF_HUB_OFFLINE=1 is set.
            device: where to compute ("cpu", "cuda", "mps"); None lets the package choose.

        Raises:
            ModelError: the package is not installed, or it cannot load the model.
        """
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise ModelError(
                f"model {model!r} needs the package sentence-transformers ({error}); "
                'install it: pip install "perdure[sentence-transformers]"'
            ) from error
        try:
            self._model = SentenceTransformer(model, device=device)
        except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise ModelError(
                f"sentence-transformers cannot load model {model!r}: {error}; check the name or the folder"
            ) from error
        self._name = Path(model).name if Path(model).is_dir() else model
        self._lock = threading.Lock()
        self._interrupts = 0
        self._max_tokens = min(self._model.max_seq_length or _UNLIMITED, _UNLIMITED)
        self._identity = self._describe()

    @property
    def identity(self) -> EmbedderIdentity:
        """Which vector space this embedder writes to."""
        return self._identity

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts.

        Args:
            texts: any number of texts; each is cut at the model's `max_tokens`.
            query: whether they are questions to be matched against documents.

        Returns:
            float32 array of shape (len(texts), dims), each row of length one.

        Raises:
            ModelError: the model failed or was interrupted.
        """
        import numpy as np

        before = self._interrupts
        vectors: Vectors = np.empty((len(texts), self._identity.dims), dtype=np.float32)
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

    def _describe(self) -> EmbedderIdentity:
        return EmbedderIdentity(
            model=self._name,
            digest=_weights_digest(self._model),
            dims=len(self._encode("", query=False)),
            max_tokens=self._max_tokens,
            pooling=_pooling(self._model),
            query_prefix=_prompt(self._model, _QUERY_PROMPTS),
            document_prefix=_prompt(self._model, _DOCUMENT_PROMPTS),
        )


def _weights_digest(model: Any) -> str:
    """Return the sha256 over all weights in the order of their names, wherever they were loaded from."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        # As bytes: numpy has no bfloat16.
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


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
