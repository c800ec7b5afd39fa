"""What perdure registers with itself, through the same hooks as any extension."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from perdure.engine.extensions import Register, hookimpl
from perdure.errors import ModelError, SettingsError
from perdure.parts import part

if TYPE_CHECKING:
    from perdure.embed.base import Embedder
    from perdure.engine.settings import Settings


REMOTE = ("openai", "gemini", "google", "voyage", "mistral", "ollama", "openai-compatible")
"""The names of `perdure.models.providers.PROVIDERS`, which are not loaded before they are needed."""
_log = logging.getLogger("perdure.plugin")


def python_host(**arguments: Any) -> object:
    """Make the small host that comes with perdure."""
    from perdure.hooks.fake_host import FakeHost

    return FakeHost(**arguments)


def _of_sentence_transformers(settings: Any) -> Any:
    return part("models.by_settings").of_sentence_transformers(settings)


def _remote(name: str, settings: Any) -> Any:
    return part("models.by_settings").remote_embedder(name, settings)


class Builtins:
    """The built-in embedders and hosts."""

    @hookimpl
    def perdure_register_embedders(self, register: Register) -> None:
        """Register the embedders: each factory takes the settings."""
        register("auto", auto_embedder)
        register("onnx", local_embedder)
        register("hash", hash_embedder)
        register("sentence-transformers", _of_sentence_transformers)
        for name in REMOTE:
            register(name, partial(_remote, name))

    @hookimpl
    def perdure_register_hosts(self, register: Register) -> None:
        """Register the hosts."""
        register("fake", python_host)


BUILTINS = (("perdure", Builtins()),)


def local_embedder(settings: Settings) -> Embedder:
    """Load the ONNX model of the catalogue that `embedder_model` names; unset: the default.

    Raises:
        SettingsError: there is no such model.
        ModelError: it is not on this machine, or cannot be loaded.
    """
    from perdure.embed.load import known_model, load_default, load_model

    if settings.embedder_model is None:
        return load_default(settings.model_path)
    return load_model(known_model(settings.embedder_model), settings.model_path)


def auto_embedder(settings: Settings) -> Embedder:
    """Load the default model; where there is none, connect to the first of `embedder_fallbacks` that can be used.

    Raises:
        ModelError: there is no local model, and nothing else is set or can be used.
    """
    from perdure.embed.load import load_default

    try:
        # `embedder_model` is that of the fallbacks.
        return load_default(settings.model_path)
    except ModelError as error:
        if not settings.embedder_fallbacks:
            raise
        _log.warning("the local model cannot be used, its fallbacks are: %s", error)
        fallback: Embedder = part("models.by_settings").first_of(settings, settings.embedder_model)
        return fallback


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
