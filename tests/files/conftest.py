"""A folder of notes and conversations, with its index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.files.workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    """One that nothing was written in."""
    with closing(Workshop(tmp_path)) as opened:
        yield opened
