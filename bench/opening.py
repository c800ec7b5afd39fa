"""How many needs do the opening of a session and its turns meet, and at what cost?

python -m bench opening FOLDER [--tokens 0,300,500,800,1500] [--json]

FOLDER holds labelled stores (training/data/README.md). Each is asked in sessions of eight prompts, in the order in
which they were typed, once for each size of an opening.

met: the share of needed memories that the opening, or a block of the session so far, shows; by_opening, by_turn: each
alone; unasked: the share of those that nobody asks for by words. tokens: of opening and blocks, for a session of eight
prompts. silence: the share of prompts that nothing helps whose turn shows nothing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from bench.measuring import share
from bench.memories import opened
from bench.program import numbers, program
from perdure.hooks.types import TurnContext
from training.check import load
from training.forms import Life, Store

SESSION = 8
"""Prompts of a session."""
UNASKED = ("implicit", "task")


@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--tokens", default="0,300,500,800,1500", callback=numbers, help="Sizes of an opening, with commas between."
)
def bench(folder: Path, tokens: list[int]) -> dict[str, Any]:
    """Measure what openings of several sizes meet and cost."""
    stores = [file for file in load(folder).files.values() if isinstance(file, Store | Life)]
    return {str(size): _measured(stores, size) for size in tokens}


def _measured(stores: list[Store | Life], size: int) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for store in stores:
        with opened(timers=False, opening_tokens=size) as memory:
            names = {memory.store(known.text).id: known.id for known in store.memories}
            for number, prompt in enumerate(store.prompts):
                context = TurnContext(session_id=f"{store.store} {number // SESSION}", host="bench", keeps_block=True)
                if number % SESSION == 0:
                    found = memory.turns.opening(context) if size else None
                    known = {names.get(item.id) for item in found.items} if found else set()
                    shown: set[str | None] = set()
                    total["tokens"] += found.tokens if found else 0
                    total["sessions"] += 1
                recall = memory.turns.before(prompt.text, context)
                came = {names.get(item.id) for item in recall.items} if recall else set()
                # What an earlier turn of the session showed is still there.
                shown |= came
                needs = set(prompt.needs)
                total["tokens"] += len(recall.block) // 4 if recall else 0
                total.update(
                    {"needs": len(needs), "met": len(needs & (known | shown)), "opening": len(needs & known),
                     "turn": len(needs & shown)}
                )  # fmt: skip
                if prompt.kind in UNASKED:
                    total.update({"unasked": len(needs), "unasked met": len(needs & (known | shown))})
                if not needs:
                    total.update({"idle": 1, "quiet": not came})
    return {
        "met": share(total["met"], total["needs"]),
        "by_opening": share(total["opening"], total["needs"]),
        "by_turn": share(total["turn"], total["needs"]),
        "unasked": share(total["unasked met"], total["unasked"]),
        "tokens": round(total["tokens"] / max(1, total["sessions"])),
        "silence": share(total["quiet"], total["idle"]),
    }


main = program(bench)
if __name__ == "__main__":
    main()
