"""What a command hook costs its host, and whether any is late or lost when helpers are killed.

python -m bench hooks --json
python -m bench hooks --events 2000 --json

First a prompt in turns: a bare interpreter, the helper asked by an open process, the hook with a helper, the hook
without one. Figures are medians in milliseconds; the ratio is that of a hook to the bare start and the helper's answer
together. Then, with --events, so many events of eight sessions at once beside the stores of two MCP servers, while the
helper is killed at random: those that took more than a second, and facts that were taken in and are not in the store.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from bench.measuring import p50, timed, until
from bench.program import program
from perdure.api.memory import Memory
from perdure.engine.repository import project_of
from perdure.hosts.command.dialects import DIALECTS
from perdure.hosts.mcp.client import McpClient
from perdure.hosts.mcp.remote import RemoteDesk
from perdure.service.client import ask, endpoint

FOLDER = "/home/me/repo"
SESSIONS, SERVERS = 8, 2
FACTS = 200
PROMPT = "Which number does locker seven have?"
PAUSE = 5.0
"""Seconds between two kills, on average."""
CAPTURE_SECONDS = 300.0
"""In which what waits in the inbox is to be captured."""
HELPER = b"perdure.service.helper"


def payload(event: str, session: str, **values: Any) -> dict[str, Any]:
    """Return an event as a host writes it."""
    return {"session_id": session, "cwd": FOLDER, "hook_event_name": DIALECTS["claude-code"].names[event], **values}


def hook(home: str, event: str, values: dict[str, Any]) -> tuple[bytes, float]:
    """Run a hook; return what it printed and its seconds."""
    command = [sys.executable, "-I", "-m", "perdure", "hook", event, "--host", "claude-code", "--home", home]
    done, seconds = timed(
        lambda: subprocess.run(command, input=json.dumps(values).encode(), stdout=subprocess.PIPE, check=True)
    )
    return done.stdout, seconds


def processes(home: str | Path, word: bytes) -> list[int]:
    """Return the ids of the processes whose command line names a data folder and a word."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if word in words and os.fsencode(home) in words:
                    found.append(int(entry.name))
    return found


def begin(home: str) -> None:
    """Have a helper whose model is loaded."""
    hook(home, "session-start", payload("session-start", "begin", source="startup"))
    while not Path(f"{endpoint(home)}.sock").exists():
        time.sleep(0.05)
    time.sleep(3)


def end(home: str | Path) -> None:
    """Kill the helper, and wait for hooks that still keep what was said."""
    for pid in processes(home, HELPER):
        with suppress(ProcessLookupError):
            # A process loses its command line before its locks.
            gone = os.pidfd_open(pid)
            os.kill(pid, signal.SIGKILL)
            select.select([gone], [], [])
            os.close(gone)
    while processes(home, b"--host"):
        time.sleep(0.02)


def cost(home: str, repeats: int) -> dict[str, float]:
    """Measure a prompt with a helper and without."""
    with Memory.open(home) as memory:
        for number in range(FACTS):
            memory.store(f"Locker {number} of the club has the number {number * 37 % 1_000}.")
        memory.store("My locker is locker seven, and it has the number 259.")
    begin(home)
    times: dict[str, list[float]] = {"bare": [], "helper": [], "hook": []}
    for number in range(repeats + 2):
        _, bare = timed(lambda: subprocess.run([sys.executable, "-I", "-c", "pass"], check=True))
        asked = json.dumps(payload("prompt", f"a{number}", prompt=PROMPT, prompt_id=f"a{number}"))
        answer, helper = timed(partial(ask, home, "hook", b"prompt\0claude-code\0\0" + asked.encode(), 5))
        if not answer:
            raise RuntimeError("the helper gave no answer")
        _, whole = hook(home, "prompt", payload("prompt", f"b{number}", prompt=PROMPT, prompt_id=f"b{number}"))
        if number > 1:
            for name, seconds in zip(times, (bare, helper, whole), strict=True):
                times[name].append(seconds)
    alone = []
    for number in range(max(3, repeats // 4)):
        end(home)
        alone.append(hook(home, "prompt", payload("prompt", f"c{number}", prompt=PROMPT, prompt_id=f"c{number}"))[1])
    end(home)
    pairs = zip(times["hook"], times["bare"], times["helper"], strict=True)
    return {
        **{f"{name}_p50_ms": p50(each, 1) for name, each in times.items()},
        "hook_to_bare_and_helper_ratio": round(statistics.median(h / (b + a) for h, b, a in pairs), 2),
        "without_helper_p50_ms": p50(alone, 1),
    }


def storm(home: str, events: int) -> dict[str, Any]:
    """Run events of many sessions at once while the helper is killed at random."""
    begin(home)
    said: dict[int, str] = {}
    late: list[float] = []
    most = 0

    def session(name: int) -> None:
        nonlocal most
        chance = random.Random(name)
        for number in range(events // SESSIONS):
            key, values = name * events + number, {"prompt_id": f"{name}-{number}"}
            if number % 2 == 0:
                text = f"The code of shelf {key} is {chance.randrange(10**6):06d}."
                _, seconds = hook(home, "prompt", payload("prompt", f"s{name}", prompt=text, **values))
                said[key] = text
            else:
                values["prompt_id"] = f"{name}-{number - 1}"
                _, seconds = hook(home, "stop", payload("stop", f"s{name}", last_assistant_message="Noted.", **values))
            late.append(seconds)

    def server(name: int) -> None:
        desk = RemoteDesk(Path(home), McpClient(project=str(project_of(FOLDER))))
        for number in range(events // SESSIONS // 4):
            text = f"The label of crate {name}-{number} is {random.Random(number).randrange(10**6):06d}."
            if not desk.call("memory_store", {"text": text, "scope": "project"}).refused:
                said[-(name * events + number + 1)] = text
        desk.close()

    with ThreadPoolExecutor(SESSIONS + SERVERS) as pool:
        work = [pool.submit(session, name) for name in range(SESSIONS)]
        work += [pool.submit(server, name) for name in range(SERVERS)]
        chance = random.Random(0)
        kills = 0
        while not all(each.done() for each in work):
            time.sleep(chance.expovariate(1 / PAUSE))
            alive = processes(home, HELPER)
            most = max(most, sum(_resident(pid) > 100 for pid in alive))
            for pid in alive:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
    for each in work:
        each.result()
    end(home)
    with Memory.open(home, scopes=[str(project_of(FOLDER))], capture_limits={"day": 10**6}) as memory:
        until(lambda: not memory.status().inbox, CAPTURE_SECONDS)
        memory.settle(CAPTURE_SECONDS)
        kept = {fact.text for fact in memory.admin.list(limit=10_000)}
    return {
        "events": len(late),
        "kills": kills,
        "helpers_with_a_model_at_once": most,
        "p50_ms": p50(late, 1),
        "longest_ms": round(1_000 * max(late), 1),
        "over_a_second": sum(seconds > 1 for seconds in late),
        "said": len(said),
        "lost": sum(text not in kept for text in said.values()),
        "left_behind": len(processes(home, HELPER)),
    }


def _resident(pid: int) -> float:
    """Return the resident megabytes of a process."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1_024
    return 0.0


@click.option("--repeats", default=30)
@click.option("--events", default=0, help="Events of the storm; 0: none.")
def bench(repeats: int, events: int) -> dict[str, Any]:
    """Measure hooks."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="ph", dir="/tmp") as folder:
        os.environ |= {
            "XDG_RUNTIME_DIR": folder,
            "PERDURE_CAPTURE_LIMITS": '{"day": 1000000, "session": 1000000}',
        }
        if repeats:
            found["cost"] = cost(str(Path(folder, "cost")), repeats)
        if events:
            found["storm"] = storm(str(Path(folder, "storm")), events)
    return found


main = program(bench)
