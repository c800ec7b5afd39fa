"""Finds the default model on this machine. Nothing is ever downloaded."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.embed.catalogue import MINILM_INT8, OnnxModel
from perdure.errors import ModelError

if TYPE_CHECKING:
    from perdure.embed.base import Embedder


def load_default(weights: Path | None = None, *, threads: int = 1) -> Embedder:
    """Load the default model.

    Args:
        weights: its ONNX file; None: the file in the installed package.
        threads: CPU threads for one call.

    Raises:
        ModelError: the file is missing or altered, or ONNX Runtime is not usable here.
    """
    path = weights if weights is not None else find_weights(MINILM_INT8)
    try:
        from perdure.embed.onnx import OnnxEmbedder

        return OnnxEmbedder(MINILM_INT8, path, threads=threads)
    except ImportError as error:
        raise ModelError(
            f"model {MINILM_INT8.name} needs onnxruntime and tokenizers ({error}); reinstall perdure"
        ) from error


def find_weights(model: OnnxModel) -> Path:
    """Return where the weights of `model` lie in its package, which is located but never imported.

    Raises:
        ModelError: the package is not installed.
    """
    spec = importlib.util.find_spec(model.package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise ModelError(
            f"model {model.name} is not installed: package {model.package} was not found; "
            f"install it: pip install {model.package.replace('_', '-')}, or give the path of {model.file}. "
            "Without a model, perdure recalls by keywords alone"
        )
    return Path(folders[0]) / model.file
