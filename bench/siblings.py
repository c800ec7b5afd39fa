"""Does all of a kind come up, however many there are?

python -m bench siblings FILE [--json] [--verbose]

FILE holds kinds of things that one person has told of: see bench/data/LABELS.md. So many memories of each kind are
stored, alone and among 300 others (those of the other kinds, and notes of an office), and asked for.

unasked: the share of the kind that a turn's block shows, of as many as it may show; `others`: what else was in these
blocks, of all. tool, search: the share in an answer that may hold all of it. strangers: questions about another
person's things, or the world's, for which something of the kind came up.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from bench.memories import brought, opened
from bench.program import program
from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.hooks.types import TurnContext

SIZES = (1, 2, 3, 6, 12, 20, 30)
OTHERS = 300
SHOWN = 10
"""Facts in a block at most, as the settings have it."""
TOLD = 20
"""Memories in a tool's answer at most."""
FOUND = 50
"""Memories in a search at most."""
PATIENCE = 60.0
"""Seconds that the work behind the turns may take."""
ASKING = TurnContext(session_id="asking", host="bench")
_MONTHS = ("January", "March", "May", "June", "August", "October")


def office() -> Iterator[str]:
    """Yield notes that nobody would ask for by a kind."""
    for number in range(OTHERS):
        month, place = _MONTHS[number % 6], 100 + 7 * number
        yield (
            f"Invoice {place} was paid in {month}.", f"The {month} report {place} went to the board.",
            f"Meeting {place} decided to move the launch to {month}.", f"Ticket {place} was closed in {month}.",
        )[number % 4]  # fmt: skip


def around(kinds: Sequence[Mapping[str, Any]], kind: Mapping[str, Any]) -> Sequence[str]:
    """Return what else is stored beside a kind: memories of the other kinds, and notes of an office."""
    others = [text for other in kinds if other is not kind for text in other["memories"]]
    return [*others, *office()][:OTHERS]


@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--verbose", is_flag=True, help="Print for each kind and question how many came.")
def bench(file: Path, verbose: bool) -> dict[str, Any]:
    """Measure how much of a kind comes up when it is asked for."""
    kinds: Sequence[Mapping[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["kinds"]
    figures: dict[str, Any] = {}
    cases: list[str] = []
    for setting in ("alone", "among"):
        total: Counter[str] = Counter()
        for kind in kinds:
            with opened(timers=False) as memory:
                for text in around(kinds, kind) if setting == "among" else ():
                    memory.store(text)
                short: list[str] = []
                for before, size in pairwise((0, *(size for size in SIZES if size <= len(kind["memories"])))):
                    for text in kind["memories"][before:size]:
                        memory.store(text)
                    short += _ask(memory, kind, size, total)
                short += _ask_of_others(memory, kind, total)
                cases += [f"{setting} {kind['kind']} {case}" for case in short]
                memory.settle(PATIENCE)
        figures[setting] = {
            **{
                f"{way} at {size}": round(total[f"{way} {size}"] / total[f"{way} of {size}"], 3)
                for way in ("unasked", "tool", "search") for size in SIZES if total[f"{way} of {size}"]
            },
            "others": f"{total['others']} of {total['blocks']}",
            "strangers": f"{total['strangers']} of {total['strange']}",
        }  # fmt: skip
    return {**figures, "cases": cases} if verbose else figures


def _ask(memory: Memory, kind: Mapping[str, Any], size: int, total: Counter[str]) -> Iterator[str]:
    """Ask for the kind on every way; yield what came short."""
    known = set(kind["memories"][:size])

    def count(way: str, asked: str, texts: Sequence[str], most: int) -> Iterator[str]:
        came, of = len(known.intersection(texts)), min(size, most)
        total[f"{way} {size}"] += came
        total[f"{way} of {size}"] += of
        if came < of:
            yield f"{size} {way} {came} of {of}: {asked}"

    for number, question in enumerate(kind["questions"]):
        shown = [item.text for item in brought(memory, question, f"{size}-{number}")]
        total["others"] += len(set(shown) - known)
        total["blocks"] += len(shown)
        yield from count("unasked", question, shown, SHOWN)
    for query in kind["queries"]:
        answer = call_tool(memory, "memory_recall", {"query": query, "limit": TOLD}, ASKING)
        yield from count("tool", query, [each["text"] for each in answer.details.get("memories", ())], TOLD)
        yield from count("search", query, [hit.fact.text for hit in memory.admin.search(query, limit=FOUND)], FOUND)


def _ask_of_others(memory: Memory, kind: Mapping[str, Any], total: Counter[str]) -> Iterator[str]:
    """Ask for what the kind does not answer; yield for what some of it came up all the same."""
    for number, question in enumerate(kind["others_questions"]):
        came = {item.text for item in brought(memory, question, f"strange-{number}")}.intersection(kind["memories"])
        total["strange"] += 1
        total["strangers"] += bool(came)
        if came:
            yield f"stranger {len(came)}: {question}"


main = program(bench)
if __name__ == "__main__":
    main()
