"""What it costs to keep facts: time of a durable write, bulk import, opening, memory, disk.

python -m bench store --sizes 1000,10000,100000 --json

Times are given as they are and as ratios to a bare synchronous SQLite commit of the same bytes. All sizes and the
bare database are written to in turn: what else a disk is busy with slows all of them alike.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

import apsw
import click

from bench.measuring import p50, script, tells_rss, timed
from bench.program import numbers, program
from perdure.api.memory import Memory
from perdure.embed.deterministic import HashEmbedder
from perdure.hooks.types import Channel
from perdure.lance.indexer import Indexer
from perdure.store.fact import Fact
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector

AUTHOR = Author(Channel.LIBRARY, "bench")
EMBEDDER = HashEmbedder(384)
BULK = 1_000
SAMPLES = 200
INDEX_BATCH = 50
PROBE = """
from perdure.api.memory import Memory
with Memory.open(sys.argv[1], embedder=sys.argv[2]) as memory:
    ready = memory.ready()
    memory.store("The probe of this bench is called zephyr.")
    recall = memory.recall("What is the probe called?")
    memory.settle()
    print(json.dumps([ready, recall is not None, rss()]))
"""


def sentences(count: int, seed: int) -> Iterator[str]:
    """Yield sentences of about a dozen words, no two alike, from a vocabulary as skewed as a language's."""
    chance = random.Random(seed)
    words = ["".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(3)) for _ in range(5_000)]
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))
    for number in range(count):
        yield f"{' '.join(chance.choices(words, cum_weights=weights, k=12)).capitalize()} {seed}x{number}."


def rows(texts: list[str], space_id: str) -> list[tuple[Fact, StoredVector]]:
    """Return facts with their vectors."""
    vectors = EMBEDDER.embed(texts)
    return [
        (Fact(text, channel=Channel.LIBRARY, scope="user", scope_target="owner"),
         StoredVector(space_id, vector.astype("<f4").tobytes()))
        for text, vector in zip(texts, vectors, strict=True)
    ]  # fmt: skip


def bind(store: Store) -> str:
    """Give the store the vector space of the bench, unless it has one; return its id."""
    space = store.space()
    if space is not None:
        return space.id
    identity = EMBEDDER.identity
    store.adopt_space(VectorSpace(identity.id, identity.dims, asdict(identity)))
    return identity.id


def fill(store: Store, count: int, seed: int) -> float:
    """Import facts in bulk; return how many in a second of writing."""
    space_id = bind(store)
    texts = list(sentences(count, seed))
    seconds = 0.0
    for start in range(0, count, BULK):
        part = rows(texts[start : start + BULK], space_id)
        began = time.perf_counter()
        with store.write(AUTHOR) as tx:
            for fact, vector in part:
                tx.add(fact, vector)
        seconds += time.perf_counter() - began
    return count / seconds


def bare_database(path: Path) -> apsw.Connection:
    """Return a database with one plain table, with the same pragmas that decide what a commit costs."""
    connection = apsw.Connection(str(path))
    run(connection, "PRAGMA journal_mode = WAL")
    run(connection, "PRAGMA synchronous = FULL")
    run(connection, "CREATE TABLE IF NOT EXISTS bare (id TEXT PRIMARY KEY, text TEXT, vector BLOB)")
    return connection


def write_costs(stores: list[Store], bare: apsw.Connection) -> tuple[list[float], float]:
    """Return the median milliseconds of a durable write to each store, and of a bare one, all made in turn."""
    ours: list[list[float]] = [[] for _ in stores]
    theirs = []
    for number, (fact, vector) in enumerate(rows(list(sentences(SAMPLES, 200)), bind(stores[0]))):
        for store, times in zip(stores, ours, strict=True):
            began = time.perf_counter()
            with store.write(AUTHOR) as tx:
                tx.add(fact, vector)
            times.append(time.perf_counter() - began)
        began = time.perf_counter()
        # Outside of a transaction every statement is one.
        run(bare, "INSERT INTO bare VALUES (?, ?, ?)", (str(number), fact.text, vector.blob))
        theirs.append(time.perf_counter() - began)
    return [statistics.median(times) * 1000 for times in ours], statistics.median(theirs) * 1000


def open_ms(home: Path) -> float:
    """Return the median milliseconds that it takes to open the store in a process that has imported perdure."""
    times = []
    for _ in range(5):
        memory, seconds = timed(lambda: Memory.open(home, embedder="none"))
        times.append(seconds)
        memory.close()
    return p50(times, 1)


def rss_mb(home: Path, embedder: str) -> float | None:
    """Return the resident megabytes of a process that has stored and recalled; None where it cannot be read."""
    if not tells_rss():
        return None
    ready, recalled, megabytes = script(PROBE, home, embedder)
    if not recalled or (embedder != "none" and not ready):
        raise RuntimeError(f"the probe of {embedder} was not recalled, or its model is not there")
    return round(float(megabytes), 1)


def at_sizes(folder: Path, sizes: list[int], model: bool) -> list[dict[str, Any]]:
    """Make a store of each size and measure it."""
    embedder = "auto" if model else "none"
    homes = {size: folder / str(size) for size in sorted(sizes)}
    rates, stores = [], []
    for size, home in homes.items():
        with Memory.open(home, embedder=embedder) as memory:
            memory.ready()  # binds the store to the space of the model, if there is one
        stores.append(Store(home))
        rates.append(fill(stores[-1], size, 100))
    bare = bare_database(folder / "bare.db")
    costs, bare_cost = write_costs(stores, bare)
    bare.close()
    for store in stores:
        store.close()
    return [
        {
            "facts": size,
            "import_per_second": round(rate),
            "write_p50_ms": round(cost, 3),
            "bare_p50_ms": round(bare_cost, 3),
            "ratio_to_bare": round(cost / bare_cost, 2),
            "open_ms": open_ms(home),
            "rss_mb": rss_mb(home, embedder),
            "rss_without_model_mb": rss_mb(home, "none"),
        }
        for (size, home), rate, cost in zip(homes.items(), rates, costs, strict=True)
    ]


def disk(folder: Path, writes: int) -> dict[str, float]:
    """Write facts one by one, indexed as the worker does it; return the disk's use as multiples of the raw bytes."""
    store = Store(folder)
    raw, peak = 0, 0.0
    indexer = Indexer(store, lambda: None, INDEX_BATCH)
    for number, (fact, vector) in enumerate(rows(list(sentences(writes, 7)), bind(store)), start=1):
        with store.write(AUTHOR) as tx:
            tx.add(fact, vector)
        raw += len(fact.text.encode()) + len(vector.blob)
        if number % INDEX_BATCH == 0:
            while indexer.step():
                peak = max(peak, size_of(folder))
    while indexer.step():
        peak = max(peak, size_of(folder))
    indexer.close()
    connection = apsw.Connection(str(folder / "facts.db"))
    run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    peak = max(peak, size_of(folder))
    settled = size_of(folder)
    expire_versions(store.lance_folder)
    result = {
        "raw_mb": round(raw / 1e6, 2),
        "peak": round(peak / raw, 2),
        "before_expiry": round(settled / raw, 2),
        "after_expiry": round(size_of(folder) / raw, 2),
        "of_that_sqlite": round((folder / "facts.db").stat().st_size / raw, 2),
    }
    store.close()
    return result


def expire_versions(folder: Path) -> None:
    """Do at once what happens an hour later: former versions of the LanceDB table go."""
    import lancedb

    database = lancedb.connect(folder)
    for name in database.list_tables().tables:
        database.open_table(name).optimize(cleanup_older_than=timedelta(milliseconds=1))


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum((Path(base) / name).stat().st_size for base, _, names in os.walk(folder) for name in names)


@click.option("--sizes", callback=numbers, default="1000,10000,100000", help="Facts in the store, at least 1 each.")
@click.option("--writes", default=2_000, help="Single writes for the measure of the disk.")
@click.option("--model/--no-model", default=True, help="Measure memory with the default model loaded.")
def bench(sizes: list[int], writes: int, model: bool) -> dict[str, Any]:
    """Measure the store at each size, and its disk."""
    with tempfile.TemporaryDirectory() as folder:
        measured = at_sizes(Path(folder), sizes, model)
        used = disk(Path(folder) / "single", writes)
    return {
        "sizes": measured,
        "growth": round(measured[-1]["write_p50_ms"] / measured[0]["write_p50_ms"], 2),
        "single_writes": writes,
        "disk_multiple_of_raw": used,
    }


main = program(bench)
