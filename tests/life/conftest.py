"""Memories on one folder, one clock, and somebody who talks to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import Channel, TurnContext
from perdure.store.fact import Fact
from perdure.store.store import Store
from perdure.store.transaction import Author

OpenMemory = Callable[..., Memory]
START = 1_800_000_000.0
"""The manual clock's first moment: 15 January 2027, 08:00 UTC."""
DAY = 86_400.0


def say(memory: Memory, *texts: str, session: str = "s") -> None:
    """Let a turn with these messages be captured."""
    messages = [{"role": "user", "content": text} for text in texts]
    assert memory.turns.after(messages, True, TurnContext(session_id=session)) == len(texts)
    assert memory.settle()


def recalled(memory: Memory, prompt: str, **asked: Any) -> list[str]:
    """Return the texts that come up for a prompt, best first."""
    recall = memory.recall(prompt, **asked)
    return [item.text for item in recall.items] if recall else []


def put(home: Path, *facts: Fact) -> None:
    """Write the owner's facts just as they are, beside the open memory, as another process would."""
    store = Store(home, clock=ManualClock(START))
    with store.write(Author(Channel.LIBRARY)) as tx:
        for fact in facts:
            tx.add(replace(fact, scope="user", scope_target="owner"))
    store.close()


@pytest.fixture
def open_memory(open_memory: OpenMemory) -> OpenMemory:
    """Open memories on one folder: by words alone, unless an embedder is named."""
    return partial(open_memory, embedder="none")


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    """A memory of the owner, by words alone."""
    return open_memory()
