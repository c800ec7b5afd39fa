"""What perdure registers with itself, through the same hooks as any extension."""

from __future__ import annotations

from functools import partial
from typing import Any

from perdure.engine.embedders import (
    REMOTE,
    auto_embedder,
    hash_embedder,
    local_embedder,
    shifted_embedder,
)
from perdure.engine.extensions import Register, hookimpl
from perdure.parts import part


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
        register("shifted", shifted_embedder)
        register("sentence-transformers", _of_sentence_transformers)
        for name in REMOTE:
            register(name, partial(_remote, name))

    @hookimpl
    def perdure_register_hosts(self, register: Register) -> None:
        """Register the hosts."""
        register("fake", python_host)


BUILTINS = (("perdure", Builtins()),)
