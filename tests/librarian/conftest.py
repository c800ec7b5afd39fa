"""A memory that a librarian looks after."""

from __future__ import annotations

import pytest

from perdure.api.memory import Memory
from tests.kit import OpenMemory


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    """A memory of the owner, by words alone, whose files nobody watches."""
    return open_memory(embedder="none", watch=False)
