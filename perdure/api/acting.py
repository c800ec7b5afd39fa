"""One open store for several callers."""

from __future__ import annotations

from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext


def acting(memory: Memory, context: TurnContext) -> Memory:
    """Return an open store as another caller may use it. Who opened it closes it.

    Args:
        memory: an open store.
        context: who calls, in which folder.
    """
    other = Memory(memory._engine, context)
    # So that the folders which the caller names are searched.
    other.turns.session_start(context)
    return other
