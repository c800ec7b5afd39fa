"""What tests of many parts say and look at: memories on one folder, one clock, and somebody who talks to them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.fake_host import FakeHost
from perdure.hooks.types import Channel, TurnContext
from perdure.store.fact import Fact
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author

OpenMemory = Callable[..., Memory]
"""Takes a folder, if not `home`, and settings."""
OpenHost = Callable[..., tuple[FakeHost, Memory]]
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


def kept(home: Path) -> list[str]:
    """Return the texts of all facts in a data folder, in the order they came."""
    store = Store(home)
    try:
        with store.database.read() as connection:
            return [row[0] for row in run(connection, "SELECT text FROM facts ORDER BY seq")]
    finally:
        store.close()


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what perdure told the operator."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("perdure") and record.levelno >= logging.WARNING
    ]
