"""Several processes and threads store, recall and forget in one folder at the same time.

python -m bench contend --processes 4 --seconds 60 --json

A change that one process has acknowledged is announced to all others; each looks at once, by id and by recall, and
what it does not see is stale. In the end every change must be there, once, in SQLite and in LanceDB.
"""

from __future__ import annotations

import multiprocessing
import queue
import random
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import click

from bench.crash import ANIMALS, AUTHOR
from bench.kills import FORGOTTEN, LIVE, SUPERSEDED, Story, divergence
from bench.memories import opened
from bench.program import program
from perdure.api.memory import Memory
from perdure.errors import NotFoundError, PerdureError, StoreError
from perdure.hooks.types import Channel
from perdure.store import lifecycle
from perdure.store.fact import Fact
from perdure.store.sql import run

CONTEXT = multiprocessing.get_context("spawn")
THREADS = 8
RIVALS = 8
ROUNDS = 20
PATIENCE = 120.0
SETTINGS: dict[str, Any] = {
    "embedder": "hash", "vector_index": "lance", "recall_deadline_ms": 60_000, "index": {"vectors": 200},
    "timers": False,
}  # fmt: skip
ANNOUNCED = 4
"""Announcements that may wait for a process at once: marker, id, and the state that was acknowledged."""


@dataclass
class Report:
    """What one process did and saw."""

    operations: int = 0
    told: dict[str, str] = field(default_factory=dict)
    looks: int = 0
    stale: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Agent:
    """One process: some threads that change things, the others look at what other processes announce."""

    def __init__(self, home: Path, name: str, mine: Any, others: Sequence[Any]) -> None:
        self._memory = Memory.open(home, **SETTINGS)
        self._memory.ready()
        self._store = self._memory._engine.store
        self._name = name
        self._mine = mine
        self._others = others
        self._lock = threading.Lock()
        self._report = Report()
        self._stop = threading.Event()

    def work(self, seconds: float) -> Report:
        """Work for so long; return what happened."""
        with ThreadPoolExecutor(THREADS) as pool:
            for number in range(THREADS // 2):
                pool.submit(self._guarded, self._write, number)
                pool.submit(self._guarded, self._look, number)
            self._stop.wait(seconds)
            self._stop.set()
        self._memory.settle()
        self._memory.close()
        return self._report

    def _guarded(self, what: Any, number: int) -> None:
        try:
            what(number)
        except (PerdureError, RuntimeError, OSError) as error:
            self._report.errors.append(f"{self._name} {type(error).__name__}: {error}")

    def _write(self, number: int) -> None:
        chance = random.Random(f"{self._name}{number}")
        count = 0
        while not self._stop.is_set():
            count += 1
            marker = f"mk{self._name}{number:x}q{count}"
            fact = self._memory.store(f"The marker {marker} stands for the {chance.choice(ANIMALS)} database.")
            state = LIVE if chance.random() < 0.5 else chance.choice((FORGOTTEN, SUPERSEDED))
            if state == FORGOTTEN:
                with self._store.write(AUTHOR) as tx:
                    lifecycle.forget(tx, fact.id)
            elif state == SUPERSEDED:
                count += 1
                self._replace(fact.id, f"mk{self._name}{number:x}q{count}")
            self._acknowledged(marker, fact.id, state)

    def _replace(self, old: str, marker: str) -> None:
        with self._store.write(AUTHOR) as tx:
            new = lifecycle.update(tx, old, {"text": f"The marker {marker} stands for another database."})
        self._acknowledged(marker, new.id, LIVE)

    def _acknowledged(self, marker: str, fact_id: str, state: str) -> None:
        for other in self._others:
            # One that is behind hears of later changes: a look is worth something right after the change only.
            with suppress(queue.Full):
                other.put_nowait((marker, fact_id, state))
        with self._lock:
            self._report.told[marker] = state
            self._report.operations += 1

    def _look(self, number: int) -> None:
        while not self._stop.is_set():
            try:
                marker, fact_id, state = self._mine.get(timeout=0.1)
            except queue.Empty:
                continue
            recall = self._memory.recall(f"What does the marker {marker} stand for?")
            recalled = recall is not None and fact_id in {item.id for item in recall.items}
            seen = self._seen(fact_id)
            with self._lock:
                self._report.looks += 1
                self._report.operations += 2
                if recalled != (state == LIVE) or seen != state:
                    self._report.stale.append(f"{marker} was {state}, seen as {seen}, recalled: {recalled}")

    def _seen(self, fact_id: str) -> str:
        try:
            fact = self._memory.get(fact_id)
        except NotFoundError:
            return FORGOTTEN
        return SUPERSEDED if fact.superseded_at else LIVE


def agent(home: Path, name: str, mine: Any, others: Sequence[Any], seconds: float, results: Any) -> None:
    """Run one process of the contention."""
    report = Agent(home, name, mine, others).work(seconds)
    results.put(report)
    for each in (mine, *others):
        each.cancel_join_thread()  # what nobody has looked at yet may be dropped


def rival(home: Path, barrier: Barrier, rounds: int, results: Any) -> None:
    """Store the same new id and the same new text as all rivals, at the same moment."""
    errors = []
    with opened(home, **SETTINGS) as memory:
        store = memory._engine.store
        for number in range(rounds):
            barrier.wait(PATIENCE)
            try:
                memory.store(f"The marker mkaq{number} was stored by all rivals at once.")
            except PerdureError as error:
                errors.append(f"same text: {type(error).__name__}: {error}")
            barrier.wait(PATIENCE)
            fact_id = f"{number:08x}-0000-4000-8000-000000000000"
            fact = Fact(f"The marker mkbq{number} has one id.", id=fact_id, channel=Channel.LIBRARY,
                        scope="user", scope_target="owner")  # fmt: skip
            try:
                with store.write(AUTHOR) as tx:
                    tx.add(fact)
            except StoreError:
                # All but one are refused, and by then the fact is there.
                with store.database.read() as connection:
                    if not run(connection, "SELECT 1 FROM facts WHERE id = ?", (fact_id,)):
                        errors.append(f"same id: {fact_id} was refused and is not there")
    results.put(errors)


def together(
    target: Callable[..., None], arguments: Sequence[Sequence[Any]], results: Any, seconds: float
) -> list[Any]:
    """Let processes run at the same time; return the result of each."""
    started = [CONTEXT.Process(target=target, args=(*each, results)) for each in arguments]
    for process in started:
        process.start()
    found = [results.get(timeout=seconds + PATIENCE) for _ in started]
    for process in started:
        process.join()
    return found


def contend(home: Path, processes: int, seconds: float) -> Report:
    """Let processes work on one folder; return their reports as one."""
    boards = [CONTEXT.Queue(ANNOUNCED) for _ in range(processes)]
    orders = [(home, f"{n:x}", boards[n], boards[:n] + boards[n + 1 :], seconds) for n in range(processes)]
    total = Report()
    for report in together(agent, orders, CONTEXT.Queue(), seconds):
        total.operations += report.operations
        total.looks += report.looks
        total.told |= report.told
        total.stale += report.stale
        total.errors += report.errors
    return total


def race(home: Path, rounds: int) -> list[str]:
    """Let rivals store the same things at the same moments; return their errors."""
    orders = [(home, CONTEXT.Barrier(RIVALS), rounds)] * RIVALS
    return [error for errors in together(rival, orders, CONTEXT.Queue(), 0) for error in errors]


def bring_index_up(home: Path) -> bool:
    """Let the worker do what is waiting; return whether it came to an end."""
    with opened(home, **SETTINGS) as memory:
        return memory.admin.sync_index(PATIENCE)


@click.option("--processes", default=4)
@click.option("--seconds", default=60.0)
@click.option("--rounds", default=ROUNDS, help="Moments at which 8 writers store the same.")
def bench(processes: int, seconds: float, rounds: int) -> dict[str, Any]:
    """Contend, race, and compare what is there with what was told."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        began = time.monotonic()
        total = contend(home, processes, seconds)
        took = time.monotonic() - began
        total.errors += race(home, rounds)
        if not bring_index_up(home):
            total.errors.append("the index was not brought up in time")
        for number in range(rounds):
            total.told |= {f"mkaq{number}": LIVE, f"mkbq{number}": LIVE}
        found = Story(home, total.told).compare()
        found.diverged += divergence(home)
    return {
        "processes": processes,
        "threads": THREADS,
        "seconds": round(took, 1),
        "operations": total.operations,
        "looks": total.looks,
        **found.figures(),
        "stale": len(total.stale),
        "errors": len(total.errors),
        "problems": [*found.problems, *total.stale, *total.errors][:20],
    }


main = program(
    bench, failed=lambda found: any(found[key] for key in ("lost", "duplicated", "stale", "errors", "diverged"))
)
