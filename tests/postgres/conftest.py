"""One server for all tests here, and a tenant for each."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from perdure import Memory
from tests.postgres.server import Server, running


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running() as started:
        yield started


@pytest.fixture
def tenant() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give all machines the key of one store."""
    monkeypatch.setenv("PERDURE_STORE_KEY", "ab" * 32)


@pytest.fixture
def opened(server: Server, tenant: str, tmp_path: Path) -> Iterator[Callable[..., Memory]]:
    """Return what opens a memory of the tenant on a machine, whose folder is named."""
    with ExitStack() as all_:

        def open_(folder: str = "one", **given: object) -> Memory:
            values = {"store_url": server.url, "store_tenant": tenant, "embedder": "none", "timers": False, **given}
            memory = all_.enter_context(Memory.open(tmp_path / folder, **values))  # type: ignore[arg-type]
            assert memory.settle()  # what is done at a start is done
            return memory

        yield open_
