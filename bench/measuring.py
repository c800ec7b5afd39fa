"""What several benches measure with: times, and processes of their own. It imports nothing that they would weigh."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[1]
Result = TypeVar("Result")
_PRELUDE = """
import json, sys
def rss():
    with open("/proc/self/status") as status:
        return [int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS")][0]
"""


def share(part: float, of: float) -> float:
    """Return a share of 0 to 1; of nothing it is all."""
    return round(part / of, 3) if of else 1.0


@dataclass
class Counts:
    """What came up for many prompts, beside what should have."""

    right: int = 0
    brought: int = 0
    wanted: int = 0
    quiet: int = 0
    idle: int = 0

    def add(self, got: set[str], wanted: set[str]) -> None:
        """Count one prompt."""
        self.right += len(got & wanted)
        self.brought += len(got)
        self.wanted += len(wanted)
        self.idle += not wanted
        self.quiet += not wanted and not got

    def figures(self) -> dict[str, float]:
        """Return precision, recall and silence, 0 to 1."""
        return {
            "precision": share(self.right, self.brought),
            "recall": share(self.right, self.wanted),
            "silence": share(self.quiet, self.idle),
        }


def until(done: Callable[[], object], seconds: float) -> bool:
    """Wait for something for so long at most; return whether it came."""
    deadline = time.monotonic() + seconds
    while not (came := bool(done())) and time.monotonic() < deadline:
        time.sleep(0.05)
    return came


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return a result and the seconds that it took."""
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def p50(seconds: Sequence[float], digits: int = 2) -> float:
    """Return the median of seconds, in milliseconds."""
    return round(statistics.median(seconds) * 1000, digits)


def p95(seconds: Sequence[float], digits: int = 2) -> float:
    """Return the 95th percentile of seconds, in milliseconds."""
    return round(sorted(seconds)[int(0.95 * len(seconds))] * 1000, digits)


def script(source: str, *arguments: object) -> Any:
    """Run a script in a process of its own; return the JSON that it prints. `rss()` are its resident megabytes."""
    command = [sys.executable, "-c", _PRELUDE + source, *map(str, arguments)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


def tells_rss() -> bool:
    """Return whether a process can be asked here for its memory."""
    return Path("/proc/self/status").exists()


def cpu(whose: int = resource.RUSAGE_SELF) -> float:
    """Return the CPU seconds of this process, or of the children that have ended."""
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime
