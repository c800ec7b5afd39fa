"""What holds for every test: nothing of the user's own configuration is read or written."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# A shell that runs the tests in the background has SIGINT ignored; processes that a test interrupts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's settings, folders and installed extensions, also from child processes."""
    for name in [name for name in os.environ if name.startswith("PERDURE_")]:
        monkeypatch.delenv(name)
    for name in ("HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PERDURE_LOAD_EXTENSIONS", "0")
    # A test that wants the timers says so: they would write beside what is tested.
    monkeypatch.setenv("PERDURE_TIMERS", "false")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg-config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg-cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg-data"))
