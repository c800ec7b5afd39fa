"""Kills a replay at random moments and checks that nothing acknowledged is lost.

python -m bench.kill_replay FILE --format locomo --conversation conv-26 --rounds 20 --json
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from perdure.api.memory import Memory
from perdure.cli.replay import Listener, play_dialogues, start_of
from perdure.clock import ManualClock
from perdure.files.turns import FORMATS, Dialogue, read_transcript
from perdure.hooks.fake_host import Turn
from perdure.lance.table import LanceIndex
from perdure.store import outbox
from perdure.store.store import Store

START_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Round:
    """One kill.

    Attributes:
        acknowledged: turns whose `agent_end` had returned.
        expected: facts that these turns hold, by a store that was not killed.
        lost: how many of them are not in the killed store after its next start.
        missing, orphaned: ids that LanceDB lacks or has too many, after that start.
    """

    acknowledged: int
    expected: int
    lost: int
    missing: int
    orphaned: int


class Acknowledger(Listener):
    """Tells the parent about each acknowledged turn."""

    def acknowledged(self, turn: Turn) -> None:
        """Write a byte: the parent counts them."""
        os.write(1, b".")


def child(dialogues: Sequence[Dialogue], home: Path, embedder: str) -> None:
    """Replay without waiting between turns, so that a kill finds work of every kind under way."""
    clock = ManualClock(start_of(dialogues))
    with Memory.open(home, embedder=embedder, vector_index="lance", index_batch=5) as memory:
        play_dialogues(dialogues, memory, clock, Acknowledger(), settle=False)


def killed(arguments: Sequence[str], delay: float) -> int:
    """Start the child, kill it `delay` seconds after its first acknowledgement, return how many there were."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.kill_replay", "--child", *arguments], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    count = len(os.read(process.stdout.fileno(), 1))
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate(timeout=START_PATIENCE)
    return count + len(rest)


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
    return {change.fact.text for change in memory.changes(limit=10**9) if change.action == "add"}


def check(dialogues: Sequence[Dialogue], home: Path, embedder: str, acknowledged: int) -> Round:
    """Start the killed store again and compare it with one that was not killed."""
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
        memory.sync_index()
        live = memory.live_ids()
    store = Store(home)
    space = store.space()
    assert space is not None
    with store.database.read() as connection:
        generation = outbox.index_state(connection, space.id).generation
    indexed = LanceIndex(store.lance_folder, space.id, space.dims, create=False, generation=generation).ids()
    store.close()
    lost = len(expected - found)
    return Round(acknowledged, len(expected), lost, len(live - indexed), len(indexed - live))


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), default="auto")
@click.option("--conversation")
@click.option("--rounds", default=20, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--embedder", default="auto", show_default=True)
@click.option("--json", "as_json", is_flag=True)
@click.option("--child", "home", type=click.Path(path_type=Path), hidden=True)
def main(
    file: Path,
    form: str,
    conversation: str | None,
    rounds: int,
    seed: int,
    embedder: str,
    as_json: bool,
    home: Path | None,
) -> None:
    """Kill a replay of FILE again and again."""
    if not file.exists():
        click.echo(f"skipped: {file} is not there", err=True)
        return
    dialogues = read_transcript(file, form, conversation)
    if home is not None:
        child(dialogues, home, embedder)
        return
    options = ["--format", form, "--embedder", embedder, *(["--conversation", conversation] if conversation else [])]
    result = run(dialogues, [str(file), *options], embedder, rounds, seed)
    print(json.dumps(result, indent=2 if not as_json else None))
    sys.exit(
        1 if result["lost"] or result["missing"] or result["orphaned"] or not result["every_round_acknowledged"] else 0
    )


def run(
    dialogues: Sequence[Dialogue], arguments: Sequence[str], embedder: str, rounds: int, seed: int
) -> dict[str, Any]:
    """Kill and check `rounds` times; return the sums and each round."""
    chance = random.Random(seed)
    done = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            acknowledged = killed([folder, *arguments], chance.uniform(0.0, 3.0))
            done.append(check(dialogues, Path(folder), embedder, acknowledged))
    return {
        "rounds": rounds,
        "acknowledged": sum(each.acknowledged for each in done),
        "every_round_acknowledged": all(each.acknowledged for each in done),
        "expected": sum(each.expected for each in done),
        "lost": sum(each.lost for each in done),
        "missing": sum(each.missing for each in done),
        "orphaned": sum(each.orphaned for each in done),
        "each": [asdict(each) for each in done],
    }


if __name__ == "__main__":
    main()
