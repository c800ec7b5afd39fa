"""Are questions about memory itself answered from it, and is nothing else taken for one?

python -m bench about FILE [--json] [--verbose]

FILE holds memories, when each was stored, and questions about them (bench/data/LABELS.md). Each is asked in a turn of
its own.

answered: the share of questions for which something that answers them came up, and by_kind the same for each kind;
met: the share of all that answers them; others: what else stood in these blocks, of all; tool: the share of questions
that `memory_recall` answers with the same memories. silence: the share of prompts that are no such question for which
nothing came up.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from bench.measuring import share
from bench.memories import brought, opened
from bench.program import program
from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.clock import ManualClock
from perdure.hooks.types import TurnContext

DAY = 86_400.0
NOW = 1_800_000_000.0
"""Friday, 15 January 2027: the day on which everything is asked."""
SHOWN = 10
"""Memories in a block at most."""


@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--verbose", is_flag=True, help="Print the questions that were not answered, and what came for others.")
def bench(file: Path, verbose: bool) -> dict[str, Any]:
    """Measure how well questions about memory itself are answered."""
    cases: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    total: Counter[str] = Counter()
    wrong: list[str] = []
    with filled(cases["memories"]) as (memory, names):
        for number, question in enumerate(cases["questions"]):
            context = {"project": question.get("project")}
            came = [names.get(item.id) for item in brought(memory, question["text"], f"q{number}", **context)]
            needs = set(question["needs"])
            met = needs.intersection(came)
            told = call_tool(
                memory,
                "memory_recall",
                {"query": question["text"], "limit": SHOWN},
                TurnContext(host="bench", **context),
            )
            told_names = {names.get(each["id"]) for each in told.details.get("memories", ())}
            total.update({"questions": 1, "answered": bool(met), "needs": len(needs), "met": len(met)})
            total.update({f"of {question['asks']}": 1, f"in {question['asks']}": bool(met)})
            total.update({"shown": len(came), "others": len(set(came) - needs), "tool": set(came) <= told_names})
            if met != needs:
                wrong.append(f"{question['text']}: {sorted(needs - met)} missing, {came}")
        for number, prompt in enumerate(cases["nothing"]):
            came = [names.get(item.id) for item in brought(memory, prompt, f"n{number}")]
            total.update({"idle": 1, "quiet": not came})
            if came:
                wrong.append(f"nothing: {prompt}: {came}")
    kinds = sorted(name.removeprefix("of ") for name in total if name.startswith("of "))
    figures = {
        "answered": share(total["answered"], total["questions"]),
        "by_kind": {kind: share(total[f"in {kind}"], total[f"of {kind}"]) for kind in kinds},
        "met": share(total["met"], total["needs"]),
        "others": share(total["others"], total["shown"]),
        "tool": share(total["tool"], total["questions"]),
        "silence": share(total["quiet"], total["idle"]),
    }
    return {**figures, "wrong": wrong} if verbose else figures


@contextmanager
def filled(memories: list[Mapping[str, Any]]) -> Iterator[tuple[Memory, Mapping[str, str]]]:
    """Open a memory in which all was stored on its day; return with it the names of the memories, by their ids."""
    clock = ManualClock()
    with opened(timers=False, clock=clock, timezone="UTC", scopes=["project:aura", "project:roster"]) as memory:
        names = {}
        for known in sorted(memories, key=lambda each: -each["days"]):
            clock.set(NOW - known["days"] * DAY)
            names[_stored(memory, known)] = known["id"]
        clock.set(NOW)
        yield memory, names


def _stored(memory: Memory, known: Mapping[str, Any]) -> str:
    if known.get("by") == "agent":
        told = call_tool(memory, "memory_store", {"text": known["text"]}, TurnContext(session_id="work", host="bench"))
        return str(told.details["id"])
    return memory.store(known["text"], **{name: known[name] for name in ("scope",) if name in known}).id


main = program(bench)
if __name__ == "__main__":
    main()
