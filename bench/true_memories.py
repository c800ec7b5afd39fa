"""Is anything lost that is true? Stores whose memories are all true at once, stored in their order.

python -m bench true_memories FOLDER [--json] [--together] [--turns] [--days 400] [--growth]

FOLDER holds the files of labelled stores ({"memories": [{"text"}]}), as training/data/train/stores: one person each.

memories: how many there are. hidden: those that a later one replaced or withdrew. swallowed: those that were not
stored, as they were taken for another. marked: those of which another was taken to correct a part. links: CONTRADICTS
links. excluded: with --together, what was lost of the slots that hold one value of the user, which differ between
people. cases: each of these, with what it was lost to. faded: with --days, those that no answer shows so many days
later. growth: with --growth, what is lost of 1,000 stored at each size of one store. With --turns the memories are the
statements that capture finds in the texts: what it does not take for one is not counted as lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bench.memories import opened, say
from bench.program import SkippedError, program
from perdure.api.memory import Memory
from perdure.capture.lifetimes import dated
from perdure.capture.statements import statements
from perdure.clock import ManualClock
from perdure.store.fact import Fact, is_single_valued

DAY = 86_400.0
MINUTE = 60.0
SIZES = (50, 200, 600, 1_800)
"""Memories in one store, at which growth is told."""
MOST = 10_000
"""Memories that may be captured without a review."""


@dataclass(frozen=True, slots=True)
class Told:
    """A memory of a file, as it is to be found in the store."""

    file: str
    text: str


def read(folder: Path) -> dict[str, list[str]]:
    """Return the texts of each file of a folder."""
    return {
        path.stem: [memory["text"] for memory in json.loads(path.read_text(encoding="utf-8"))["memories"]]
        for path in sorted(folder.glob("*.json"))
    }


def measure(files: Mapping[str, Sequence[str]], together: bool, turns: bool, days: int) -> dict[str, Any]:
    """Store all memories, together or each file apart, in turns or one by one; return what became of them.

    With `days` they are looked for again so long afterwards.
    """
    total: dict[str, Any] = {"memories": 0, **_nothing()}
    for group in [files] if together else [{name: texts} for name, texts in files.items()]:
        with store() as (memory, clock):
            told = list((_said if turns else _stored)(memory, clock, group))
            total["memories"] += len(told)
            found = _judged(memory, told)
            if days:
                clock.advance(days * DAY)
                found = _with_faded(memory, told, found)
        total = {name: found[name] + value if name in found else value for name, value in total.items()}
    return total


def growth(files: Mapping[str, Sequence[str]]) -> dict[int, float]:
    """Return how many of 1,000 are lost at each size of one store."""
    lost: dict[int, float] = {}
    with store() as (memory, clock):
        told: list[Told] = []
        for one in _stored(memory, clock, files):
            told.append(one)
            if len(told) in SIZES or len(told) == sum(map(len, files.values())):
                found = _judged(memory, told)
                lost[len(told)] = round(1000 * (found["hidden"] + found["swallowed"]) / len(told), 2)
    return lost


@contextmanager
def store() -> Iterator[tuple[Memory, ManualClock]]:
    """Open a memory with a clock of its own."""
    clock = ManualClock()
    most = dict.fromkeys(("turn", "session", "day"), MOST)
    with opened(clock=clock, record_sessions=False, capture_limits=most) as memory:
        yield memory, clock


def _stored(memory: Memory, clock: ManualClock, files: Mapping[str, Sequence[str]]) -> Iterator[Told]:
    for name, texts in files.items():
        for text in texts:
            clock.advance(MINUTE)
            memory.store(text)
            yield Told(name, dated(text, clock.now()).strip())


def _said(memory: Memory, clock: ManualClock, files: Mapping[str, Sequence[str]]) -> Iterator[Told]:
    for name, texts in files.items():
        for place, text in enumerate(texts):
            clock.advance(MINUTE)
            say(memory, text, f"{name}-{place}")
            memory.settle(600)
            yield from (Told(name, dated(each.text, clock.now())) for each in statements(text))


def _nothing() -> dict[str, Any]:
    return {"hidden": 0, "swallowed": 0, "marked": 0, "faded": 0, "links": 0, "excluded": [], "cases": []}


def _judged(memory: Memory, told: Sequence[Told]) -> dict[str, Any]:
    found = _nothing()
    changes = memory.admin.changes(limit=-1)
    facts = {change.fact.id: change.fact for change in changes}
    files = {one.text: one.file for one in told}
    live = memory.admin.live_ids()
    kept = {fact.text for fact in facts.values()}
    found["swallowed"] = sum(one.text not in kept for one in told)
    found["cases"] += [{"how": "swallowed", "file": one.file, "text": one.text} for one in told if one.text not in kept]
    for change in changes:
        fact, other = change.fact, facts.get(change.other_id or "")
        if change.action == "link" and other is not None:
            corrects = any(
                each.link.type == "CORRECTS" for each in memory.related(fact.id, 1) if each.fact.id == other.id
            )
            how = "marked" if corrects else "links"
        elif change.action in ("supersede", "retract", "forget") and fact.id not in live:
            how = "hidden"
        else:
            continue
        lost, by = (other, fact) if how == "marked" and other is not None else (fact, other)
        case = {"how": how, "file": files.get(lost.text, ""), "text": lost.text, "by": by.text if by else ""}
        if how != "links" and by and files.get(by.text) != case["file"] and _one_value_of_the_user(lost):
            found["excluded"].append(case)
        else:
            found[how] += 1
            found["cases"].append(case)
    return found


def _one_value_of_the_user(fact: Fact) -> bool:
    return fact.entity == "user" and bool(fact.key) and is_single_valued(fact.key or "")


def _with_faded(memory: Memory, told: Sequence[Told], before: dict[str, Any]) -> dict[str, Any]:
    """Return what was found, with what no answer shows any more and what is lost for another reason."""
    live = memory.admin.live_ids()
    gone = {case["text"] for case in before["cases"] + before["excluded"] if case["how"] == "hidden"}
    faded = [
        change.fact for change in memory.admin.changes(limit=-1)
        if change.action == "add" and change.fact.id not in live and change.fact.text not in gone
    ]  # fmt: skip
    files = {one.text: one.file for one in told}
    cases = [{"how": "faded", "file": files.get(fact.text, ""), "text": fact.text} for fact in faded]
    return {**before, "faded": len(faded), "cases": before["cases"] + cases}


@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--together", is_flag=True, help="All in one store.")
@click.option("--turns", is_flag=True, help="By turns of a conversation.")
@click.option("--days", default=0, help="Look for them again so many days later.")
@click.option("--growth", "grows", is_flag=True, help="Tell what is lost at each size of one store.")
def bench(folder: Path, together: bool, turns: bool, days: int, grows: bool) -> dict[str, Any]:
    """Measure what is lost of what is true."""
    files = read(folder) if folder.is_dir() else {}
    if not files:
        raise SkippedError(f"{folder} holds no stores; give a folder with their files")
    return {"growth": growth(files)} if grows else measure(files, together, turns, days)


main = program(bench)
