"""What it costs to start: the import, the help, a search, the handshake with an MCP client.

python -m bench startup --json

Each is measured in a process of its own, several times; medians are given. CPU seconds are those of the whole child
process, the interpreter's own start included, except for the import, which is measured inside. The handshake is the
time on the clock from starting the server to its answer to `initialize`; beside other work on the machine it grows,
so the CPU seconds of a server that does nothing else stand beside it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN

import click

from bench.measuring import cpu
from bench.program import program

IMPORT = "import time\nbefore = time.process_time()\nimport perdure\nprint(time.process_time() - before)"
PERDURE = (sys.executable, "-m", "perdure")
FACT = "The staging database is called heron."
QUESTION = "What is the staging database called?"
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}


@click.option("--repeats", default=7, help="Times that each is measured.")
def bench(repeats: int) -> dict[str, float]:
    """Measure each start `repeats` times; return medians in seconds."""
    with tempfile.TemporaryDirectory(prefix="perdure-startup-") as folder:
        home = str(Path(folder) / "home")
        _run([*PERDURE, "store", FACT, "--home", home])
        measures: tuple[Callable[[], dict[str, float]], ...] = (
            lambda: {"import_cpu_s": float(_run([sys.executable, "-c", IMPORT]))},
            lambda: {"help_cpu_s": _cpu([*PERDURE, "--help"])},
            lambda: {"read_cpu_s": _cpu([*PERDURE, "list", "--home", home])},
            lambda: {"search_cpu_s": _cpu([*PERDURE, "recall", QUESTION, "--home", home])},
            lambda: _handshake([*PERDURE, "mcp", "--home", home]),
        )
        return {name: round(seconds, 3) for measure in measures for name, seconds in _medians(measure, repeats)}


def _medians(measure: Callable[[], dict[str, float]], repeats: int) -> list[tuple[str, float]]:
    if repeats > 1:
        measure()  # the first one compiles, and warms the disk's cache
    rows = [measure() for _ in range(repeats)]
    return [(name, statistics.median(row[name] for row in rows)) for name in rows[0]]


def _run(command: Sequence[str]) -> str:
    return subprocess.run(command, env=_environment(), capture_output=True, text=True, check=True).stdout


def _cpu(command: Sequence[str]) -> float:
    """Return the CPU seconds of a command."""
    before = cpu(RUSAGE_CHILDREN)
    _run(command)
    return cpu(RUSAGE_CHILDREN) - before


def _handshake(command: Sequence[str]) -> dict[str, float]:
    """Return the seconds until a server has answered, and the CPU seconds of its whole life."""
    spent, clock = cpu(RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(
        command, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        server.stdin.write(json.dumps(INITIALIZE) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        seconds = time.perf_counter() - clock
        server.stdin.close()
    if answer["result"]["serverInfo"]["name"] != "perdure":
        raise RuntimeError("another server answered")
    return {"mcp_handshake_s": seconds, "mcp_cpu_s": cpu(RUSAGE_CHILDREN) - spent}


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}


main = program(bench)
