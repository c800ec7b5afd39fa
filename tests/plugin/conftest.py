"""Memories on folders of their own, and hosts that use them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.hooks.fake_host import FakeHost
from perdure.hooks.host import HookRunner
from perdure.plugin.plugin import hookimpls_for
from perdure.store.sql import run
from perdure.store.store import Store

OpenMemory = Callable[..., Memory]
OpenHost = Callable[..., tuple[FakeHost, Memory]]


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


@pytest.fixture
def open_host(open_memory: OpenMemory) -> OpenHost:
    """Start hosts with a memory."""

    def open_(memory: Memory | None = None, **arguments: Any) -> tuple[FakeHost, Memory]:
        memory = memory or open_memory()
        runner = HookRunner()
        runner.register(hookimpls_for(memory=memory))
        host = FakeHost(runner, **arguments)
        host.start()
        return host, memory

    return open_
