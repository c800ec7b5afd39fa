"""Are real changes recognised, and nothing else taken for one? On pairs that were written without the rules.

python -m bench changes [--half tuned] [--cases] [--json]

The pairs (bench/data/pairs-*.json): one memory, and what its user says later; see bench/data/LABELS.md. Rules may be
chosen on the half "tuned" alone. Each pair is stored as by `Memory.store`, and forgotten before the next one.

recognised: of the corrections, the share of which the known memory was replaced, withdrawn, or marked where it is out
of date. false_replacements: of the additions, how many did any of that. false_swallowing: additions and corrections
that were not stored. repetitions: the share of them that only confirms. newest_first: of the corrections that were not
recognised, the share for which a prompt with the words of both brings the newer one up before the older. cases: with
--cases, the pairs of the half "tuned" that went wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from bench.measuring import share
from bench.memories import opened
from bench.program import program
from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.store.fact import Fact

DATA = Path(__file__).parent / "data"
HALVES = ("tuned", "untouched")
DAY = 86_400.0
REPLACED, MARKED, SWALLOWED, ADDED = "replaced", "marked", "swallowed", "added"


def read(half: str) -> list[Mapping[str, Any]]:
    """Return the pairs of a half."""
    items: list[Mapping[str, Any]] = json.loads((DATA / f"pairs-{half}.json").read_text(encoding="utf-8"))["items"]
    return items


def became(memory: Memory, clock: ManualClock, pair: Mapping[str, Any]) -> tuple[str, bool]:
    """Store both statements of a pair, a day apart; return what was done, and whether the newer comes up first."""
    old = memory.store(pair["known"])
    clock.advance(DAY)
    new = memory.store(pair["new"])
    live = memory.admin.live_ids()
    if old.id not in live:
        return REPLACED, True
    if new.id == old.id:
        return SWALLOWED, False
    if any(each.link.type == "CORRECTS" for each in memory.related(old.id, 1)):
        return MARKED, True
    return ADDED, _newest_first(memory, old, new)


def _newest_first(memory: Memory, old: Fact, new: Fact) -> bool:
    recall = memory.recall(f"{old.text} {new.text}")
    shown = [item.id for item in recall.items] if recall else []
    return shown.index(new.id) < shown.index(old.id) if {old.id, new.id} <= set(shown) else new.id in shown


def measure(pairs: Sequence[Mapping[str, Any]], cases: bool) -> dict[str, Any]:
    """Return the figures of a half."""
    clock = ManualClock()
    done: dict[str, tuple[str, bool]] = {}
    with opened(clock=clock) as memory:
        for pair in pairs:
            done[pair["id"]] = became(memory, clock, pair)
            for fact_id in memory.admin.live_ids():
                memory.forget(fact_id)
    labelled = {label: [each for each in pairs if each["label"] == label] for label in _LABELS}
    what = {
        label: [[each["id"] for each in found if done[each["id"]][0] in wanted] for wanted in _GROUPS]
        for label, found in labelled.items()
    }
    changed, swallowed, added = what["correction"]
    found: dict[str, Any] = {
        "corrections": len(labelled["correction"]),
        "additions": len(labelled["addition"]),
        "repetitions": len(labelled["repetition"]),
        "recognised": share(len(changed), len(labelled["correction"])),
        "false_replacements": len(what["addition"][0]),
        "false_swallowing": len(what["addition"][1]) + len(swallowed),
        "repetitions_recognised": share(len(what["repetition"][1]), len(labelled["repetition"])),
        "newest_first": share(sum(done[name][1] for name in added), len(added)),
    }
    if cases:
        wrong = [*added, *swallowed, *what["addition"][0], *what["addition"][1], *what["repetition"][0]]
        found["cases"] = [
            {"id": each["id"], "label": each["label"], "done": done[each["id"]][0], "newest": done[each["id"]][1]}
            for each in pairs if each["id"] in wrong
        ]  # fmt: skip
    return found


_LABELS = ("correction", "addition", "repetition")
_GROUPS = ((REPLACED, MARKED), (SWALLOWED,), (ADDED,))


@click.option("--half", type=click.Choice(HALVES), multiple=True, default=HALVES, help="Only this half.")
@click.option("--cases", is_flag=True, help="Also which pairs of the half to tune on went wrong.")
def bench(half: Sequence[str], cases: bool) -> dict[str, Any]:
    """Measure how changes are recognised."""
    return {name: measure(read(name), cases and name == "tuned") for name in half}


main = program(bench)
