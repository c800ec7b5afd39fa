"""Another embedding model for a store that is in use: what is lost, what is mixed up, and is the way back open?

python -m bench switch --facts 10000 --dims 256 --json

A store with vectors of 384 numbers is switched to others. Recalls run in the same process from before the switch until
after the way back, each for one memory that it must bring up. The worker is killed twice on the way, once before and
once after a commit. Then the former vectors must answer again, to the bit.

failed: recalls that raised. empty: recalls that did not bring up their memory. without_vectors: recalls that went by
words alone, as they may for a moment after each change. lost_facts: memories that are gone, or have no vector of the
new model. mixed_vectors: vectors of either model that are not those of their own text. seconds: from the begin of the
switch until the new model answers, kills included.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from bench.measuring import until
from bench.program import program
from bench.store import fill
from perdure.api.memory import Memory
from perdure.embed.deterministic import HashEmbedder
from perdure.engine.engine import WORKER
from perdure.errors import PerdureError
from perdure.failpoints import EXIT_CODE, VARIABLE
from perdure.index.reembed import EMBED_BATCH
from perdure.recall.options import VECTOR
from perdure.recall.receipt import Receipt
from perdure.store import spaces
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store

OLD = HashEmbedder(384)
SETTINGS: dict[str, Any] = {
    "embedder": "hash", "embedder_model": "384", "vector_index": "lance", "recall_deadline_ms": 60_000, "timers": False,
}  # fmt: skip
KILLS = ("commit.before", "commit.after")
SHARE = 6
"""An armed worker dies after one such part of the work, so that even some more deaths than two leave work to do."""
PATIENCE = 600.0
ROUNDING = 1e-6
"""Vectors may be scaled to length one twice."""
AFTERWARDS = 20
"""Recalls that must have gone well after each change before the bench goes on."""


class Asker(threading.Thread):
    """Recalls memories, one after the other, and counts."""

    def __init__(self, memory: Memory, texts: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self._memory = memory
        self._texts = texts
        self._chance = random.Random(1)
        self._stop_asking = threading.Event()
        self.recalls = self.failed = self.empty = self.without_vectors = 0

    def run(self) -> None:
        """Recall until told to stop."""
        ids = sorted(self._texts)
        while not self._stop_asking.is_set():
            self._ask(self._chance.choice(ids))

    def stop(self) -> None:
        """End after the recall that runs now."""
        self._stop_asking.set()
        self.join(PATIENCE)

    def wait(self) -> None:
        """Wait for some recalls from now on, and for one that has gone by vectors."""
        enough, before = self.recalls + AFTERWARDS, self.recalls - self.without_vectors
        _wait(lambda: self.recalls >= enough and self.recalls - self.without_vectors > before)

    def _ask(self, fact_id: str) -> None:
        receipts: list[Receipt] = []
        try:
            recall = self._memory.recall(f"What about {self._texts[fact_id]}", receipt_to=receipts.append)
            self.empty += recall is None or fact_id not in {item.id for item in recall.items}
            self.without_vectors += receipts[0].states.get(VECTOR) != "ok"
        except PerdureError:
            self.failed += 1
        self.recalls += 1


@click.option("--facts", default=10_000, help="So many memories.")
@click.option("--dims", default=256, help="Numbers in a vector of the new model.")
def bench(facts: int, dims: int) -> dict[str, Any]:
    """Switch a store of so many facts to vectors of so many numbers, and back; return the figures."""
    new = HashEmbedder(dims)
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, **SETTINGS) as memory:
        memory.ready(PATIENCE)
        store = memory._engine.store
        fill(store, facts, 1)
        memory.admin.sync_index(PATIENCE)
        texts, before = dict(_ask(store, "SELECT id, text FROM facts")), _vectors(store, OLD)
        asker = Asker(memory, texts)
        asker.start()
        asker.wait()
        began = time.perf_counter()
        kills = _switched(memory, new, facts)
        seconds = time.perf_counter() - began
        asker.wait()
        after, kept = _vectors(store, new), _vectors(store, OLD)
        with store.database.write() as connection:
            back = spaces.rollback(connection, store.clock.now())
        asker.wait()
        asker.stop()
        rollback_ok = back.id == OLD.identity.id and store.space() == back and _vectors(store, OLD) == before
        present = {row[0] for row in _ask(store, "SELECT id FROM facts WHERE forgotten_at IS NULL")}
    return {
        "facts": facts,
        "dims": dims,
        "kills": kills,
        **{name: getattr(asker, name) for name in ("recalls", "failed", "empty", "without_vectors")},
        "lost_facts": len(texts.keys() - (present & after.keys())),
        "mixed_vectors": count_wrong(texts, after, new) + count_wrong(texts, kept, OLD),
        "seconds": round(seconds, 1),
        "rollback_ok": rollback_ok,
    }


def _switched(memory: Memory, new: HashEmbedder, facts: int) -> int:
    """Switch, with deaths on the way; return how many."""
    store, worker = memory._engine.store, memory._engine._worker
    identity, number = new.identity, max(2, facts // EMBED_BATCH // SHARE)
    recipe = {"embedder": "hash", "embedder_model": str(identity.dims)}
    space = VectorSpace(identity.id, identity.dims, asdict(identity) | {"settings": recipe})
    for kill, point in enumerate(KILLS):
        # The host's own worker is armed as well: it may come first.
        with _armed(f"{point}:{number}"):
            worker.stop()
            if kill == 0:
                with store.database.write() as connection:
                    spaces.begin(connection, space, store.clock.now())
            while _worker(store.folder) != EXIT_CODE:
                if _answering(store) == space.id:
                    raise RuntimeError("the switch was over before its worker had died twice; take more facts")
    worker.stop()
    memory._engine.start_worker()
    _wait(lambda: _answering(store) == space.id)
    return len(KILLS)


def _answering(store: Store) -> str | None:
    """Return the id of the space that answers: its description changes when something is measured in it."""
    space = store.space()
    return space.id if space else None


@contextmanager
def _armed(point: str) -> Iterator[None]:
    """Let every worker that is started meanwhile die at a fail point."""
    os.environ[VARIABLE] = point
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def _worker(home: Path) -> int:
    """Run a worker until it ends; return its exit code."""
    order = json.dumps({"home": str(home), "settings": {"embedder": "hash", "vector_index": "lance"}}).encode() + b"\n"
    with subprocess.Popen([sys.executable, "-m", WORKER], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as worker:
        if worker.stdin is not None:
            worker.stdin.write(order)
            worker.stdin.flush()
        # Its stdin stays open meanwhile, or it would end by itself.
        return worker.wait(PATIENCE)


def _wait(done: Callable[[], bool]) -> None:
    if not until(done, PATIENCE):
        raise TimeoutError(f"not done after {PATIENCE} s")


def count_wrong(texts: dict[str, str], vectors: dict[str, bytes], embedder: HashEmbedder) -> int:
    """Return how many vectors are not those of their own text, rounding aside."""
    rows = dict(zip(texts, embedder.embed(list(texts.values())), strict=True))
    found = {fact_id: np.frombuffer(blob, dtype="<f4") for fact_id, blob in vectors.items()}
    return sum(
        fact_id not in rows or row.shape != rows[fact_id].shape or not np.allclose(row, rows[fact_id], atol=ROUNDING)
        for fact_id, row in found.items()
    )


def _vectors(store: Store, embedder: HashEmbedder) -> dict[str, bytes]:
    sql = "SELECT fact_id, vector FROM vectors WHERE embedding_id = ?"
    return dict(_ask(store, sql, embedder.identity.id))


def _ask(store: Store, sql: str, *values: Any) -> list[Any]:
    with store.database.read() as connection:
        return run(connection, sql, values)


main = program(bench)
