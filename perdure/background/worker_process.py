"""Starts the worker process when there is work for it, and never leaves one behind."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

KILL_SECONDS = 1.0
"""So long is waited for the end of a worker that was killed."""
NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)
"""On Windows: a host that has no console must not be given the window of one."""
_log = logging.getLogger("perdure.background")


class WorkerProcess:
    """At most one worker of this process, which ends by itself when it is idle or this process is gone.

    The worker's stdin is held open by us, and the system closes it whatever happens to us.
    """

    def __init__(self, module: str, home: Path, settings: Mapping[str, Any]) -> None:
        """Prepare a worker for a data folder."""
        self._module = module
        self._order = json.dumps({"home": str(home), "settings": dict(settings)}).encode() + b"\n"
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        """Whether the worker is at work."""
        return self._process is not None and self._process.poll() is None

    def ensure(self) -> None:
        """Start the worker unless it is at work. If it cannot be started, the next call tries again."""
        with self._lock:
            if self.running:
                return
            self._reap()
            try:
                self._start()
            except OSError as error:
                # Too many processes or open files, or it ended at once: that is no reason for the caller to end too.
                _log.warning("the worker cannot be started: %s", error.strerror)

    def tidy(self) -> None:
        """Let go of a worker that has ended by itself: the system keeps one as a zombie until it is waited for."""
        with self._lock:
            if self._process is not None and not self.running:
                self._reap()

    def ask(self) -> None:
        """Ask the worker to end, by the end of its stdin. Returns at once."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()

    def abandon(self) -> None:
        """Let go of the worker in a forked child: it is the parent's, and ends with it."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self, patience: float = 2.0) -> None:
        """End the worker: it is asked to, then killed, which it can stand at any moment."""
        self.ask()
        with self._lock:
            if self._process is None:
                return
            deadline = time.monotonic() + patience
            while self._process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            self._reap()

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", self._module],
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            bufsize=0,
            creationflags=NO_WINDOW,
        )
        if self._process.stdin is not None:
            self._process.stdin.write(self._order)

    def _reap(self) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.kill()
        # One that a slow disk holds even now ends when the disk lets go of it; the host need not wait for that.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(KILL_SECONDS)
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None


def _environment() -> dict[str, str]:
    # The folder that the agent works in is not searched for modules (-P): code of others may lie there.
    # Where perdure itself lies is named instead, as it need not be installed.
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
