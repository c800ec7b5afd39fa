"""perdure: long-term memory for AI agents that just works."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.errors import PerdureError
    from perdure.hooks.types import Recall, RecallItem, TurnContext
    from perdure.plugin.async_memory import AsyncMemory
    from perdure.plugin.extensions import hookimpl
    from perdure.plugin.memory import Memory
    from perdure.plugin.plugin import hookimpls_for
    from perdure.store.fact import Fact

_HOMES = {
    "AsyncMemory": "perdure.plugin.async_memory",
    "Fact": "perdure.store.fact",
    "Memory": "perdure.plugin.memory",
    "PerdureError": "perdure.errors",
    "Recall": "perdure.hooks.types",
    "RecallItem": "perdure.hooks.types",
    "TurnContext": "perdure.hooks.types",
    "hookimpl": "perdure.plugin.extensions",
    "hookimpls_for": "perdure.plugin.plugin",
}

__all__ = [
    "AsyncMemory",
    "Fact",
    "Memory",
    "PerdureError",
    "Recall",
    "RecallItem",
    "TurnContext",
    "hookimpl",
    "hookimpls_for",
]


def __getattr__(name: str) -> Any:
    # Loaded at first use: importing perdure costs a host almost nothing.
    if name not in _HOMES:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
