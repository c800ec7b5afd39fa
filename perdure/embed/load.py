"""Finds a model of the catalogue on this machine and loads it. Nothing is ever downloaded here."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from perdure.embed.base import Embedder
from perdure.embed.catalogue import RECALL, OnnxModel, models
from perdure.errors import ModelError, SettingsError

MARKER: Final = "complete.json"
"""Beside the files of a fetched model: their digests, written last."""


def load_default(weights: Path | None = None) -> Embedder:
    """Load the default model; see `load_model`."""
    return load_model(RECALL, weights)


def load_model(model: OnnxModel, path: Path | None = None) -> Embedder:
    """Load a model from its ONNX file or the folder with its files; None: from where `find_weights` finds them.

    Raises ModelError if a file is missing or altered, or ONNX Runtime is not usable here.
    """
    weights = find_weights(model) if path is None else _within(path, model)
    try:
        from perdure.embed.onnx import OnnxEmbedder

        return OnnxEmbedder(model, weights, tokenizer=_tokenizer(model, weights))
    except ImportError as error:
        raise ModelError(f"model {model.name} needs onnxruntime and tokenizers ({error}); reinstall perdure") from error


def known_model(key: str) -> OnnxModel:
    """Return the model of the catalogue with this key; raise SettingsError if there is none."""
    model = models().get(key)
    if model is None:
        raise SettingsError(f"unknown model {key!r}; known models: {', '.join(models())}")
    return model


def find_weights(model: OnnxModel) -> Path:
    """Return the weights of `model` among perdure's data, in the user's Hugging Face cache or in perdure's own.

    Raises ModelError if they are nowhere.
    """
    if model.data_path is not None:
        return model.data_path
    for folder in (_snapshot(model), fetched(model)):
        if folder is not None:
            return folder / model.file
    raise ModelError(f"model {model.name} is not on this machine; fetch it: perdure model fetch {model.key}")


def models_folder() -> Path:
    """Return the folder of all fetched models: one per user, filled only by an explicit fetch."""
    import platformdirs

    try:
        return Path(platformdirs.user_cache_dir("perdure", appauthor=False)) / "models"
    except RuntimeError:
        raise ModelError("this user has no home folder for downloaded models; set HOME") from None


def fetch_folder(model: OnnxModel) -> Path | None:
    """Return the folder that a model is fetched into; None: it comes with perdure."""
    return None if model.hub is None else models_folder() / model.key / model.hub.revision


def fetched(model: OnnxModel) -> Path | None:
    """Return the folder that a model was fetched into, whole and verified; None: it was not."""
    try:
        folder = fetch_folder(model)
    except ModelError:
        return None
    if folder is None:
        return None
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return folder if marker == model.digests else None


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hub_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's Hugging Face cache: HF_HUB_CACHE, else below HF_HOME, else in the user's cache folder."""
    if environ.get("HF_HUB_CACHE"):
        return Path(environ["HF_HUB_CACHE"]).expanduser()
    if environ.get("HF_HOME"):
        return Path(environ["HF_HOME"]).expanduser() / "hub"
    # The hub's own library takes this folder on every system.
    return Path(environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "huggingface/hub"  # noqa: PTH111


def hub_snapshot(repo: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder of a repository of the hub as it was last fetched into the user's cache; None: it was not."""
    folder = _repository(Path(environ.get("SENTENCE_TRANSFORMERS_HOME") or hub_cache(environ)), repo)
    try:
        snapshot = folder / "snapshots" / (folder / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return snapshot if snapshot.is_dir() else None


def _repository(cache: Path, repo: str) -> Path:
    return cache / f"models--{repo.replace('/', '--')}"


def _snapshot(model: OnnxModel) -> Path | None:
    """Return the folder of the pinned revision in the Hugging Face cache, if all files are there."""
    if model.hub is None:
        return None
    folder = _repository(hub_cache(), model.hub.repo) / "snapshots" / model.hub.revision
    complete = all(_size(folder / file) == size for file, (size, _) in model.pins.items())
    return folder if complete else None


def _within(path: Path, model: OnnxModel) -> Path:
    if not path.is_dir():
        return path
    return next((path / file for file in (model.file, Path(model.file).name) if (path / file).is_file()), path)


def _tokenizer(model: OnnxModel, weights: Path) -> Path | None:
    """Return the tokenizer that comes with the weights: beside them, or above them as on the hub."""
    if not model.tokenizer_size:
        return None
    beside, above = weights.with_name(model.tokenizer), weights.parent.parent / model.tokenizer
    return above if above.is_file() and not beside.is_file() else beside


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
