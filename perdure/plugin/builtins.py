"""What perdure registers with itself, through the same hooks as any extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perdure.errors import SettingsError
from perdure.plugin.extensions import Register, hookimpl

if TYPE_CHECKING:
    from perdure.embed.base import Embedder
    from perdure.plugin.settings import Settings


def local_embedder(settings: Settings) -> Embedder:
    """Load the local ONNX model."""
    from perdure.embed.load import load_default

    return load_default(settings.model_path, threads=settings.model_threads)


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
    from perdure.embed.sentence_transformers import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(settings.embedder_model or "sentence-transformers/all-MiniLM-L6-v2")


def python_host(**arguments: Any) -> object:
    """Make the small host that comes with perdure."""
    from perdure.hooks.fake_host import FakeHost

    return FakeHost(**arguments)


class Builtins:
    """The built-in embedders and hosts."""

    @hookimpl
    def perdure_register_embedders(self, register: Register) -> None:
        """Register the embedders: each factory takes the settings."""
        register("auto", local_embedder)
        register("onnx", local_embedder)
        register("hash", hash_embedder)
        register("sentence-transformers", sentence_transformers_embedder)

    @hookimpl
    def perdure_register_hosts(self, register: Register) -> None:
        """Register the hosts."""
        register("fake", python_host)


BUILTINS = (("perdure", Builtins()),)
