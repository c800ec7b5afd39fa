"""The background jobs of a store: when each is due; what those of the worker do, it brings itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from perdure.background.scheduler import Job, Pause, Scheduler
from perdure.engine.settings import Settings

MINUTE = 60.0
HOUR = 3_600.0
DAY = 86_400.0
LOOK = 0.05
_MINUTES = {"classify": 5, "backup": 1, "export": 1, "optimise": 2, "calibrate": 5, "reconcile": 10, "tidy": 15}
"""The jobs of the worker, with the minutes after a host's start before they first run."""


def worker_jobs(settings: Settings, works: Mapping[str, Callable[[Pause], str]] | None = None) -> list[Job]:
    """Return the jobs that run in the worker process; `works`: what each does, None in a host, which only plans."""
    return [
        Job(name, getattr(settings.jobs, name) * HOUR, minutes * MINUTE, works[name] if works else _elsewhere, True)
        for name, minutes in _MINUTES.items()
    ]


def run_and_wait(timers: Scheduler, name: str, timeout: float) -> str:
    """Run a job now, wherever it belongs, and wait up to `timeout` seconds; return one line about it."""
    said = timers.run(name)
    deadline = time.monotonic() + timeout
    while (state := timers.states().get(name)) is not None and state.state != "waiting":
        if time.monotonic() > deadline:
            return f"{said}, which has not finished it in {timeout:.0f} s"
        timers.remind()
        time.sleep(LOOK)
    return (state.result if state else None) or said


def _elsewhere(pause: Pause) -> str:
    return "only the worker runs this"
