"""What perdure registers with itself, through the same hooks as any extension."""

from __future__ import annotations

from functools import partial
from typing import Any

from perdure.engine.embedders import (
    REMOTE,
    auto_embedder,
    hash_embedder,
    local_embedder,
    remote_embedder,
    sentence_transformers_embedder,
)
from perdure.engine.extensions import Register, hookimpl


def python_host(**arguments: Any) -> object:
    """Make the small host that comes with perdure."""
    from perdure.hooks.fake_host import FakeHost

    return FakeHost(**arguments)


class Builtins:
    """The built-in embedders and hosts."""

    @hookimpl
    def perdure_register_embedders(self, register: Register) -> None:
        """Register the embedders: each factory takes the settings."""
        register("auto", auto_embedder)
        register("onnx", local_embedder)
        register("hash", hash_embedder)
        register("sentence-transformers", sentence_transformers_embedder)
        for name in REMOTE:
            register(name, partial(remote_embedder, name))

    @hookimpl
    def perdure_register_hosts(self, register: Register) -> None:
        """Register the hosts."""
        register("fake", python_host)


BUILTINS = (("perdure", Builtins()),)
