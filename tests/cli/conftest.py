"""The data folder of the commands."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder that nothing has made yet, and that the settings name, with the deterministic embedder."""
    monkeypatch.setenv("PERDURE_HOME", str(home))
    monkeypatch.setenv("PERDURE_EMBEDDER", "hash")
    return home


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A data folder that nothing has made yet, and that a command finds by `--home` alone."""
    return tmp_path / "elsewhere"
