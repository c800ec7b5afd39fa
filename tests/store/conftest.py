"""Memories that go by words alone."""

from __future__ import annotations

from functools import partial

import pytest

from perdure.api.memory import Memory
from tests.kit import OpenMemory


@pytest.fixture
def open_memory(open_memory: OpenMemory) -> OpenMemory:
    """Open memories on one folder: by words alone, unless an embedder is named."""
    return partial(open_memory, embedder="none")


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    """A memory of the owner, by words alone."""
    return open_memory()
