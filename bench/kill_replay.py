"""Kills a replay at random moments and checks that nothing acknowledged is lost.

python -m bench kill_replay FILE --format locomo --conversation conv-26 --rounds 20 --json
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bench.kills import Child
from bench.program import SkippedError, program
from perdure.api.memory import Memory
from perdure.cli.replay import Listener, play_dialogues, start_of
from perdure.clock import ManualClock
from perdure.files.turns import FORMATS, Dialogue, read_transcript
from perdure.hooks.fake_host import Turn
from perdure.lance.table import LanceIndex
from perdure.store import outbox
from perdure.store.store import Store

WRONG = ("lost", "missing", "orphaned")


class Acknowledger(Listener):
    """Tells the parent about each acknowledged turn."""

    def acknowledged(self, turn: Turn) -> None:
        """Write a line: the parent counts them."""
        os.write(1, b".\n")


def replay(home: str, file: str, form: str, conversation: str | None, embedder: str) -> None:
    """Replay without waiting between turns, so that a kill finds work of every kind under way."""
    dialogues = read_transcript(Path(file), form, conversation)
    with Memory.open(home, embedder=embedder, vector_index="lance", index={"vectors": 5}) as memory:
        play_dialogues(dialogues, memory, ManualClock(start_of(dialogues)), Acknowledger(), settle=False)


def first_exchanges(dialogues: Sequence[Dialogue], count: int) -> list[Dialogue]:
    """Return the dialogues cut off behind this many exchanges."""
    kept = []
    for dialogue in dialogues:
        kept.append(Dialogue(dialogue.session, dialogue.exchanges[:count]))
        count -= len(kept[-1].exchanges)
        if count <= 0:
            break
    return kept


def texts(memory: Memory) -> set[str]:
    """Return the texts of all facts that were ever added."""
    return {change.fact.text for change in memory.admin.changes(limit=10**9) if change.action == "add"}


def check(dialogues: Sequence[Dialogue], home: Path, embedder: str, acknowledged: int) -> dict[str, int]:
    """Start the killed store again and compare it with one that was not killed.

    `missing`, `orphaned`: ids that LanceDB lacks or has too many.
    """
    part = first_exchanges(dialogues, acknowledged)
    with tempfile.TemporaryDirectory() as other:
        clock = ManualClock(start_of(dialogues))
        with Memory.open(other, embedder="none") as memory:
            play_dialogues(part, memory, clock, Listener())
            expected = texts(memory)
    with Memory.open(home, embedder=embedder, vector_index="lance") as memory:
        memory.ready()
        memory.settle()
        found = texts(memory)
        memory.admin.sync_index()
        live = memory.admin.live_ids()
    store = Store(home)
    space = store.space()
    assert space is not None
    with store.database.read() as connection:
        generation = outbox.index_state(connection, space.id).generation
    indexed = LanceIndex(store.lance_folder, space.id, space.dims, create=False, generation=generation).ids()
    store.close()
    return {
        "acknowledged": acknowledged, "expected": len(expected), "lost": len(expected - found),
        "missing": len(live - indexed), "orphaned": len(indexed - live),
    }  # fmt: skip


@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), default="auto")
@click.option("--conversation")
@click.option("--rounds", default=20)
@click.option("--seed", default=1)
@click.option("--embedder", default="auto")
def bench(
    file: Path,
    form: str = "auto",
    conversation: str | None = None,
    embedder: str = "auto",
    rounds: int = 20,
    seed: int = 1,
) -> dict[str, Any]:
    """Kill a replay of FILE soon after its first acknowledgement, and check, again and again."""
    if not file.exists():
        raise SkippedError(f"{file} is not there")
    dialogues, chance, done = read_transcript(file, form, conversation), random.Random(seed), []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            delay = chance.uniform(0.0, 3.0)
            child = Child(replay, folder, file, form, conversation, embedder)
            child.begun.wait()
            time.sleep(delay)
            child.kill()
            done.append(check(dialogues, Path(folder), embedder, child.acknowledged))
    return {
        "rounds": rounds,
        **{name: sum(each[name] for each in done) for name in done[0]},
        "every_round_acknowledged": all(each["acknowledged"] for each in done),
        "each": done,
    }


main = program(bench, failed=lambda found: any(found[key] for key in WRONG) or not found["every_round_acknowledged"])
