"""A host at a high turn rate, with every background job on a fast timer, for as long as is asked.

python -m bench.soak --minutes 10 --json

After a warming up its memory, threads and open files must stay as they are, no job and no turn may fail, and a recall
must not become slower than the growing store explains.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bench.exits import ORPHAN, SETTINGS, workers
from perdure.hooks.fake_host import FakeHost
from perdure.hooks.host import HookRunner
from perdure.plugin.memory import Memory
from perdure.plugin.plugin import hookimpls_for

WARM_SHARE = 0.2
FACTS = 2_000
"""So many different things are said, again and again: the store grows to that and no further."""
FAST: dict[str, Any] = SETTINGS | {
    "prune_minutes": 0.05, "sync_minutes": 0.05, "canary_hours": 0.001, "classify_hours": 0.001,
    "backup_hours": 0.003, "optimise_hours": 0.002, "reconcile_hours": 0.003, "tidy_hours": 0.002,
}  # fmt: skip
"""Three to eleven seconds between two runs."""
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Errors(logging.Handler):
    """Counts what is logged as a warning or worse."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        self.said.append(record.getMessage())


def bench(seconds: float, pause: float = 0.01) -> dict[str, Any]:
    """Play turns for so long; return figures by name.

    Args:
        seconds: how long, warming up included.
        pause: seconds between two turns.
    """
    errors = Errors()
    logging.getLogger("perdure").addHandler(errors)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _soak(Path(folder), seconds, pause, errors)
    finally:
        logging.getLogger("perdure").removeHandler(errors)


def _soak(home: Path, seconds: float, pause: float, errors: Errors) -> dict[str, Any]:
    memory = Memory.open(home, **FAST)
    memory.ready()
    runner = HookRunner()
    runner.register(hookimpls_for(memory=memory))
    host = FakeHost(runner)
    host.start()
    began = time.monotonic()
    turns, times = 0, list[float]()
    warm: tuple[int, int, int, int] | None = None
    while (passed := time.monotonic() - began) < seconds:
        if warm is None and passed > WARM_SHARE * seconds:
            warm = (len(times), *_held())
        what = _word(turns % FACTS)
        times.append(host.turn(f"Remember that the heron {what} nests at the lake. Where does it nest?").recall_seconds)
        turns += 1
        if turns % 50 == 0:
            host.new_session(f"session-{turns}")
        time.sleep(pause)
    memory.settle(30.0)
    assert warm is not None
    rss, threads, fds = _held()
    jobs = memory.admin.jobs()
    failed = [f"{name}: {state.result}" for name, state in jobs.items() if state and state.failures]
    idle = [name for name, state in jobs.items() if state is None or state.last_run is None]
    host.stop()
    memory.close()
    deadline = time.monotonic() + ORPHAN
    while workers(home) and time.monotonic() < deadline:
        time.sleep(0.05)
    measured = times[warm[0] :]
    third = max(1, len(measured) // 3)
    return {
        "turns": turns,
        "rss_growth": round(rss / warm[1] - 1, 3),
        "errors": len(errors.said) + len(failed),
        "threads_delta": threads - warm[2],
        "fds_delta": fds - warm[3],
        "recall_p95_ratio": round(_p95(measured[-third:]) / _p95(measured[:third]), 2),
        "recall_p95_ms": round(_p95(measured) * 1000, 1),
        "orphans": len(workers(home)),
        "jobs_never_run": idle,
        "details": [*dict.fromkeys(errors.said + failed)][:5],
    }


def _held() -> tuple[int, int, int]:
    """Return resident bytes, threads and open files of this process (Linux; elsewhere bytes and files are 1)."""
    try:
        resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE
        return resident, threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    except OSError:
        return 1, threading.active_count(), 1


def _p95(times: Sequence[float]) -> float:
    return sorted(times)[int(0.95 * (len(times) - 1))]


def _word(number: int) -> str:
    return "h" + "".join(chr(ord("a") + int(digit)) for digit in f"{number:04d}")


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="How long.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(minutes: float, as_json: bool) -> None:
    """Play turns at a high rate with every background job on a fast timer."""
    result = bench(minutes * 60)
    click.echo(json.dumps(result, indent=2) if as_json else "\n".join(f"{name}: {result[name]}" for name in result))
    sys.exit(bool(result["errors"] or result["orphans"]))


if __name__ == "__main__":
    main()
