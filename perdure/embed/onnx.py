"""Text to vectors with ONNX Runtime, in this process, on the CPU."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from perdure import telemetry
from perdure.embed.base import Vectors, clean_text, model_input, unit_rows
from perdure.embed.catalogue import OnnxModel
from perdure.errors import ModelError
from perdure.heap import give_back
from perdure.native import native_call

_BATCH_ROWS: Final = 4
_BATCH_TOKENS: Final = 320
"""Rows times longest row of a batch. Beyond it a batch is slower per text than one text at a time, and
four rows of 256 tokens take over 100 MB more than loading the model does."""
_STATES: Final = "last_hidden_state"
"""The output that holds the token states, where a model has others beside it."""
_WARNINGS_OFF: Final = 3
"""ONNX Runtime logs errors and worse."""

_Row = tuple[int, list[int]]
"""Position of a text among those asked for, and its token ids."""


class OnnxEmbedder:
    """Embeds texts with a model in ONNX form. Safe to use from several threads."""

    def __init__(self, model: OnnxModel, weights: Path, *, tokenizer: Path | None = None) -> None:
        """Verify the model's files and load them.

        `model`: which build the files must be; `tokenizer`: its tokenizer; None: the one among perdure's own data, or
        `tokenizer.json` beside the weights.
        """
        vocabulary = tokenizer or model.tokenizer_path or weights.with_name("tokenizer.json")
        _verify(weights, model.sha256)
        _verify(vocabulary, model.tokenizer_sha256)
        self.identity = model.identity
        self._model = model
        self._tokenizer = _load_tokenizer(vocabulary, model.max_tokens)
        with native_call():
            self._session = _load_session(weights)
        self._inputs = {node.name for node in self._session.get_inputs()}
        outputs = [node.name for node in self._session.get_outputs()]
        self._output = _STATES if _STATES in outputs else outputs[0]
        self._running: set[Any] = set()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts.

        Returns float32 array of shape (len(texts), dims), each row of length one.
        """
        import numpy as np

        model = self._model
        prefix = model.query_prefix if query else model.document_prefix
        vectors: Vectors = np.empty((len(texts), model.dims), dtype=np.float32)
        with self._run_options() as options:
            for batch in _batches(self._rows(texts, prefix, options), 1 if model.alone else _BATCH_ROWS):
                states, mask = self._run(batch, options)
                if states.shape[2] != model.dims:
                    raise ModelError(
                        f"model {model.name} returns {states.shape[2]} dimensions, but its description says "
                        f"{model.dims}; correct the description"
                    )
                vectors[[index for index, _ in batch]] = unit_rows(_pool(states, mask, model.pooling))
        return vectors

    def count_tokens(self, text: str) -> int:
        """Return how many tokens of this model the whole text has, special tokens not counted."""
        encoding = self._tokenizer.encode(clean_text(text), add_special_tokens=False)
        # What truncation cuts off stands in `overflowing`, so that one tokenizer serves both uses
        # and none is changed while another thread reads it.
        return len(encoding) + sum(len(rest) for rest in encoding.overflowing)

    def interrupt(self) -> None:
        """Make every running `embed` call raise ModelError soon; callable from any thread."""
        with self._lock:
            for options in self._running:
                options.terminate = True

    @contextmanager
    def _run_options(self) -> Iterator[Any]:
        import onnxruntime

        # Fresh for each call: once set, `terminate` would end the next call as well.
        options = onnxruntime.RunOptions()
        with self._lock:
            self._running.add(options)
        try:
            yield options
        finally:
            with self._lock:
                self._running.discard(options)

    def _rows(self, texts: Sequence[str], prefix: str, options: Any) -> Iterator[_Row]:
        """Tokenise one text at a time, shortest first, so that a batch needs little padding."""
        for index in sorted(range(len(texts)), key=lambda index: len(texts[index])):
            if options.terminate:
                raise _interrupted(self._model)
            text = model_input(prefix + texts[index], self._model.max_tokens)
            yield index, self._tokenizer.encode(text).ids

    def _run(self, batch: Sequence[_Row], options: Any) -> tuple[Any, Any]:
        """Return the token states, shape (rows, tokens, dims), and their mask, shape (rows, tokens)."""
        import numpy as np

        shape = (len(batch), max(len(ids) for _, ids in batch))
        ids_of, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        for row, (_, ids) in enumerate(batch):
            ids_of[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        feed = {"input_ids": ids_of, "attention_mask": mask, "token_type_ids": np.zeros_like(ids_of)}
        wanted = {name: feed[name] for name in self._inputs if name in feed}
        try:
            with native_call():
                [states] = self._session.run([self._output], wanted, options)
        except _runtime_errors() as error:
            if options.terminate:
                raise _interrupted(self._model) from None
            raise ModelError(
                f"model {self._model.name} failed on {shape[0]} texts of up to {shape[1]} tokens: {error}"
            ) from error
        return states, mask


def _batches(rows: Iterator[_Row], most: int) -> Iterator[list[_Row]]:
    batch: list[_Row] = []
    longest = 0
    for row in rows:
        longest = max(longest, len(row[1]))
        if batch and (len(batch) == most or (len(batch) + 1) * longest > _BATCH_TOKENS):
            yield batch
            batch, longest = [], len(row[1])
        batch.append(row)
    if batch:
        yield batch


def _pool(states: Any, mask: Any, pooling: str) -> Any:
    """Mean of the real tokens' states, or the first token's (Reimers and Gurevych 2019, section 3)."""
    if pooling == "cls":
        return states[:, 0]
    weights = mask[:, :, None].astype(states.dtype)
    return (states * weights).sum(axis=1) / weights.sum(axis=1)


def _verify(path: Path, expected: str) -> None:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(
            f"model file {path} cannot be read ({error.strerror}); reinstall perdure or give another path"
        ) from error
    if found != expected:
        raise ModelError(
            f"model file {path} has changed: its sha256 is {found}, expected {expected}; reinstall the "
            "package that holds it, or delete it and fetch it again"
        )


def _load_tokenizer(path: Path, max_tokens: int) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    # The published file pads and cuts to 128 tokens.
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _load_session(weights: Path) -> Any:
    import onnxruntime

    if not telemetry.wanted():
        # For hosts that have imported it earlier, and for Windows, where it does not heed the environment.
        onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena = False  # the arena never gives back what the largest batch took
    # The other cores are the host's.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _WARNINGS_OFF
    try:
        session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
    except _runtime_errors() as error:
        raise ModelError(f"ONNX Runtime cannot load model file {weights}: {error}") from error
    give_back()
    return session


def _runtime_errors() -> tuple[type[Exception], ...]:
    """Every error class of ONNX Runtime: they have no base class of their own."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return tuple(value for value in vars(state).values() if isinstance(value, type) and issubclass(value, Exception))


def _interrupted(model: OnnxModel) -> ModelError:
    return ModelError(f"model {model.name} was interrupted; call it again")
