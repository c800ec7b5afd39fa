"""Embedders on other machines, and those of the sentence-transformers package, by the settings."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.errors import ModelError
from perdure.models.providers import PROVIDERS, connect
from perdure.models.remote import FailoverEmbedder

if TYPE_CHECKING:
    from perdure.embed.base import Embedder
    from perdure.engine.settings import Settings

_log = logging.getLogger("perdure.plugin")


def remote_embedder(name: str, settings: Settings) -> Embedder:
    """Connect to a provider; `embedder_fallbacks` stand in for it with the same model.

    Raises:
        SettingsError: a setting does not fit, or a fallback is of another model.
        ModelError: the key is missing, or nobody answered.
    """
    model = settings.embedder_model or PROVIDERS[name].model
    key = settings.embedder_key_env
    try:
        first = connect(
            name, model=model, url=settings.embedder_endpoint, key_variable=key, dims=settings.embedder_dims
        )
    except ModelError as error:
        if not settings.embedder_fallbacks:
            raise
        _log.warning("embedder %s cannot be used, its fallbacks are: %s", name, error)
        return first_of(settings, model, error)
    return _chained([first, *_usable(settings, model)])


def of_sentence_transformers(settings: Settings) -> Embedder:
    """Load any model of the sentence-transformers package."""
    from perdure.models.sentence_transformers import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(settings.embedder_model or "sentence-transformers/all-MiniLM-L6-v2")


def first_of(settings: Settings, model: str | None, problem: ModelError | None = None) -> Embedder:
    """Connect to the first of the fallbacks that can be used, with the others of its model behind it."""
    usable = _usable(settings, model)
    if not usable:
        names = ", ".join(settings.embedder_fallbacks)
        raise problem or ModelError(f"none of embedder_fallbacks = {names} can be used; see the log")
    # Without a model that the settings name, each provider has its own: only the same may stand in.
    return _chained([each for each in usable if each.identity == usable[0].identity])


def _usable(settings: Settings, model: str | None) -> list[Embedder]:
    """Connect to the fallbacks, written "name" or "name=address"; one that cannot be used is left out and logged."""
    found: list[Embedder] = []
    for each in settings.embedder_fallbacks:
        name, _, url = each.partition("=")
        try:
            found.append(connect(name.strip(), model=model, url=url.strip() or None, dims=settings.embedder_dims))
        except ModelError as error:
            _log.warning("embedder %s cannot be used: %s", name, error)
    return found


def _chained(embedders: Sequence[Embedder]) -> Embedder:
    return embedders[0] if len(embedders) == 1 else FailoverEmbedder(embedders)
