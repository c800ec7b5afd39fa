"""Ends a host's process again and again while every background job is busy, and looks at what is left.

python -m bench.exits --times 100 --json

The end comes by itself, by SIGTERM, by SIGINT or by SIGKILL, at random moments. After each there must be no worker
left, and every turn that was acknowledged must be a fact once the store is opened again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from perdure.api.memory import Memory

FAST = 0.0002
"""Hours between two runs of a job: under a second."""
SETTINGS: dict[str, Any] = {
    "embedder": "hash", "vector_index": "lance", "index_batch": 5, "index_seconds": 0.5, "timers": True, "watch": False,
    "prune_minutes": FAST, "sync_minutes": FAST, "canary_hours": FAST, "classify_hours": FAST, "backup_hours": FAST,
    "optimise_hours": FAST, "reconcile_hours": FAST, "tidy_hours": FAST, "backup_keep": 2,
    "classify_before_write": False, "duplicate_vector": False,
    "capture_session_facts": 100_000, "capture_day_facts": 100_000,
}  # fmt: skip
WAYS = ("itself", "SIGTERM", "SIGINT", "SIGKILL")
LIMIT = 3.0
"""Seconds in which a process is to end."""
LINGER = 5.0
"""Seconds in which its worker is to be gone."""
HANG = 30.0
"""Seconds after which a process counts as hung, and a worker as left behind."""
PER_HOME = 10
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


def bench(times: int, ways: Sequence[str] = WAYS, seed: int = 0) -> dict[str, Any]:
    """End a process `times` times, in each of the ways in turn; return figures by name.

    Args:
        times: how often.
        ways: some of `WAYS`.
        seed: of the random moments.
    """
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
    return {
        "times": times,
        "aborts": len(found.aborts),
        "hangs": found.hangs,
        "late": found.late,
        "lingering": found.lingering,
        "orphans": len(found.orphans),
        "acknowledged": found.acknowledged,
        "lost": len(found.lost),
        "exit_seconds_median": round(found.seconds[len(found.seconds) // 2], 2),
        "exit_seconds_max": round(found.seconds[-1], 2),
        "details": found.aborts[:5] + found.orphans[:5] + found.lost[:5],
    }


def _end(home: Path, run: str, way: str, after: float, found: Found) -> list[str]:
    """Run one process to its end; return the markers of what it acknowledged."""
    code = [sys.executable, "-X", "faulthandler", "-m", "bench.exits_child", str(home), run, json.dumps(SETTINGS)]
    seconds = str(after) if way == "itself" else "60"
    process = subprocess.Popen([*code, seconds], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    heard: list[str] = []
    ends: list[float] = []
    errors: list[str] = []

    def listen() -> None:
        for line in process.stdout or ():
            if line.strip() == "end":
                ends.append(time.monotonic())
            else:
                heard.append(line.strip())

    listeners = [threading.Thread(target=listen), threading.Thread(target=lambda: errors.append(process.stderr.read()))]  # type: ignore[union-attr]
    for listener in listeners:
        listener.start()
    if way != "itself":
        deadline = time.monotonic() + HANG
        while not heard and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(after)
        ends.append(time.monotonic())
        process.send_signal(getattr(signal, way))
    try:
        process.wait(HANG + after)
    except subprocess.TimeoutExpired:
        found.hangs += 1
        process.kill()
        process.wait()
    ended = time.monotonic()
    for listener in listeners:
        listener.join(HANG)
    process.stdout.close()
    process.stderr.close()
    _judge(home, way, process.returncode, "".join(errors), found)
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
    while workers(home) and time.monotonic() < ended + HANG:
        time.sleep(0.05)
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


@click.command()
@click.option("--times", default=100, show_default=True, help="How often a process is ended.")
@click.option("--way", type=click.Choice(WAYS), multiple=True, help="Only in this way.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(times: int, way: tuple[str, ...], as_json: bool) -> None:
    """End a host's process again and again, with every background job busy."""
    result = bench(times, way or WAYS)
    click.echo(json.dumps(result, indent=2) if as_json else "\n".join(f"{name}: {result[name]}" for name in result))
    sys.exit(any(result[name] for name in ("aborts", "hangs", "late", "lingering", "orphans", "lost")))


if __name__ == "__main__":
    main()
