"""What several benches measure with: memories in folders of their own, times, processes and what they take."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from perdure.api.memory import Memory
from perdure.store.fact import Fact
from perdure.store.listing import MAX_LIMIT, Filter
from perdure.store.scope import Scope

ROOT = Path(__file__).parents[1]
Result = TypeVar("Result")
_PRELUDE = """
import json, sys
def rss():
    with open("/proc/self/status") as status:
        return [int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS")][0]
"""


@contextmanager
def opened(home: Path | str | None = None, /, **settings: Any) -> Iterator[Memory]:
    """Open a memory, ready to embed; without a folder, in one that goes with it."""
    with tempfile.TemporaryDirectory() as folder, Memory.open(home or folder, **settings) as memory:
        memory.ready()
        yield memory


def live(memory: Memory, scope: str | None = None) -> Iterator[Fact]:
    """Yield every live memory, or those of a scope."""
    chosen = Filter(scope=Scope.parse(scope) if scope else None)
    for offset in count(0, MAX_LIMIT):
        page = memory.admin.list(chosen, limit=MAX_LIMIT, offset=offset)
        yield from page
        if len(page) < MAX_LIMIT:
            return


def changed(memory: Memory, scope: str, known: Sequence[str], new: str) -> tuple[list[str], set[str], set[str]]:
    """Store what was known and then a new statement; return the ids of the known ones, of those gone, of those come."""
    ids = [memory.store(text, scope=scope).id for text in known]
    before = {fact.id for fact in live(memory, scope)}
    memory.store(new, scope=scope)
    after = {fact.id for fact in live(memory, scope)}
    return ids, before - after, after - before


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
