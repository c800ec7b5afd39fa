"""A user's machine, to connect hosts on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.machine import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with the user's own folders, which nothing has been connected on."""
    return Machine(tmp_path / "user", monkeypatch)
