"""Measures a store on PostgreSQL beside one in a folder: recall, its vectors against an exact search, and writing.

python -m bench shared --facts 10000,100000 --clients 1,4,16 --json
python -m bench shared --facts 1000000 --clients 1 --vectors-only --json

The server is started by the bench, with the defaults of PostgreSQL but for the memory in which graphs are made. Texts
are made up; vectors are blends of those that the model gives to the memories of the labelled stores, so they lie where
real ones do. Every scope has a topic: the writers whose memories its vectors are blended of. A query is one of its own
topic, or of another. Clients are processes of their own, each with a memory that it opened; all ask at once.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any, Self

import click
import psycopg

from bench.ann import DIMS, embedded, labelled
from bench.kills import Child
from bench.latency import prompts
from bench.measuring import p50, p95, timed
from bench.memories import opened
from bench.program import numbers, program
from bench.store import bind, sentences
from perdure.hooks.types import TurnContext
from perdure.index.vector_index import ExactIndex, scan
from perdure.maintenance.scrub import META as REDACTOR
from perdure.postgres.vectors import DatabaseIndex
from perdure.secrets.redact import VERSION
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.store import Server, Store
from perdure.text.normalise import fts_text
from tests.postgres.server import Server as Running
from tests.postgres.server import running

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

SHARES = (0.0001, 0.01, 0.05, 0.2)
"""Of all rows, that each measured scope has; what is left belongs to somebody else."""
REST = "rest"
SEED = 24
BATCH = 1_000
OURS = "user"
PATIENCE = 600.0
GRAPHS = "4GB"
"""Of the server's memory, for the graph of the largest scope; taken only while it is made."""
ASKER = "0.05"
"""Whose recall is timed: the one with that share of all rows."""


class Blended:
    """Vectors that are blends of two memories of one writer, with some noise."""

    def __init__(self, vectors: Vectors, writers: Sequence[str]) -> None:
        """Blend vectors of shape (memories, dims), each of the writer that is named for it."""
        import numpy as np

        self._chance = np.random.default_rng(SEED)
        self.topics = sorted(set(writers))
        self._of = [vectors[np.array(writers) == topic] for topic in self.topics]

    @classmethod
    def real(cls) -> Self:
        """Blend the vectors of the labelled stores' memories."""
        memories, _ = labelled()
        return cls(embedded(list(memories), query=False), list(memories.values()))

    def draw(self, count: int, topics: Sequence[int]) -> Vectors:
        """Return unit vectors of shape (count, dims)."""
        import numpy as np

        made = np.empty((count, DIMS), dtype=np.float32)
        for row, topic in enumerate(self._chance.choice(topics, count)):
            own = self._of[topic]
            one, other = own[self._chance.integers(0, len(own), 2)]
            made[row] = one + self._chance.uniform(0, 1) * other
        made += 0.02 * self._chance.standard_normal(made.shape).astype(np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        return made


def fill(store: Store, facts: int, blended: Blended, *, worded: bool = True) -> None:
    """Store so many facts with their words and vectors, by SQL: what is measured here is not the storing."""
    space, now = bind(store), store.clock.now()
    texts = sentences(facts, SEED)
    first = 0
    for scope, count, topics in scopes(facts, len(blended.topics)):
        for begun in range(0, count, BATCH):
            some = list(islice(texts, min(BATCH, count - begun)))
            ids = [f"{first + at:08d}-0000-4000-8000-000000000000" for at in range(len(some))]
            vectors = blended.draw(len(some), topics)
            with store.database.write(durable=False) as connection:
                connection.executemany(
                    "INSERT INTO facts (seq, id, text, created_at, last_confirmed_at, normalized_hash, scope,"
                    " scope_target, embedding_model) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [(first + at + 1, fact_id, text, now, now, fact_id, OURS, scope, space)
                     for at, (fact_id, text) in enumerate(zip(ids, some, strict=True))],
                )  # fmt: skip
                words = [(first + at + 1, fts_text(text), "", "", "", "other") for at, text in enumerate(some)]
                store.database.dialect.keep_words(connection, words if worded else [])
                connection.executemany(
                    "INSERT INTO vectors (fact_id, embedding_id, vector) VALUES (?, ?, ?)",
                    [(fact_id, space, vector.tobytes()) for fact_id, vector in zip(ids, vectors, strict=True)],
                )
                connection.executemany(
                    "INSERT INTO journal (at, action, fact_id, channel, host, batch, seal)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    # Sealed by nobody, but not to be sealed with the first memory that follows.
                    [(now, "add", fact_id, "library", "", "", bytes(16)) for fact_id in ids],
                )
            first += len(some)
    with store.database.write() as connection:
        # What is stored from now on gets a number of its own.
        list(connection.execute("DELETE FROM sqlite_sequence WHERE name = 'facts'"))
        list(connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('facts', ?)", (first,)))
    # It would else be looked for secrets when it is first opened.
    store.note(REDACTOR, str(VERSION))
    store.database.tidy(lambda: None)


def scopes(facts: int, topics: int) -> Iterator[tuple[str, int, list[int]]]:
    """Yield each scope, how many facts it has, and which topics."""
    left = facts
    for place, share in enumerate(SHARES):
        count = max(1, round(share * facts))
        left -= count
        yield str(share), count, [2 * place, 2 * place + 1]
    yield REST, left, list(range(topics))


def vector_figures(store: Store, facts: int, blended: Blended, queries: int) -> list[dict[str, Any]]:
    """Compare what the database finds with an exact search, for each scope, on its topic and off."""
    space = store.space()
    assert space is not None
    index = DatabaseIndex(store.database, space.id, DIMS)
    figures = []
    for scope, count, topics in list(scopes(facts, len(blended.topics)))[: len(SHARES)]:
        view = View(Audience.of(user=scope), store.clock.now())
        others = [topic for topic in range(len(blended.topics)) if topic not in topics]
        for name, of in (("on", topics), ("off", others)):
            found = true = 0
            times = []
            for query in blended.draw(queries, of):
                some, seconds = timed(partial(index.search, query, view, 10))
                times.append(seconds)
                hits = {hit.id for hit in some}
                right = {hit.id for hit in scan(store.database, space.id, query, view, 10)}
                found, true = found + len(hits & right), true + len(right)
            figures.append({
                "scope": float(scope), "rows": count, "topic": name, "recall_at_10": round(found / true, 4),
                **_times(times),
            })  # fmt: skip
    return figures


def matrix_ms(store: Store, blended: Blended, queries: int) -> float:
    """Return the median time of the matrix in memory of a store in a folder, for the scope whose recall is timed."""
    space = store.space()
    assert space is not None
    index, view = ExactIndex(store.database, space.id, DIMS), View(Audience.of(user=ASKER), store.clock.now())
    drawn = blended.draw(queries + 1, range(len(blended.topics)))
    return p50([timed(partial(index.search, query, view, 10))[1] for query in drawn][1:])


class Clients:
    """Processes that each have the store open."""

    def __init__(self, homes: Sequence[Path], server: Running | None, facts: int, asks: int, writes: int) -> None:
        self._server = server
        self._said: Queue[str] = Queue()
        url = server.url if server is not None else ""
        self._clients = [
            Child(client, home, url, facts, asks, writes, at, hear=self._hear) for at, home in enumerate(homes)
        ]
        for each in self._clients:
            each.begun.wait()
            self._said.get(timeout=PATIENCE)

    def measured(self) -> dict[str, Any]:
        """Have all ask, and then all write; return what that took."""
        asked, _ = self._all("ask")
        connections = self._connections()
        written, seconds = self._all("write")
        return {
            **_times(asked), "writes_per_s": round(len(written) / seconds, 1),
            **({"connections": connections} if self._server is not None else {}),
        }  # fmt: skip

    def close(self) -> None:
        """End them."""
        for each in self._clients:
            each.end()

    def _all(self, order: str) -> tuple[list[float], float]:
        began = time.perf_counter()
        for each in self._clients:
            each.say(order)
        times = [each for _ in self._clients for each in json.loads(self._said.get(timeout=PATIENCE))]
        return times, time.perf_counter() - began

    def _hear(self, line: str) -> bool:
        self._said.put(line)
        return True

    def _connections(self) -> int:
        if self._server is None:
            return 0
        with psycopg.connect(self._server.as_("postgres", "postgres")) as connection:
            sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'perdure'"
            return int(connection.execute(sql).fetchall()[0][0])


def client(home: str, url: str, facts: int, asks: int, writes: int, at: int) -> None:
    """Say that the store is open; then ask or write as told, and say what each took."""
    settings: dict[str, Any] = {"embedder": "hash", "embedder_model": str(DIMS), "timers": False}
    with opened(home, user=ASKER, **settings, **({"store_url": url} if url else {})) as memory:
        context = TurnContext(user_id=ASKER, session_id=f"bench {at}")
        asked = prompts(facts, 16 * (asks + 1))[at::16]
        memory.turns.before(asked[-1], context)
        print("open", flush=True)
        for line in sys.stdin:
            works: list[Callable[[], object]] = [partial(memory.turns.before, each, context) for each in asked[:asks]]
            if line.strip() == "write":
                said = "The part {}x{} of the machine {} is kept in shelf {}."
                texts = [said.format(at, number, time.time_ns(), number) for number in range(writes)]
                works = [partial(memory.store, text) for text in texts]
            print(json.dumps([timed(work)[1] for work in works]), flush=True)


def at_size(
    facts: int, clients: Sequence[int], blended: Blended, queries: int, asks: int, writes: int, beside: bool
) -> dict[str, Any]:
    """Measure at one size."""
    with ExitStack() as ends:
        root = Path(ends.enter_context(tempfile.TemporaryDirectory()))
        server = ends.enter_context(running())
        with psycopg.connect(server.as_("postgres", "postgres"), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET maintenance_work_mem = '{GRAPHS}'")
            connection.execute("SELECT pg_reload_conf()")
        result: dict[str, Any] = {"facts": facts}
        began = time.perf_counter()
        store = Store(root / "0", server=Server(server.url))
        fill(store, facts, blended, worded=beside)
        _tell(f"{facts} memories are there; looking for vectors")
        result["filled_s"] = round(time.perf_counter() - began, 1)
        result["vectors"] = vector_figures(store, facts, blended, queries)
        result["database_mb"] = round(_megabytes(server), 1)
        store.close()
        (root / "key").write_bytes((root / "0" / "store.key").read_bytes())
        local = root / "local"
        if beside:
            store = Store(local)
            fill(store, facts, blended)
            result["matrix_p50_ms"] = matrix_ms(store, blended, queries)
            store.close()
        for count in clients:
            for name in ("shared", "local") if beside else ("shared",):
                homes = [local] * count if name == "local" else [root / str(at) for at in range(count)]
                for home in homes:
                    home.mkdir(exist_ok=True)
                    if name == "shared":
                        (home / "store.key").write_bytes((root / "key").read_bytes())
                _tell(f"{count} clients ask and write: {name}")
                running_clients = Clients(homes, server if name == "shared" else None, facts, asks, writes)
                result.setdefault(name, {})[str(count)] = running_clients.measured()
                running_clients.close()
        return result


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _megabytes(server: Running) -> float:
    with psycopg.connect(server.url) as connection:
        return float(connection.execute("SELECT pg_database_size(current_database())").fetchall()[0][0]) / 2**20


def _times(seconds: Sequence[float]) -> dict[str, float]:
    return {"p50_ms": p50(seconds), "p95_ms": p95(seconds)}


@click.option("--facts", callback=numbers, default="10000,100000", help="Sizes, with commas.")
@click.option("--clients", callback=numbers, default="1,4,16", help="How many ask at once, with commas.")
@click.option("--queries", default=30, help="Of each scope, on its topic and off.")
@click.option("--asks", default=30, help="Of each client.")
@click.option("--writes", default=20, help="Of each client.")
@click.option("--vectors-only", is_flag=True, help="Leave out words, and the store in a folder.")
def bench(
    facts: Sequence[int], clients: Sequence[int], queries: int, asks: int, writes: int, vectors_only: bool
) -> Iterator[dict[str, Any]]:
    """Measure at each size; a line of JSON for each."""
    blended = Blended.real()
    for size in facts:
        yield at_size(size, clients, blended, queries, asks, writes, not vectors_only)


main = program(bench)
