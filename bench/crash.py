"""Kills a process that writes, at random moments and at every fail point, and checks what is left.

python -m bench.crash --kills 200 --json

All that the process had acknowledged must be there, once and in its state; what it was doing when it died must be
done or not done; words, vectors and the LanceDB table must say what the facts say.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import apsw
import click

from bench.crash_child import ABSENT, FORGOTTEN, LIVE, MARKER, PARKED, SUPERSEDED, bring_up, play
from perdure.api.memory import Memory
from perdure.embed.deterministic import HashEmbedder
from perdure.engine.settings import Settings
from perdure.failpoints import EXIT_CODE, FAIL_POINTS, VARIABLE
from perdure.store.fact import live_sql, vector_text
from perdure.store.sql import Connection, run
from perdure.store.store import Store

SETTINGS: dict[str, Any] = {"embedder": "hash", "vector_index": "lance", "index_batch": 5, "timers": False}
"""Without timers: the canary's fact has no marker."""
ROUNDS_PER_HOME = 12
PATIENCE = 90.0
FIRST_START = frozenset({"migrate.begun", "migrate.stepped", "migrate.committed", "lance.creating"})
"""Fail points that only a new store passes, once."""
_ONCE = (
    "worker.", "lance.", "inbox.emptied", "inbox.kept_aside", "inbox.adopted", "inbox.removed", "drain.",
    "indexer.embedded",
)  # fmt: skip
"""Beginnings of fail points that are passed so seldom that the first time must do."""


@dataclass
class Story:
    """What one data folder must hold, by what its processes told.

    Attributes:
        states: the state of each marker whose change was acknowledged.
        pending: the change that was begun and not acknowledged.
    """

    home: Path
    states: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)

    def hear(self, line: str) -> bool:
        """Take in a line of the child; return whether it was an acknowledgement."""
        if line.startswith("{"):
            self.pending = json.loads(line)
            return False
        self.states |= self.pending
        self.pending = {}
        return True


@dataclass
class Verdict:
    """What was wrong after a kill."""

    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    diverged: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """All of it."""
        return [*self.lost, *self.duplicated, *self.diverged]


def start(home: Path, seed: int, fail_point: str | None, *, index: bool) -> subprocess.Popen[str]:
    """Start a child in a process group of its own, so that its worker can be killed with it."""
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    if fail_point is not None:
        environment[VARIABLE] = fail_point
    command = [sys.executable, "-m", "bench.crash", "--child", str(home), "--seed", str(seed)]
    return subprocess.Popen(
        [*command, *(["--index"] if index else [])],
        stdout=subprocess.PIPE,
        env=environment,
        cwd=Path(__file__).parents[1],
        text=True,
        start_new_session=True,
    )


def killed_at_random(story: Story, seed: int, chance: random.Random) -> int:
    """Let a child work and kill it; return how many acknowledgements there were."""
    process = start(story.home, seed, None, index=chance.random() < 0.3)
    assert process.stdout is not None
    acknowledged = 0
    timer = threading.Timer(chance.uniform(0.05, 1.5), os.killpg, (process.pid, signal.SIGKILL))
    for line in process.stdout:
        acknowledged += _hear(story, line)
        if acknowledged == 1 and not timer.is_alive():
            timer.start()
    process.wait()
    timer.join()
    _bury(process)
    return acknowledged


def killed_at(story: Story, seed: int, fail_point: str) -> tuple[int, bool]:
    """Let a child work until it reaches a fail point; return its acknowledgements and whether it got there."""
    process = start(story.home, seed, fail_point, index=True)
    assert process.stdout is not None
    timer = threading.Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    acknowledged = sum(_hear(story, line) for line in process.stdout)
    process.wait()
    timer.cancel()
    _bury(process)
    if process.returncode not in (0, EXIT_CODE):
        raise RuntimeError(f"the child ended with {process.returncode} on its way to {fail_point}")
    return acknowledged, process.returncode == EXIT_CODE


def _hear(story: Story, line: str) -> bool:
    # The last line of a killed process may be torn: what it did not finish saying was not acknowledged.
    return line.endswith("\n") and story.hear(line.rstrip("\n"))


def _bury(process: subprocess.Popen[str]) -> None:
    if process.stdout is not None:
        process.stdout.close()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # its worker is gone with it


def check(story: Story) -> Verdict:
    """Open the store again, let it recover, and compare it with the story."""
    with Memory.open(story.home, **SETTINGS) as memory:
        memory.ready()
        memory.settle()
    bring_up(story.home, Settings.load(SETTINGS, environ={}))
    verdict = Verdict(diverged=divergence(story.home))
    found, counts = states(story.home)
    verdict.duplicated = [marker for marker, count in counts.items() if count > 1]
    verdict.lost = [f"{marker} is {found.get(marker, ABSENT)}, not {state}" for marker, state in story.states.items()
                    if marker not in story.pending and found.get(marker, ABSENT) != state]  # fmt: skip
    done = {marker: found.get(marker, ABSENT) for marker in story.pending}
    undone = {marker: story.states.get(marker, ABSENT) for marker in story.pending}
    if done not in (story.pending, undone):
        verdict.diverged.append(f"half of a change was kept: {done}")
    known = story.states.keys() | story.pending.keys()
    verdict.diverged += [f"{marker} came from nowhere" for marker in found.keys() - known]
    story.states |= done
    story.pending = {}
    return verdict


def states(home: Path) -> tuple[dict[str, str], Counter[str]]:
    """Return the state of each marker in a store, and how many facts hold it."""
    store = Store(home)
    with store.database.read() as connection:
        rows = run(connection, "SELECT text, superseded_at, forgotten_at FROM facts")
        parked = run(connection, "SELECT entry FROM inbox_parked")
    store.close()
    found: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for text, superseded_at, forgotten_at in rows:
        [marker] = MARKER.findall(text)
        counts[marker] += 1
        found[marker] = SUPERSEDED if superseded_at else FORGOTTEN if forgotten_at else LIVE
    for (entry,) in parked:
        [marker] = set(MARKER.findall(entry))
        counts[marker] += 1
        found[marker] = PARKED
    return found, counts


def divergence(home: Path) -> list[str]:
    """Return in what the parts of a store disagree, a line each. The index must have been brought up."""
    store = Store(home)
    now = store.clock.now()
    space = store.space()
    problems = []
    with store.database.read() as connection:
        problems += [f"integrity: {row[0]}" for row in run(connection, "PRAGMA integrity_check") if row[0] != "ok"]
        problems += [f"foreign key: {row}" for row in run(connection, "PRAGMA foreign_key_check")]
        problems += _words(connection)
        condition, values = live_sql(now)
        live = run(connection, f"SELECT id, text, entity, key FROM facts WHERE {condition}", values)
        unsaid = "SELECT count(*) FROM facts WHERE id NOT IN (SELECT fact_id FROM journal WHERE action = 'add')"
        problems += [f"{n} facts without a journal entry" for (n,) in run(connection, unsaid) if n]
        stored: dict[str, bytes] = dict(run(connection, "SELECT fact_id, vector FROM vectors"))
    if space is not None:
        problems += _vectors(live, stored)
        rows = lance_ids(home)
        problems += [f"LanceDB has {n} rows of {fact_id}" for fact_id, n in Counter(rows).items() if n > 1]
        wanted = {row[0] for row in live}
        problems += [f"LanceDB lacks {fact_id}" for fact_id in wanted - set(rows)]
        problems += [f"LanceDB has {fact_id}, which is not live" for fact_id in set(rows) - wanted]
        problems += [f"{store.outbox_state().waiting} outbox entries wait"] if store.outbox_state().waiting else []
    store.close()
    return problems


def _vectors(live: list[tuple[Any, ...]], stored: Mapping[str, bytes]) -> list[str]:
    import numpy as np

    fresh = HashEmbedder().embed([vector_text(*row[1:]) for row in live])
    problems = [f"{row[0]} has no vector" for row in live if row[0] not in stored]
    for row, vector in zip(live, fresh, strict=True):
        blob = stored.get(row[0])
        # The last bits of a vector depend on how many were made at once.
        if blob is not None and not np.allclose(np.frombuffer(blob, "<f4"), vector, atol=1e-5):
            problems.append(f"vector of {row[0]} is not that of its text")
    return problems


def _words(connection: Connection) -> list[str]:
    """Compare the word index with one that is built afresh from the facts."""
    from perdure.text.normalise import fts_text

    [(sql,)] = run(connection, "SELECT sql FROM sqlite_schema WHERE name = 'facts_fts'")
    rows = run(connection, "SELECT seq, text, entity, key, value, category FROM facts")
    indexed = {row[0] for row in run(connection, "SELECT rowid FROM facts_fts")}
    condition, values = live_sql(time.time())
    live = {row[0] for row in run(connection, f"SELECT seq FROM facts WHERE {condition}", values)}
    problems = [f"fact row {seq} has no words" for seq in live - indexed]
    problems += [f"words of no fact in row {seq}" for seq in indexed - {row[0] for row in rows}]
    fresh = apsw.Connection(":memory:")
    run(fresh, sql)
    insert = "INSERT INTO facts_fts (rowid, text, entity, key, value, category) VALUES (?, ?, ?, ?, ?, ?)"
    fresh.executemany(
        insert, [(seq, *(fts_text(text or "") for text in texts)) for seq, *texts in rows if seq in indexed]
    )
    instances = "CREATE VIRTUAL TABLE temp.instances USING fts5vocab (main, facts_fts, instance)"
    terms = []
    for each in (connection, fresh):
        run(each, instances)
        terms.append(set(run(each, "SELECT term, doc, col, offset FROM temp.instances")))
        run(each, "DROP TABLE temp.instances")
    fresh.close()
    return problems + [f"word index: {len(terms[0] ^ terms[1])} entries differ"] * (terms[0] != terms[1])


def lance_ids(home: Path) -> list[str]:
    """Return the ids in the LanceDB table, each as often as it is in there."""
    import lancedb

    database = lancedb.connect(home / "lancedb")
    ids: list[str] = []
    for name in database.list_tables().tables:
        ids += database.open_table(name).to_arrow()["id"].to_pylist()
    return ids


def plan(kills: int, chance: random.Random) -> list[str | None]:
    """Return the fail points to die at, in turn; None: at a random moment. About half and half."""
    points: list[str | None] = [*sorted(FAIL_POINTS)]
    chance.shuffle(points)
    repeats = max(1, kills // 2 // len(points))
    chosen = (points * repeats)[:kills]
    chosen += [None] * (kills - len(chosen))
    chance.shuffle(chosen)
    return chosen


def bench(kills: int, seed: int, trace: IO[str] | None = None) -> dict[str, Any]:
    """Kill and check; return the sums."""
    chance = random.Random(seed)
    total = Verdict()
    acknowledged, hit, missed = 0, Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        story = Story(Path(folder) / "0")
        for number, point in enumerate(plan(kills, chance)):
            if number % ROUNDS_PER_HOME == 0 or point in FIRST_START:
                story = Story(Path(folder) / str(number))
            if point is None:
                acknowledged += killed_at_random(story, number, chance)
            else:
                count = 1 if point in FIRST_START or point.startswith(_ONCE) else chance.randint(1, 12)
                heard, reached = killed_at(story, number, f"{point}:{count}")
                if not reached:
                    again, reached = killed_at(story, number, f"{point}:1")
                    heard += again
                acknowledged += heard
                (hit if reached else missed)[point] += 1
            verdict = check(story)
            total.lost += verdict.lost
            total.duplicated += verdict.duplicated
            total.diverged += verdict.diverged
            if trace is not None:
                trace.write(f"{number + 1}/{kills} {point or 'random'}: {acknowledged} acknowledged, {verdict}\n")
    return {
        "kills": kills,
        "acknowledged": acknowledged,
        "fail_points_hit": len(hit),
        "fail_points_known": len(FAIL_POINTS),
        "fail_points_missed": sorted(missed.keys() - hit.keys()),
        "lost": len(total.lost),
        "duplicated": len(total.duplicated),
        "diverged": len(total.diverged),
        "problems": total.problems[:20],
    }


@click.command()
@click.option("--kills", default=200, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True)
@click.option("--trace", is_flag=True, help="Tell about each kill on stderr.")
@click.option("--child", "home", type=click.Path(path_type=Path), hidden=True)
@click.option("--index", is_flag=True, hidden=True)
def main(kills: int, seed: int, as_json: bool, trace: bool, home: Path | None, index: bool) -> None:
    """Kill a writing process again and again."""
    if home is not None:
        play(home, seed, SETTINGS, index=index)
        return
    result = bench(kills, seed, sys.stderr if trace else None)
    print(json.dumps(result) if as_json else "\n".join(f"{key}: {value}" for key, value in result.items()))
    sys.exit(1 if result["lost"] or result["duplicated"] or result["diverged"] else 0)


if __name__ == "__main__":
    main()
