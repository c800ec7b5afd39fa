"""What Windows does otherwise, as far as another system can show it; CONTRIBUTING.md says what nobody has tried."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from perdure.background import worker_process
from perdure.background.worker_process import WorkerProcess
from perdure.service.client import _until_read
from perdure.store.folder import PRESENCE, Presence, alone

FLAG = 0x08000000
"""CREATE_NO_WINDOW."""


@pytest.fixture
def open_files_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file be removed that this process has open."""
    remove = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        handles = Path("/proc/self/fd")
        if any(os.path.realpath(handle) == os.path.realpath(path) for handle in handles.iterdir()):
            raise PermissionError(13, "The process cannot access the file because it is being used", str(path))
        remove(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.usefixtures("open_files_stay")
def test_a_store_is_left_although_no_open_file_can_be_removed(tmp_path: Path) -> None:
    first, second = Presence(tmp_path), Presence(tmp_path)
    with alone(tmp_path) as nobody_else:
        assert not nobody_else
    second.close()
    # Of somebody who died.
    (tmp_path / PRESENCE / "dead.lock").touch()
    with alone(tmp_path) as nobody_else:
        assert nobody_else
    first.close()
    assert {path.name for path in (tmp_path / PRESENCE).iterdir()} <= {"door.lock"}


def test_a_hook_reads_what_it_is_sent_and_waits_no_longer_than_it_may() -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"prompt": "hi"}')
    began = time.monotonic()
    assert _until_read(reading, began + 0.2) == b""
    assert time.monotonic() - began < 2
    os.close(writing)
    reading, writing = os.pipe()
    os.write(writing, b'{"prompt": "hi"}')
    os.close(writing)
    assert _until_read(reading, time.monotonic() + 30) == b'{"prompt": "hi"}'
    os.close(reading)


@pytest.mark.skipif(sys.platform == "win32", reason="other systems refuse the flag, which shows that it is set")
def test_the_worker_gets_no_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "NO_WINDOW", FLAG)
    with pytest.raises(ValueError, match="creationflags"):
        WorkerProcess("perdure.background", tmp_path, {}).ensure()
