"""How orders to forget are obeyed, and what only sounds like one; how orders to remember are.

python -m bench forget FORGET LOOKALIKES REMEMBER [--json] [--verbose]

Each item is played for a memory of its own: what was told, then in another conversation (or the same one, as the item
says) the order, as a host hands it over before and after a turn. right: all that was meant is gone, and nothing else;
missed: something meant is still there; wrong: something else is gone; stored: the order is a memory itself. acts: what
only sounds like an order, and something went. kept: a memory has all the words that matter. See bench/data/LABELS.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from bench.memories import live, opened
from bench.program import program
from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext

PATIENCE = 60.0
"""Seconds that the capture of a turn may take."""
ORDER = "order"
"""The session in which an order is given."""
Item = Mapping[str, Any]
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _say(memory: Memory, session: str, text: str) -> None:
    context = TurnContext(session_id=session, host="bench")
    memory.turns.before(text, context)
    memory.turns.after([{"role": "user", "content": text}], True, context)
    memory.settle(PATIENCE)


def _told(memory: Memory, item: Item) -> dict[str, int]:
    """Tell what an item tells; return by id of which statement each memory is."""
    by: dict[str, int] = {}
    for number, text in enumerate(item["told"]):
        session = ORDER if item.get("same") and number == len(item["told"]) - 1 else f"told {number}"
        _say(memory, session, text)
        by.update({fact.id: number for fact in live(memory) if fact.id not in by})
    return by


def _order(memory: Memory, item: Item) -> tuple[Counter[str], list[str]]:
    by = _told(memory, item)
    _say(memory, ORDER, item["order"])
    left = {fact.id: fact.text for fact in live(memory)}
    gone = {by[name] for name in by if name not in left}
    count = Counter({
        "missed": not {number for number in item["gone"] if number in by.values()} <= gone,
        "wrong": bool(gone - set(item["gone"])),
        "stored": bool(set(left) - set(by)),
    })  # fmt: skip
    count["right"] = not any(count.values())
    return count, [item["order"], *(item["told"][number] for number in sorted(gone))]


@click.argument("forget", type=FILE)
@click.argument("lookalikes", type=FILE)
@click.argument("remember", type=FILE)
@click.option("--verbose", is_flag=True, help="Print what was not as it should be, and what went.")
def bench(forget: Path, lookalikes: Path, remember: Path, verbose: bool) -> dict[str, Any]:
    """Measure how orders to forget and to remember are obeyed."""
    orders, alike, wishes = (
        json.loads(path.read_text(encoding="utf-8"))["items"] for path in (forget, lookalikes, remember)
    )
    total: Counter[str] = Counter()
    failed: list[list[str]] = []
    acts, kept = [], 0
    for item in orders:
        with opened(timers=False) as memory:
            count, told = _order(memory, item)
        total.update(count)
        failed += [told] if not count["right"] else []
    for item in alike:
        with opened(timers=False) as memory:
            by = _told(memory, item)
            _say(memory, ORDER, item["order"])
            if set(by) - {fact.id for fact in live(memory)}:
                acts.append(item["order"])
    for item in wishes:
        with opened(timers=False) as memory:
            _say(memory, ORDER, item["order"])
            texts = [fact.text for fact in live(memory)]
        right = any(all(word.casefold() in text.casefold() for word in item["expect"]) for text in texts)
        kept += right
        failed += [] if right else [[item["order"]]]
    figures: dict[str, Any] = {
        "forget": {"of": len(orders), **{name: int(total[name]) for name in ("right", "missed", "wrong", "stored")}},
        "lookalikes": {"of": len(alike), "acts": len(acts)},
        "remember": {"of": len(wishes), "kept": kept},
    }
    return {**figures, "failed": failed, "acted": acts} if verbose else figures


main = program(bench)
if __name__ == "__main__":
    main()
