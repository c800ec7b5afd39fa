"""What does the end of a turn cost the host, and how long after it is the memory there?

python -m bench turn --json [--turns 200] [--embedder auto]

agent_end_ratio: median time of `agent_end`, which returns when the turn is on disk, against a bare append of the same
bytes to a file of the same folder, synced in the same way, turn about (goal: at most 2).
capture_ratio: median time from the end of `agent_end` until the facts are stored, against the embedding of the same
texts, one by one as capture embeds them (goal: at most 3).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import click

from bench.measuring import timed
from bench.memories import runner_of
from bench.program import program
from perdure.api.memory import Memory
from perdure.hooks.host import HookRunner
from perdure.hooks.types import TurnContext

PATIENCE = 120.0
WARM = 5
_PEOPLE = ["sister", "brother", "dentist", "neighbour", "landlord", "doctor", "teacher", "plumber", "lawyer", "cousin"]
_PLACES = ["Graz", "Bergen", "Porto", "Riga", "Lyon", "Bath", "Turin", "Ghent", "Basel", "Krakow"]


def said(number: int) -> str:
    """Return what the user says in a turn: talk, a statement that is new each time, and a question."""
    person, place = _PEOPLE[number % 10], _PLACES[number // 10 % 10]
    statement = f"My {person} number {number:04} lives in {place} and drives a van with the plate {number * 37:05}."
    return f"Thanks, that worked well. {statement} Could you draft the letter to the landlord now?"


@click.option("--turns", default=200, help="So many are timed.")
@click.option("--embedder", default="auto", help="As the setting of this name.")
def bench(turns: int, *, embedder: str) -> dict[str, Any]:
    """Play turns, each timed beside what it cannot do without; return the figures, times in milliseconds."""
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=embedder) as memory:
        memory.ready(PATIENCE)
        runner = runner_of(memory)
        bare = Bare(Path(folder) / "bare.log")
        spent: dict[str, list[float]] = {"bare": [], "agent_end": [], "capture": []}
        size = 0
        for number in range(WARM + turns):
            _turn(runner, memory, number, spent)
            size = _last_entry(Path(folder) / "inbox") or size
            spent["bare"].append(timed(partial(bare.append, size))[1])
        bare.close()
        facts = [fact.text for fact in memory.admin.list(limit=min(10_000, WARM + turns))]
        model = memory._engine.model.embedder()
        spent["embed"] = [timed(partial(model.embed, [text]))[1] for text in facts] if model else []
    middle = {name: median(times[WARM:]) for name, times in spent.items() if times}
    return {
        "turns": turns,
        "facts": len(facts),
        "bytes": size,
        **{f"{name}_p50_ms": round(1000 * value, 3) for name, value in middle.items()},
        "agent_end_ratio": round(middle["agent_end"] / middle["bare"], 2),
        "capture_ratio": round(middle["capture"] / middle["embed"], 2) if "embed" in middle else None,
    }


class Bare:
    """A file to which bytes are appended, each time until the disk has them."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)

    def append(self, size: int) -> None:
        """Append so many bytes."""
        os.write(self._handle, b"x" * size)
        self._sync(self._handle)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def _turn(runner: HookRunner, memory: Memory, number: int, spent: dict[str, list[float]]) -> None:
    """Play a turn and wait until it is captured."""
    context = TurnContext(session_id=f"s{number // 20}", turn_id=str(number), host="bench")
    text = said(number)
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "Here is the draft."}]
    spent["agent_end"].append(timed(lambda: runner.agent_end(messages, True, context))[1])
    spent["capture"].append(timed(lambda: memory.settle(PATIENCE))[1])


def _last_entry(inbox: Path) -> int:
    """Return the bytes of the newest entry; 0 if the inbox has just been emptied."""
    [content] = [path.read_bytes() for path in inbox.glob("*.jsonl")]
    lines = [line for line in content.split(b"\n") if line.strip(b"\0")]
    return len(lines[-1]) + 1 if lines else 0


main = program(bench)
