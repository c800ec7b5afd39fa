"""What a host spends in the background: CPU seconds per hour of its threads and of its worker.

python -m bench background --json

Two stretches in real time over a store of FACTS memories, with the default model: one in which nothing happens, and
one with a turn every PAUSE seconds that says something new. What turns themselves take is left out, as is opening; so
are the timers, whose jobs run once a day.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN
from typing import Any

import click

from bench.measuring import cpu
from bench.memories import host_of, opened
from bench.program import program
from perdure.api.memory import Memory

HOUR = 3600.0
PATIENCE = 120.0
THINGS = ["kayak", "lantern", "ledger", "tripod", "samovar", "anvil", "beehive", "compass", "dulcimer", "easel"]
PLACES = ["attic", "barn", "cellar", "garage", "hallway", "kitchen", "loft", "office", "porch", "studio"]


@click.option("--facts", default=500, type=click.IntRange(min=1), help="Memories in the store.")
@click.option("--minutes", default=5.0, help="Length of each of the two stretches.")
@click.option("--pause", default=60.0, help="Seconds between two turns.")
def bench(facts: int, minutes: float, pause: float, embedder: str | None = None) -> dict[str, Any]:
    """Measure two stretches of so many minutes, with a turn every `pause` seconds in the second; return figures."""
    settings: dict[str, Any] = {"timers": False} | ({"embedder": embedder} if embedder else {})
    with tempfile.TemporaryDirectory(prefix="perdure-background-") as folder:
        home = Path(folder) / "home"
        with opened(home, **settings) as memory:
            for number in range(facts):
                memory.store(_said(number))
            memory.admin.sync_index(PATIENCE)
        idle = _stretch(home, settings, 60 * minutes, None, facts)
        talking = _stretch(home, settings, 60 * minutes, pause, facts)
    return {
        "facts": facts, "minutes": minutes, "turns_per_hour": round(HOUR / pause),
        **{f"idle_{name}": value for name, value in idle.items()},
        **{f"talking_{name}": value for name, value in talking.items()},
    }  # fmt: skip


def _stretch(home: Path, settings: dict[str, Any], seconds: float, pause: float | None, first: int) -> dict[str, float]:
    """Return the CPU seconds per hour of threads and of the worker in a stretch with a turn every `pause` seconds."""
    memory = Memory.open(home, **settings)
    host = host_of(memory)
    memory.ready()
    memory.settle(PATIENCE)
    memory.admin.sync_index(PATIENCE)
    began, own, worker, turns = time.monotonic(), cpu(), cpu(RUSAGE_CHILDREN), 0.0
    number = first
    while (now := time.monotonic() - began) < seconds:
        if pause is None:
            time.sleep(seconds - now)
            continue
        before = cpu()
        host.turn(f"Good morning. {_said(number)}")
        turns += cpu() - before
        number += 1
        time.sleep(min(pause, max(0.0, began + seconds - time.monotonic())))
    share = HOUR / (time.monotonic() - began)
    spent = cpu() - own - turns
    # The worker's time is told when it has ended.
    memory.close()
    return {
        "threads_cpu_s_per_hour": round(share * spent, 1),
        "worker_cpu_s_per_hour": round(share * (cpu(RUSAGE_CHILDREN) - worker), 1),
    }


def _said(number: int) -> str:
    return f"I keep the {THINGS[number % 10]} {1000 + 7 * number} in the {PLACES[number // 10 % 10]}."


main = program(bench)
