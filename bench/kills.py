"""What all benches that kill share: processes that tell what they do, and what is left of it afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import apsw

from perdure.embed.deterministic import HashEmbedder
from perdure.failpoints import VARIABLE
from perdure.store.fact import live_sql, vector_text
from perdure.store.sql import Connection, run
from perdure.store.store import Store

MARKER = re.compile(r"\bmk[0-9a-f]+q\d+\b")
"""The word by which a fact is known."""
PATIENCE = 30.0
"""Seconds for hearing out a process that has ended: what it left behind may keep its output open."""
LIVE, SUPERSEDED, FORGOTTEN, PARKED, ABSENT = "live", "superseded", "forgotten", "parked", "absent"


class Child:
    """A process that runs a function of a bench in a group of its own, and is heard line by line.

    `hear` takes each line and returns whether it acknowledges something; arguments are given as JSON.
    """

    def __init__(
        self, function: Callable[..., None], *arguments: Any, hear: Callable[[str], bool] = bool,
        fail_point: str | None = None, stderr: IO[str] | int | None = None, options: Sequence[str] = (),
    ) -> None:  # fmt: skip
        environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
        spec = sys.modules[function.__module__].__spec__
        assert spec is not None
        source = f"import json, sys; from {spec.name} import {function.__name__} as run; run(*json.loads(sys.argv[1]))"
        self.process = subprocess.Popen(
            [sys.executable, *options, "-c", source, json.dumps(arguments, default=str)],
            env=environment | ({VARIABLE: fail_point} if fail_point else {}), cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdin is not None
        self._input = self.process.stdin
        self.acknowledged = 0
        self.begun = threading.Event()
        """Set by the first acknowledgement, or by the end."""
        self._hear = hear
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self, seconds: float | None = None) -> int:
        """Wait for its end and until all that it said is heard; return its exit code."""
        code = self.process.wait(seconds)
        self._reader.join(PATIENCE)
        self._input.close()
        return code

    def say(self, line: str) -> None:
        """Write a line to its standard input."""
        self._input.write(f"{line}\n")
        self._input.flush()

    def end(self) -> int:
        """Close its standard input, and wait for it to end."""
        self._input.close()
        return self.wait()

    def kill(self) -> int:
        """Kill it alone."""
        self.process.kill()
        return self.wait()

    def bury(self) -> int:
        """Kill it, and whatever it started and left behind."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            for line in self.process.stdout:
                # The last line of a killed process may be torn: what it did not finish saying was not said.
                if line.endswith("\n") and self._hear(line.rstrip("\n")):
                    self.acknowledged += 1
                    self.begun.set()
        finally:
            self.process.stdout.close()
            self.begun.set()


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

    def add(self, other: Verdict) -> None:
        """Take in another one."""
        self.lost += other.lost
        self.duplicated += other.duplicated
        self.diverged += other.diverged

    def told_of(self, name: str) -> Verdict:
        """Return the same, each line with the name of what it was found in."""
        return Verdict(*([f"{name}: {line}" for line in some] for some in (self.lost, self.duplicated, self.diverged)))

    def figures(self) -> dict[str, int]:
        """Return how much was wrong."""
        return {name: len(getattr(self, name)) for name in ("lost", "duplicated", "diverged")}


@dataclass
class Story:
    """What a data folder must hold: the state of each marker that was acknowledged, and a change that was begun."""

    home: Path
    states: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)

    def hear(self, line: str) -> bool:
        """Take in a line of a process; return whether it was an acknowledgement."""
        if line.startswith("{"):
            self.pending = json.loads(line)
            return False
        self.states |= self.pending
        self.pending = {}
        return True

    def compare(self) -> Verdict:
        """Compare it with the folder; what was begun may be done or not, and is known afterwards."""
        found, counts = states(self.home)
        verdict = Verdict(duplicated=[marker for marker, count in counts.items() if count > 1])
        verdict.lost = [f"{marker} is {found.get(marker, ABSENT)}, not {state}" for marker, state in self.states.items()
                        if marker not in self.pending and found.get(marker, ABSENT) != state]  # fmt: skip
        done = {marker: found.get(marker, ABSENT) for marker in self.pending}
        undone = {marker: self.states.get(marker, ABSENT) for marker in self.pending}
        if done not in (self.pending, undone):
            verdict.diverged.append(f"half of a change was kept: {done}")
        known = self.states.keys() | self.pending.keys()
        verdict.diverged += [f"{marker} came from nowhere" for marker in found.keys() - known]
        self.states |= done
        self.pending = {}
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
