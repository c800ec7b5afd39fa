"""A started `perdure ui`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self


class Ui:
    """A started `perdure ui`."""

    def __init__(self, home: Path, runtime: Path, *arguments: str, browser: str = "", embedder: str = "none") -> None:
        command = [sys.executable, "-I", "-m", "perdure", "ui", "--home", str(home), *arguments]
        environ = os.environ | {"XDG_RUNTIME_DIR": str(runtime), "PERDURE_EMBEDDER": embedder}
        self.origin = ""
        environ |= {"BROWSER": browser} if browser else {}
        self.process = subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )

    def address(self) -> str:
        """Return the address that stands on a line of its own."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("http://"):
                self.origin = line.partition("/enter")[0]
                return line.strip()
        raise AssertionError("no address was printed")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
