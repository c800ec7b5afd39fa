"""Ends a host's process again and again while every background job is busy, and looks at what is left.

python -m bench exits --times 100 --json

The end comes by itself, by SIGTERM, by SIGINT or by SIGKILL, at random moments. After each there must be no worker
left, and every turn that was acknowledged must be a fact once the store is opened again.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import click

from bench.kills import Child
from bench.measuring import until
from bench.program import program
from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext

FAST = 0.0002
"""Hours between two runs of a job: under a second."""
SETTINGS: dict[str, Any] = {
    "embedder": "hash", "vector_index": "lance", "index": {"vectors": 5, "seconds": 0.5}, "timers": True,
    "watch": False,
    "jobs": dict.fromkeys(["prune", "files", "canary", "classify", "backup", "optimise", "reconcile", "tidy"], FAST),
    "keep": {"copies": 2}, "compare": {"vector": 0, "classify": False},
    "capture_limits": {"session": 100_000, "day": 100_000},
}  # fmt: skip
WAYS = ("itself", "SIGTERM", "SIGINT", "SIGKILL")
LIMIT = 3.0
"""Seconds in which a process is to end."""
LINGER = 5.0
"""Seconds in which its worker is to be gone."""
HANG = 30.0
"""Seconds after which a process counts as hung."""
LEFT = 120.0
"""Seconds after which a worker counts as left behind: beside other work its low priority leaves it a tenth of a core,
and an import that holds the interpreter's lock is not cut short."""
LONGEST = 60.0
"""Seconds after which a process ends by itself, whatever it was told."""
PER_HOME = 10
WRONG = ("aborts", "hangs", "late", "lingering", "orphans", "lost")
_EXPECTED = {"itself": 0, "SIGTERM": 0, "SIGINT": (130, -signal.SIGINT, 1), "SIGKILL": -signal.SIGKILL}


@dataclass
class Found:
    """What went wrong, and how long the ends took."""

    aborts: list[str] = field(default_factory=list)
    hangs: int = 0
    late: int = 0
    lingering: int = 0
    orphans: list[str] = field(default_factory=list)
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def marker(run: str, number: int) -> str:
    """Return a word that stands for a turn: letters only, so that nothing takes it for a secret.

    The last one keeps two words from being forms of one.
    """
    return "m" + "".join(chr(ord("a") + int(digit)) for digit in f"{run}{number:05d}") + "x"


def _stop(signum: int, frame: object) -> NoReturn:
    raise SystemExit(0)


def host(home: str, run: str, seconds: float) -> None:
    """Play turns for so many seconds without a pause, then leave the rest to the end of the interpreter.

    Prints the marker of each turn that was acknowledged, and "end".
    """
    # As a host does that wants to end tidily. SIGINT is put back in case a shell has it ignored.
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    memory = Memory.open(home, **SETTINGS)
    end = time.monotonic() + seconds
    messages: list[dict[str, str]] = []
    try:
        for number in count(1):
            if time.monotonic() >= end:
                break
            word = marker(run, number)
            context = TurnContext(session_id=run, turn_id=word, host="bench")
            memory.turns.before(f"Where does the heron {word} nest?", context)
            messages = [
                *messages[-4:],
                {"role": "user", "content": f"Remember that the heron {word} nests at the lake."},
            ]
            if memory.turns.after(tuple(messages), True, context):
                print(word, flush=True)
    finally:
        print("end", flush=True)


@click.option("--times", default=100, help="How often a process is ended.")
@click.option("--way", "ways", type=click.Choice(WAYS), multiple=True, default=WAYS, help="Only in this way.")
def bench(times: int, ways: Sequence[str] = WAYS, seed: int = 0) -> dict[str, Any]:
    """End a process `times` times, in each of the ways in turn, at random moments; return figures by name."""
    chance = random.Random(seed)
    found = Found()
    with tempfile.TemporaryDirectory() as folder:
        home, told = Path(folder) / "0", list[str]()
        for number in range(times):
            if number % PER_HOME == 0:
                _check(home, told, found)
                home, told = Path(folder) / str(number), []
            told += _end(home, f"{number:04d}", ways[number % len(ways)], 1.5 + 2.5 * chance.random(), found)
        _check(home, told, found)
    found.seconds.sort()
    counts = {name: len(value) if isinstance(value, list) else value for name, value in vars(found).items()}
    return {
        "times": times,
        **{name: counts[name] for name in (*WRONG, "acknowledged")},
        "exit_seconds_median": round(found.seconds[len(found.seconds) // 2], 2),
        "exit_seconds_max": round(found.seconds[-1], 2),
        "details": found.aborts[:5] + found.orphans[:5] + found.lost[:5],
    }


def _end(home: Path, run: str, way: str, after: float, found: Found) -> list[str]:
    """Run one process to its end; return the markers of what it acknowledged."""
    heard: list[str] = []
    ends: list[float] = []

    def hear(line: str) -> bool:
        if line == "end":
            ends.append(time.monotonic())
            return False
        heard.append(line)
        return True

    with tempfile.TemporaryFile("w+") as errors:
        seconds = after if way == "itself" else LONGEST
        child = Child(host, home, run, seconds, hear=hear, stderr=errors, options=("-X", "faulthandler"))
        if way != "itself":
            child.begun.wait(HANG)
            time.sleep(after)
            ends.append(time.monotonic())
            child.process.send_signal(getattr(signal, way))
        try:
            code = child.wait(HANG + after)
        except subprocess.TimeoutExpired:
            found.hangs += 1
            code = child.kill()
        ended = time.monotonic()
        errors.seek(0)
        _judge(home, way, code, errors.read(), found)
    took = ended - min(ends, default=ended)
    found.seconds.append(took)
    found.late += took > LIMIT
    found.acknowledged += len(heard)
    return heard


def _judge(home: Path, way: str, code: int, errors: str, found: Found) -> None:
    expected = _EXPECTED[way]
    fine = code in expected if isinstance(expected, tuple) else code == expected
    if not fine or "Fatal Python error" in errors or ("Traceback" in errors and way != "SIGINT"):
        found.aborts.append(f"{way}: {code} {errors[-300:]}")
    ended = time.monotonic()
    until(lambda: not workers(home), LEFT)
    found.lingering += time.monotonic() > ended + LINGER
    for pid in workers(home):
        found.orphans.append(f"orphan after {way}: {_doing(pid)}")
        os.kill(pid, signal.SIGKILL)


def _doing(pid: int) -> str:
    """Return what a process is, and the state of each of its threads, as far as the system tells."""
    with suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        tasks = [
            (task / "stat").read_text().rsplit(")", 1)[1].split()[0] for task in Path(f"/proc/{pid}/task").iterdir()
        ]
        return f"{command[:200]} threads {''.join(tasks)}"
    return "gone meanwhile"


def workers(home: Path) -> list[int]:
    """Return the ids of the processes that hold a file of a data folder open (Linux; elsewhere none is seen)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            targets = [str(link.readlink()) for link in folder.iterdir()]
        except OSError:
            continue
        if int(folder.parent.name) != os.getpid() and any(target.startswith(f"{home}/") for target in targets):
            found.append(int(folder.parent.name))
    return found


def _check(home: Path, told: Sequence[str], found: Found) -> None:
    """Open the folder again and look for what was acknowledged."""
    if not told:
        return
    with Memory.open(home, embedder="none", timers=False) as memory:
        memory.settle(HANG)
        with memory._engine.store.database.read() as connection:
            texts = " ".join(row[0] for row in connection.execute("SELECT text FROM facts"))
        found.lost += [word for word in told if word not in texts]
        found.aborts += [f"damage: {finding.what}" for finding in memory.admin.verify() if not finding.fixable]


main = program(bench, failed=lambda found: any(found[name] for name in WRONG))
