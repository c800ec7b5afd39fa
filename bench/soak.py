"""A host at a high turn rate, with every background job on a fast timer, for as long as is asked.

python -m bench soak --minutes 10 --json

Seven tenths of the time are one life of a host: after a warming up its memory, threads and open files must stay as
they are, and no job and no turn may fail. In the rest the same store is opened again and again, by turns with the jobs
and without any timer, and the recalls of both are compared.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from bench.exits import HANG, SETTINGS, workers
from bench.measuring import until
from bench.memories import host_of
from bench.program import program
from perdure.api.memory import Memory

LIFE_SHARE = 0.7
WARM_SHARE = 0.3
"""Of the one life: until then the memory may grow."""
PAIRS = 3
"""So often the store is opened with the jobs, and as often without."""
SETTLING = 20
"""Recalls after an opening that do not count."""
FACTS = 500
"""So many different things are said, again and again: the store grows to that and no further."""
FAST: dict[str, Any] = SETTINGS | {
    "jobs": {
        "prune": 0.0008, "files": 0.0008, "canary": 0.001, "classify": 0.001, "backup": 0.003, "optimise": 0.002,
        "reconcile": 0.003, "tidy": 0.002, "calibrate": 0.003,
    },
    "keep": SETTINGS["keep"] | {"receipt_days": 0.0003, "conversation_days": 0.0003, "expired_days": 0.0003},
}  # fmt: skip
"""Three to eleven seconds between two runs. What is kept for a time is kept for half a minute, so that the store comes
to a size at which it stays; but versions of the LanceDB table younger than an hour stay as well."""
LATE = "LanceDB has not answered within"
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Errors(logging.Handler):
    """Keeps what is logged as a warning or worse; apart, how often the exact search answered for a late LanceDB."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []
        self.late = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        line = record.getMessage()
        # A busy machine makes LanceDB late; that the exact search answers then is what it is there for.
        if LATE in line:
            self.late += 1
        else:
            self.said.append(line)


@click.option("--minutes", default=10.0, help="How long.")
def bench(minutes: float, pause: float = 0.01) -> dict[str, Any]:
    """Play turns with a pause between them for so long, warming up included; return figures by name."""
    errors = Errors()
    logging.getLogger("perdure").addHandler(errors)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _soak(Path(folder), 60 * minutes, pause, errors)
    finally:
        logging.getLogger("perdure").removeHandler(errors)


def _soak(home: Path, seconds: float, pause: float, errors: Errors) -> dict[str, Any]:
    life = Life(home, FAST)
    warm = life.play(LIFE_SHARE * WARM_SHARE * seconds, pause)
    rss, threads, fds, disk = _held(home)
    times = life.play(LIFE_SHARE * (1 - WARM_SHARE) * seconds, pause)
    held = _held(home)
    jobs = life.memory.admin.jobs()
    failed = [f"{name}: {state.result}" for name, state in jobs.items() if state and state.failures]
    idle = [name for name, state in jobs.items() if state is None or state.last_run is None]
    life.end()
    compared: dict[bool, list[float]] = {True: [], False: []}
    for busy in [False, True] * PAIRS:
        short = Life(home, FAST | {"timers": busy})
        compared[busy] += short.play((1 - LIFE_SHARE) * seconds / (2 * PAIRS), pause)[SETTLING:]
        short.end()
    until(lambda: not workers(home), HANG)
    with_jobs, without = _p95(compared[True]), _p95(compared[False])
    return {
        "turns": len(warm) + len(times) + sum(map(len, compared.values())),
        "rss_mb": round(held[0] / 1e6, 1),
        "rss_growth": round(held[0] / rss - 1, 3),
        "errors": len(errors.said) + len(failed),
        "threads_delta": held[1] - threads,
        "fds_delta": held[2] - fds,
        "disk_mb": round(held[3] / 1e6, 1),
        "disk_growth": round(held[3] / disk - 1, 3),
        "recall_p95_ratio": round(with_jobs / without, 2) if with_jobs and without else None,
        "recall_p95_ms": round(with_jobs * 1000, 1),
        "recall_p95_quiet_ms": round(without * 1000, 1),
        "orphans": len(workers(home)),
        "late_vector_searches": errors.late,
        "jobs_never_run": idle,
        "details": [*dict.fromkeys(errors.said + failed)][:5],
    }


class Life:
    """A host with a memory, from its start to its end."""

    def __init__(self, home: Path, settings: Mapping[str, Any]) -> None:
        """Open the store and start the host."""
        self.memory = Memory.open(home, **settings)
        self.memory.ready()
        self._host = host_of(self.memory)
        self._turns = 0

    def play(self, seconds: float, pause: float) -> list[float]:
        """Play turns for so long, and let what they left be done; return the seconds that each recall took."""
        times = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            what = _word(self._turns % FACTS)
            turn = self._host.turn(f"Remember that the heron {what} nests at the lake. Where does it nest?")
            times.append(turn.recall_seconds)
            self._turns += 1
            if self._turns % 50 == 0:
                self._host.new_session(f"session-{self._turns}")
            time.sleep(pause)
        self.memory.settle(30.0)
        return times

    def end(self) -> None:
        """Stop the host."""
        self._host.stop()
        self.memory.close()


def _held(home: Path) -> tuple[int, int, int, int]:
    """Return resident bytes, threads, open files and bytes on disk (Linux; elsewhere bytes and files are 1)."""
    disk = 0
    for file in home.rglob("*"):
        with suppress(FileNotFoundError):
            disk += file.lstat().st_size
    try:
        resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE
        return resident, threading.active_count(), len(list(Path("/proc/self/fd").iterdir())), disk
    except OSError:
        return 1, threading.active_count(), 1, 1


def _p95(times: Sequence[float]) -> float:
    """Return the 95th percentile; 0 if a run was too short for any."""
    return sorted(times)[int(0.95 * (len(times) - 1))] if times else 0.0


def _word(number: int) -> str:
    return "h" + "".join(chr(ord("a") + int(digit)) for digit in f"{number:04d}")


main = program(bench, failed=lambda result: result["errors"] or result["orphans"])
