"""Stops a server as a power cut does, and kills processes, while others write; then compares what they were told.

python -m bench outage --stops 30 --kills 30 --corrections 1000 --json

Each process is a machine of its own, with its own folder. It tells memories and turns one after the other, and says
which ones were acknowledged. In the end all must be there, once, as they were sealed, each with its vector. Then
eight processes correct one slot all at once.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import click

from bench.kills import Child
from bench.memories import say
from bench.program import program
from perdure.api.memory import Memory
from perdure.errors import StoreError, StoreUnavailableError
from perdure.index.missing import without_vector
from perdure.store.sql import run
from tests.postgres.server import Server, running

SETTINGS: dict[str, Any] = {"embedder": "hash", "timers": False, "capture_limits": {"day": 1_000_000}}
WRITERS = 4
CORRECTORS = 8
PATIENCE = 120.0
PAUSE = 0.1
"""Seconds between two things that a writer says: turns are captured more slowly than they are acknowledged."""
SEED = 7


class Writer:
    """A process that writes, with the same folder each time it is started; it is killed alone."""

    def __init__(self, home: Path, url: str, number: int) -> None:
        self.acknowledged: list[str] = []
        self.begun: list[str] = []
        self._home, self._url, self._number = home, url, number
        self._starts = 0
        self.start()

    def start(self) -> None:
        """Start it."""
        self._starts += 1
        name = f"{self._number}x{self._starts}"
        self._child = Child(write, self._home, self._url, name, hear=self._heard, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        """Kill it, and wait until all that it had said is heard."""
        self._child.kill()

    def _heard(self, line: str) -> bool:
        what, _, marker = line.partition(" ")
        (self.acknowledged if what == "done" else self.begun).append(marker)
        return what == "done"


def write(home: str, url: str, name: str) -> None:
    """Tell memories and turns until killed."""
    with opened(home, url) as memory:
        memory.ready()
        for number in count(1):
            marker = f"m{name}n{number}"
            text = f"The database of project {marker} is called heron {marker}."
            print("begun", marker, flush=True)
            with suppress(StoreError):
                if number % 2:
                    memory.store(text)
                    print("done", marker, flush=True)
                elif say(memory, text, marker):
                    print("done", marker, flush=True)
            time.sleep(PAUSE)


def correct(home: str, url: str, name: int, corrections: int) -> None:
    """Correct one slot so many times."""
    with opened(home, url) as memory:
        memory.ready()
        for value in range(10_000 * (name + 1), 10_000 * (name + 1) + corrections):
            memory.store(f"The port is {value}.", entity="server", key="port", value=str(value))


def opened(home: str, url: str) -> Memory:
    """Open the memory; a server that is just away is asked again, as hosts do."""
    while True:
        try:
            return Memory.open(home, store_url=url, **SETTINGS)
        except StoreUnavailableError:
            time.sleep(0.2)


def cut_off(server: Server, writers: Sequence[Writer], stops: int, kills: int) -> None:
    """Stop the server and kill writers, at random moments."""
    chance = random.Random(SEED)
    events = ["stop"] * stops + ["kill"] * kills
    chance.shuffle(events)
    for event in events:
        time.sleep(chance.uniform(0.5, 2.0))
        if event == "stop":
            server.stop("immediate")
            time.sleep(chance.uniform(0.1, 1.5))
            server.start()
        else:
            writer = chance.choice(writers)
            writer.kill()
            writer.start()


def checked(homes: Sequence[Path], url: str, writers: Sequence[Writer]) -> dict[str, int]:
    """Bring in what waits in the folders, and compare."""
    for home in homes:
        with Memory.open(home, store_url=url, **SETTINGS) as memory:
            _drain(memory)
    with Memory.open(homes[0], store_url=url, **SETTINGS) as memory:
        memory.ready()
        space = memory._engine.store.space()
        assert space is not None
        until = time.monotonic() + PATIENCE
        while without_vector(memory._engine.store, space.id, 1) and time.monotonic() < until:
            memory._engine.start_worker()
            time.sleep(0.2)
        with memory._engine.store.database.read() as connection:
            rows = run(
                connection,
                "SELECT f.text, v.fact_id IS NOT NULL FROM facts f LEFT JOIN vectors v ON v.fact_id = f.id"
                " WHERE f.superseded_at IS NULL AND f.forgotten_at IS NULL AND f.text LIKE '%heron%'",
            )
        damaged = len(memory.admin.verify())
    found = Counter(word.rstrip(".") for text, _ in rows for word in text.split()[-1:])
    acknowledged = [marker for writer in writers for marker in writer.acknowledged]
    known = {marker for writer in writers for marker in writer.begun}
    return {
        "acknowledged": len(acknowledged),
        "lost": sum(not found[marker] for marker in acknowledged),
        "doubled": sum(count > 1 for count in found.values()),
        "diverged": damaged + sum(not vector for _, vector in rows) + sum(marker not in known for marker in found),
    }


def _drain(memory: Memory) -> None:
    """Wait until all turns of a machine are captured, or none was for a while."""
    left, since = -1, time.monotonic()
    while now := len(memory._engine.store.waiting()):
        if now != left:
            left, since = now, time.monotonic()
        elif time.monotonic() - since > PATIENCE:
            return
        time.sleep(0.2)


def corrected(folder: Path, key: bytes, url: str, corrections: int) -> dict[str, int]:
    """Have several processes correct one slot at once, and count what is current then."""
    homes = [_home(folder / f"corrector-{number}", key) for number in range(CORRECTORS)]
    children = [Child(correct, home, url, at, corrections // CORRECTORS) for at, home in enumerate(homes)]
    failed = sum(child.wait() != 0 for child in children)
    with Memory.open(homes[0], store_url=url, **SETTINGS) as memory:
        with memory._engine.store.database.read() as connection:
            sql = "SELECT count(*) FILTER (WHERE superseded_at IS NULL), count(*) FROM facts WHERE key = 'port'"
            [(current, versions)] = run(connection, sql)
        damaged = len(memory.admin.verify())
    return {"versions": versions, "current": current, "failed": failed, "damaged": damaged}


@click.option("--stops", default=30)
@click.option("--kills", default=30)
@click.option("--corrections", default=1_000)
def bench(stops: int, kills: int, corrections: int) -> dict[str, Any]:
    """Do all of it."""
    with running() as server, tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        with Memory.open(folder / "first", store_url=server.url, **SETTINGS) as memory:
            memory.ready()
            key = memory._engine.store.key
        homes = [_home(folder / f"writer-{number}", key) for number in range(WRITERS)]
        writers = [Writer(home, server.url, number) for number, home in enumerate(homes)]
        try:
            cut_off(server, writers, stops, kills)
        finally:
            for writer in writers:
                writer.kill()
        return {
            "stops": stops, "kills": kills, **checked(homes, server.url, writers),
            "corrections": corrected(folder, key, server.url, corrections) if corrections else None,
        }  # fmt: skip


def _home(path: Path, key: bytes) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "store.key").write_text(key.hex())
    return path


def _failed(found: Mapping[str, Any]) -> bool:
    slot = found["corrections"] or {"current": 1, "failed": 0, "damaged": 0}
    wrong = [found[name] for name in ("lost", "doubled", "diverged")] + [slot["failed"], slot["damaged"]]
    return any(wrong) or slot["current"] != 1


main = program(bench, failed=_failed)
