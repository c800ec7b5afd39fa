"""Runs the former perdure and this one over one database at the same time, and compares what each finds there.

python -m bench.rollout --former ../perdure-0.1 --operations 1000 --json

The former one is a checkout, or a folder into which a release was installed. It opens the database first; this one
brings the schema up to date while that is at work. Then they take turns: each stores, corrects, forgets and looks for
what the other has written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from tests.postgres.server import Server, installed, running

SETTINGS = {"embedder": "hash", "timers": False}
CHILD = """
import json, sys
from perdure import Memory
home, url, name = sys.argv[1:4]
with Memory.open(home, store_url=url, embedder="hash", timers=False) as memory:
    memory.ready()
    print("open", flush=True)
    for line in sys.stdin:
        number = int(line)
        text = f"The database of project {name}{number} is called heron {name}{number}."
        kept = memory.store(text)
        port = str(10_000 * ord(name) + number)
        memory.store(f"The port is {port}.", entity="server", key="port", value=port)
        before = sys.argv[4]
        theirs = memory.recall(f"What is the database of project {before}{number - 1} called?")
        found = theirs is not None and f"heron {before}{number - 1}." in theirs.block
        # What the other has forgotten must not come up.
        found = number == 0 or found == (number % 5 != 0)
        ports = [fact for fact in memory.admin.list() if fact.key == "port"]
        if number % 5 == 4:
            memory.forget(kept.id if hasattr(kept, "id") else kept.fact.id)
        print(json.dumps([found, len(ports), ports[0].value == port]), flush=True)
    print(json.dumps(len(memory.admin.verify())), flush=True)
"""


class Side:
    """One version, in a process of its own."""

    def __init__(self, code: Path, home: Path, url: str, name: str, other: str, before: str = "") -> None:
        """Start it; `before` is run first."""
        environment = {**os.environ, "PYTHONPATH": str(code), "PERDURE_LOAD_EXTENSIONS": "0"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", before + CHILD, str(home), url, name, other],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=home,
        )  # fmt: skip
        self._line()

    def turn(self, number: int) -> tuple[bool, int, bool]:
        """Do one round; return whether the other's was found, how many ports are current, and whether it is ours."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        found, ports, own = json.loads(self._line())
        return found, ports, own

    def end(self) -> int:
        """End it; return how many rows do not fit their seals."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        damaged = int(json.loads(self._line()))
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return damaged

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise click.ClickException("a process ended before its time; what it said stands above")
        return line


def bench(former: Path, operations: int, server: Server, before: str = "") -> dict[str, Any]:
    """Take turns; `before` is run first in the former one's process."""
    with tempfile.TemporaryDirectory() as root:
        homes = [Path(root) / name for name in ("former", "present")]
        for home in homes:
            home.mkdir()
            (home / "store.key").write_text("ab" * 32)
        sides = [Side(former, homes[0], server.url, "a", "b", before)]
        sides.append(Side(Path(__file__).parents[1], homes[1], server.url, "b", "a"))
        lost = several = foreign = 0
        for number in range(operations // 4):
            for side in sides:
                found, ports, own = side.turn(number)
                lost, several, foreign = lost + (not found), several + (ports != 1), foreign + (not own)
        damaged = [side.end() for side in sides]
    return {
        "operations": 4 * (operations // 4), "not_found": lost, "slots_with_several": several,
        "not_current": foreign, "damaged": damaged,
    }  # fmt: skip


@click.command()
@click.option("--former", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--operations", default=1_000, show_default=True)
@click.option("--installed-server", is_flag=True, help="Use the system's PostgreSQL, not the one with pgvector.")
@click.option("--json", "as_json", is_flag=True)
def main(former: Path, operations: int, installed_server: bool, as_json: bool) -> None:
    """Run both; exit code 1 if either missed something."""
    with running(installed() if installed_server else None) as server:
        result = bench(former.resolve(), operations, server)
    print(json.dumps(result, indent=None if as_json else 2))
    wrong = [result[name] for name in ("not_found", "slots_with_several", "not_current")]
    sys.exit(int(any(wrong) or any(result["damaged"])))


if __name__ == "__main__":
    main()
