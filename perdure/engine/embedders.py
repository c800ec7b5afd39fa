"""The embedders that settings can name, beside those of extensions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.errors import ModelError, SettingsError

if TYPE_CHECKING:
    from perdure.embed.base import Embedder
    from perdure.engine.settings import Settings

REMOTE = ("openai", "gemini", "google", "voyage", "mistral", "ollama", "openai-compatible")
"""The names of `perdure.models.providers.PROVIDERS`, which are not loaded before they are needed."""
_log = logging.getLogger("perdure.plugin")


def local_embedder(settings: Settings) -> Embedder:
    """Load the ONNX model of the catalogue that `embedder_model` names; unset: the default.

    Raises:
        SettingsError: there is no such model.
        ModelError: it is not on this machine, or cannot be loaded.
    """
    from perdure.embed.load import known_model, load_default, load_model

    if settings.embedder_model is None:
        return load_default(settings.model_path, threads=settings.model_threads)
    return load_model(known_model(settings.embedder_model), settings.model_path, threads=settings.model_threads)


def auto_embedder(settings: Settings) -> Embedder:
    """Load the default model; where there is none, connect to the first of `embedder_fallbacks` that can be used.

    Raises:
        ModelError: there is no local model, and nothing else is set or can be used.
    """
    from perdure.embed.load import load_default

    try:
        # `embedder_model` is that of the fallbacks.
        return load_default(settings.model_path, threads=settings.model_threads)
    except ModelError as error:
        if not settings.embedder_fallbacks:
            raise
        _log.warning("the local model cannot be used, its fallbacks are: %s", error)
        return _first_of(settings, settings.embedder_fallbacks, None, None)


def remote_embedder(name: str, settings: Settings) -> Embedder:
    """Connect to a provider; `embedder_fallbacks` stand in for it with the same model.

    Raises:
        SettingsError: a setting does not fit, or a fallback is of another model.
        ModelError: the key is missing, or nobody answered.
    """
    from perdure.models.providers import PROVIDERS, connect

    model = settings.embedder_model or PROVIDERS[name].model

    def preferred() -> Embedder:
        return connect(
            name,
            model=model,
            url=settings.embedder_endpoint,
            key_variable=settings.embedder_key_env,
            dims=settings.embedder_dims,
            timeout=settings.embedder_timeout,
        )

    if not settings.embedder_fallbacks:
        return preferred()
    try:
        first = preferred()
    except ModelError as error:
        _log.warning("embedder %s cannot be used, its fallbacks are: %s", name, error)
        return _first_of(settings, settings.embedder_fallbacks, model, error)
    return _chained([first, *_usable(settings, settings.embedder_fallbacks, model)])


def hash_embedder(settings: Settings) -> Embedder:
    """Make the deterministic embedder for tests; it needs no model. `embedder_model` is its dimensions, if set.

    Raises:
        SettingsError: `embedder_model` is not a number.
    """
    from perdure.embed.deterministic import HashEmbedder

    if settings.embedder_model is None:
        return HashEmbedder()
    if not settings.embedder_model.isdecimal():
        raise SettingsError(f"setting embedder_model = {settings.embedder_model!r}: embedder hash takes its dimensions")
    return HashEmbedder(int(settings.embedder_model))


def sentence_transformers_embedder(settings: Settings) -> Embedder:
    """Load any model of the sentence-transformers package."""
    from perdure.models.sentence_transformers import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(settings.embedder_model or "sentence-transformers/all-MiniLM-L6-v2")


def _first_of(settings: Settings, names: Sequence[str], model: str | None, problem: ModelError | None) -> Embedder:
    usable = _usable(settings, names, model)
    if not usable:
        raise problem or ModelError(f"none of embedder_fallbacks = {', '.join(names)} can be used; see the log")
    # Without a model that the settings name, each provider has its own: only the same may stand in.
    return _chained([each for each in usable if each.identity == usable[0].identity])


def _usable(settings: Settings, names: Sequence[str], model: str | None) -> list[Embedder]:
    """Connect to fallbacks, written "name" or "name=address"; one that cannot be used is left out and logged."""
    from perdure.models.providers import connect

    found: list[Embedder] = []
    for each in names:
        name, _, url = each.partition("=")
        wanted = settings.embedder_model or model
        try:
            found.append(
                connect(
                    name.strip(),
                    model=wanted,
                    url=url.strip() or None,
                    dims=settings.embedder_dims,
                    timeout=settings.embedder_timeout,
                )
            )
        except ModelError as error:
            _log.warning("embedder %s cannot be used: %s", name, error)
    return found


def _chained(embedders: Sequence[Embedder]) -> Embedder:
    from perdure.models.remote import FailoverEmbedder

    return embedders[0] if len(embedders) == 1 else FailoverEmbedder(embedders)
