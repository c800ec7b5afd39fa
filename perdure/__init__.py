"""perdure: long-term memory for AI agents that just works."""

from __future__ import annotations

from importlib import import_module

from perdure import telemetry

TYPE_CHECKING = False
"""What type checkers take for true. Importing `typing` would take longer than all the rest."""

if TYPE_CHECKING:
    from typing import Any

    from perdure.api.async_memory import AsyncMemory
    from perdure.api.memory import Memory
    from perdure.api.view import MemoryView
    from perdure.engine.extensions import hookimpl
    from perdure.errors import PerdureError
    from perdure.hooks.types import Recall, RecallItem, TurnContext
    from perdure.plugin.plugin import hookimpls_for
    from perdure.store.fact import Fact

# Before anything here can import the library that it is about.
telemetry.turn_off()

_HOMES = {
    "AsyncMemory": "perdure.api.async_memory",
    "Fact": "perdure.store.fact",
    "Memory": "perdure.api.memory",
    "MemoryView": "perdure.api.view",
    "PerdureError": "perdure.errors",
    "Recall": "perdure.hooks.types",
    "RecallItem": "perdure.hooks.types",
    "TurnContext": "perdure.hooks.types",
    "hookimpl": "perdure.engine.extensions",
    "hookimpls_for": "perdure.plugin.plugin",
}

__all__ = [
    "AsyncMemory",
    "Fact",
    "Memory",
    "MemoryView",
    "PerdureError",
    "Recall",
    "RecallItem",
    "TurnContext",
    "hookimpl",
    "hookimpls_for",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def __getattr__(name: str) -> Any:
    # Loaded at first use: importing perdure costs a host almost nothing.
    if name == "__version__":
        from importlib.metadata import version

        return version("perdure")
    if name not in _HOMES:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
