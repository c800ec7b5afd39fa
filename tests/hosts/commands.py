"""A data folder whose helper is a real process, and the hooks that a host would run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.hooks import HELPER, end, processes
from perdure.hosts.command.dialects import DIALECTS

SECRET = "SOME_API_KEY"
PATIENT = (
    "import sys; from perdure.service import client; client.SECONDS = client.PATIENCE = 50; client.main(sys.argv[1:])"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # A socket's path has room for a hundred characters.
    with tempfile.TemporaryDirectory(prefix="p", dir="/tmp") as folder:
        monkeypatch.delenv("PERDURE_HELPER")
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setenv("PERDURE_EMBEDDER", "hash")
        monkeypatch.setenv(SECRET, "not-for-a-helper")
        home = tmp_path / "memory"
        yield home
        end(home)


def helpers(home: Path) -> list[int]:
    """Return the ids of the helpers of a data folder."""
    return processes(home, HELPER)


def payload(event: str, session: str, **values: Any) -> bytes:
    return json.dumps({
        "session_id": session, "cwd": "/home/me/repo",
        "hook_event_name": DIALECTS["claude-code"].names[event], **values,
    }).encode()  # fmt: skip


def hook(home: Path, event: str, data: bytes, *, patient: bool = False, **more: Any) -> bytes:
    """Run a hook as the host does; a patient one waits for its answer, however busy the machine is."""
    way = ["-c", PATIENT] if patient else ["-m", "perdure", "hook"]
    command = [sys.executable, "-I", *way, event, "--host", "claude-code", "--home", str(home)]
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True, timeout=60, **more)
    said: bytes = done.stdout
    return said
