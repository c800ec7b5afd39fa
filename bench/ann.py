"""Measures the indexes: how well and how fast the matrix, FTS5 and LanceDB answer, and which is faster from where on.

python -m bench ann --size 100000 --beside 100000 --beside 400000 --json

Sizes are those of made-up vectors. Under `beside` stands a whole store at each of these sizes, its words and vectors
once as SQLite has them (FTS5, and the matrix in memory) and once in LanceDB, asked the same questions in turn: times,
what of the best ten is the same, and room on the disk. Under `real` stand the memories of the labelled stores, embedded
by the model, and their prompts: once when everybody may read all of them, once when each writer's agent asks for its
own.
"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.measuring import p50, p95, timed
from bench.program import program
from bench.store import sentences
from perdure.embed.load import load_default
from perdure.hooks.types import Channel
from perdure.index.vector_index import ExactIndex, VectorHit, scan
from perdure.lance.indexer import Indexer
from perdure.lance.tiered import TieredIndex
from perdure.store.scope import GLOBAL, Audience, Scope
from perdure.store.search import View, lexical
from perdure.store.spaces import VectorSpace
from perdure.store.sql import dialect, run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector
from perdure.text.normalise import fts_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

DIMS = 384
SPACE = VectorSpace("bench", DIMS, {"model": "synthetic"})
AUTHOR = Author(Channel.LIBRARY)
FACTORS = 32
"""Directions in which the vectors differ: sentences differ in far fewer ways than a vector has numbers."""
CHANGED = 30
PATIENCE = 600.0
LABELLED = Path(__file__).parents[1] / "training" / "data" / "train" / "stores"
EMBEDDED = 32
"""Texts that are embedded at a time."""


class Synthetic:
    """Unit vectors that lie near a low-dimensional surface in some thousand clusters, as those of sentences do."""

    def __init__(self, seed: int, size: int) -> None:
        import numpy as np

        self._chance = np.random.default_rng(seed)
        self._directions = self._chance.standard_normal((FACTORS, DIMS)).astype(np.float32)
        self._centres = self._chance.standard_normal((max(1, size // 100), FACTORS)).astype(np.float32)

    def draw(self, count: int) -> Vectors:
        """Return float32 of shape (count, dims), each of length one."""
        import numpy as np

        centres = self._centres[self._chance.integers(0, len(self._centres), count)]
        factors = centres + 0.7 * self._chance.standard_normal((count, FACTORS)).astype(np.float32)
        noise = self._chance.standard_normal((count, DIMS)).astype(np.float32)
        vectors: Vectors = factors @ self._directions + noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


def fill(
    store: Store,
    vectors: Vectors,
    first: int = 0,
    scopes: Sequence[Scope] | None = None,
    texts: Sequence[str] | None = None,
) -> list[str]:
    """Store a fact for each vector, by SQL: what is measured here is not the storing. Words are kept of given texts."""
    scopes = scopes or [GLOBAL] * len(vectors)
    store.adopt_space(SPACE)
    ids = [f"{first + number:08d}-0000-4000-8000-000000000000" for number in range(len(vectors))]
    now = store.clock.now()
    with store.database.write(durable=False) as connection:
        connection.executemany(
            "INSERT INTO facts (id, text, created_at, normalized_hash, scope, scope_target) VALUES (?, ?, ?, ?, ?, ?)",
            (
                (fact_id, text, now, fact_id, scope.kind, scope.target)
                for fact_id, scope, text in zip(ids, scopes, texts or [f"fact {each}" for each in ids], strict=True)
            ),
        )
        if texts is not None:
            rows = run(connection, "SELECT seq, text, category FROM facts ORDER BY seq")
            words = ((seq, fts_text(text), "", "", "", category) for seq, text, category in rows)
            dialect(connection).keep_words(connection, words)
        connection.executemany(
            "INSERT INTO vectors VALUES (?, ?, ?)",
            ((fact_id, SPACE.id, vector.tobytes()) for fact_id, vector in zip(ids, vectors, strict=True)),
        )
        connection.executemany(
            "INSERT INTO journal (at, action, fact_id, channel, host, batch) VALUES (?, 'add', ?, 'library', '', '')",
            ((now, fact_id) for fact_id in ids),
        )
        connection.executemany("INSERT INTO outbox (fact_id, queued_at) VALUES (?, ?)", ((each, now) for each in ids))
    return ids


def index_all(store: Store, size: int) -> float:
    """Do the worker's work; return the seconds that it took."""
    began = time.perf_counter()
    indexer = Indexer(store, lambda: None, 50, crossover=size)
    while indexer.step():
        pass
    indexer.close()
    return time.perf_counter() - began


def median_ms(search: Callable[[Vectors], object], queries: Vectors) -> float:
    """Return the median time of a search, in milliseconds."""
    return p50([timed(partial(search, query))[1] for query in queries])


def recall(found: Sequence[Sequence[VectorHit]], true: Sequence[Sequence[VectorHit]]) -> float:
    """Return the share of the true hits that were found."""
    both = sum(len({hit.id for hit in some} & {hit.id for hit in all_}) for some, all_ in zip(found, true, strict=True))
    return round(both / sum(len(each) for each in true), 4)


def change(store: Store, ids: Sequence[str], queries: Vectors) -> tuple[set[str], set[str]]:
    """Change facts near the queries, without indexing that; return the ids that must come up now, and that must not."""
    view = View(Audience.of(), store.clock.now())
    wrong = [scan(store.database, SPACE.id, query, view, 1)[0].id for query in queries[:CHANGED]]
    wrong = list(dict.fromkeys(wrong))
    fresh = fill(store, queries[:CHANGED], first=len(ids))
    updated = [fact_id for fact_id in ids[-3 * CHANGED :] if fact_id not in set(wrong)][:CHANGED]
    half = len(wrong) // 2
    with store.write(AUTHOR) as tx:
        for fact_id in wrong[:half]:
            tx.supersede(fact_id, fresh[0])
        for fact_id, query in zip(updated, queries[-CHANGED:], strict=False):
            tx.put_vector(fact_id, StoredVector(SPACE.id, query.tobytes()))
    with store.database.write() as connection:
        for fact_id in wrong[half:]:
            run(connection, "DELETE FROM facts WHERE id = ?", (fact_id,))
            connection.execute("INSERT INTO outbox (fact_id, queued_at) VALUES (?, 0)", (fact_id,))
    return {*fresh, *updated}, set(wrong)


class Sized:
    """A store of one size, measured."""

    def __init__(self, folder: Path, size: int, queries: int, seed: int) -> None:
        made = Synthetic(seed, size)
        self.size = size
        self.store = Store(folder)
        self.ids = fill(self.store, made.draw(size))
        self.queries = made.draw(queries)
        self.build_s = index_all(self.store, size)
        self.index = TieredIndex(self.store, SPACE, crossover=size - CHANGED, patience=PATIENCE)
        self._lance(self.queries[0])
        if not self.index.wait(PATIENCE):
            raise click.ClickException("LanceDB could not be opened")

    def measured(self) -> dict[str, float]:
        """Return recall of the ten nearest, and times with an empty outbox: medians of a search in milliseconds.

        `load_s`: until the matrix was in memory; `build_s`: until LanceDB had indexed all.
        """
        true = [self._scan(query) for query in self.queries]
        found = [self._lance(query) for query in self.queries]
        exact = ExactIndex(self.store.database, SPACE.id, DIMS)
        _, load_s = timed(lambda: exact.search(self.queries[0], self._view(), 10))
        exact_ms = median_ms(lambda query: exact.search(query, self._view(), 10), self.queries)
        by_exact = [exact.search(query, self._view(), 10) for query in self.queries]
        exact.close()
        lance_ms = median_ms(self._lance, self.queries)
        return {
            "size": self.size, "exact_ms": exact_ms, "scan_ms": median_ms(self._scan, self.queries[:9]),
            "lance_ms": lance_ms, "lance_per_exact": round(lance_ms / exact_ms, 2), "load_s": round(load_s, 2),
            "build_s": round(self.build_s, 1), "exact_recall_at_10": recall(by_exact, true),
            "recall_at_10": recall(found, true),
        }  # fmt: skip

    def changed(self) -> tuple[float, int]:
        """Change the store; return recall then, and how many rows came up that must not."""
        right, wrong = change(self.store, self.ids, self.queries)
        true = [self._scan(query) for query in self.queries]
        found = [self._lance(query) for query in self.queries]
        if self.index.answered_by != "lance" or not right & {hit.id for hits in true for hit in hits}:
            raise click.ClickException("the changed rows were not looked for in LanceDB")
        return recall(found, true), sum(hit.id in wrong for hits in found for hit in hits)

    def close(self) -> None:
        """Release the store."""
        self.index.close()
        self.store.close()

    def _view(self) -> View:
        return View(Audience.of(), self.store.clock.now())

    def _lance(self, query: Vectors) -> list[VectorHit]:
        return self.index.search(query, self._view(), 10)

    def _scan(self, query: Vectors) -> list[VectorHit]:
        return scan(self.store.database, SPACE.id, query, self._view(), 10)


def labelled() -> tuple[dict[str, str], dict[str, str]]:
    """Return the memories and the prompts of the labelled stores, each with the letter of its writer."""
    memories: dict[str, str] = {}
    prompts: dict[str, str] = {}
    for path in sorted(LABELLED.glob("*.json")):
        one = json.loads(path.read_text(encoding="utf-8"))
        memories |= {memory["text"]: path.name[0] for memory in one["memories"]}
        prompts |= {prompt["text"]: path.name[0] for prompt in one["prompts"]}
    return memories, prompts


def measured_on_real(count: int) -> dict[str, float]:
    """Compare the matrix with a full comparison, for so many prompts."""
    memories, prompts = labelled()
    prompts = dict(list(prompts.items())[:: max(1, len(prompts) // count)][:count])
    vectors, queries = embedded(list(memories), query=False), embedded(list(prompts), query=True)
    everybody = [Audience.of()] * len(prompts)
    recall_all, ms_all = matrix(vectors, [GLOBAL] * len(vectors), queries, everybody)
    agents = [Audience.of(agent=writer) for writer in prompts.values()]
    recall_own, ms_own = matrix(vectors, [Scope("agent", writer) for writer in memories.values()], queries, agents)
    return {
        "size": len(vectors), "queries": len(queries), "recall_at_10": recall_all, "exact_ms": ms_all,
        "scoped_recall_at_10": recall_own, "scoped_ms": ms_own,
    }  # fmt: skip


def embedded(texts: Sequence[str], *, query: bool) -> Vectors:
    """Return the vectors of texts, by the default model."""
    import numpy as np

    model = load_default()
    parts = [model.embed(texts[at : at + EMBEDDED], query=query) for at in range(0, len(texts), EMBEDDED)]
    return np.concatenate(parts)


def matrix(
    vectors: Vectors, scopes: Sequence[Scope], queries: Vectors, audiences: Sequence[Audience]
) -> tuple[float, float]:
    """Return the matrix's recall, and its median time, for queries of somebody each."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        fill(store, vectors, scopes=scopes)
        exact = ExactIndex(store.database, SPACE.id, DIMS)
        views = [View(audience, store.clock.now()) for audience in audiences]
        asked = list(zip(queries, views, strict=True))
        true = [scan(store.database, SPACE.id, query, view, 10) for query, view in asked]
        found = [exact.search(query, view, 10) for query, view in asked]
        times = iter(views)
        ms = median_ms(lambda query: exact.search(query, next(times), 10), queries)
        exact.close()
        store.close()
    return recall(found, true), ms


PROMPT_WORDS = 8
"""A question is made of so many words of a memory."""


class Beside:
    """A store of one size, whose words and vectors are in SQLite and in LanceDB."""

    def __init__(self, folder: Path, size: int, queries: int, seed: int) -> None:
        made, texts = Synthetic(seed, size), list(sentences(size, seed))
        self.size, self.store = size, Store(folder)
        fill(self.store, made.draw(size), texts=texts)
        self.vectors = made.draw(queries)
        self.prompts = [" ".join(text.split()[:PROMPT_WORDS]) for text in texts[:: size // queries][:queries]]
        index_all(self.store, size)
        self.exact = ExactIndex(self.store.database, SPACE.id, DIMS)
        self.lance = TieredIndex(self.store, SPACE, mode="lance", patience=PATIENCE)
        self.view = View(Audience.of(), self.store.clock.now())
        self.lance.search(self.vectors[0], self.view, 10)
        if not self.lance.wait(PATIENCE):
            raise click.ClickException("LanceDB could not be opened")

    def compared(self) -> list[dict[str, Any]]:
        """Return a row for words and one for vectors; see the head of the module."""
        sqlite, lance = self._megabytes(), self._megabytes_of_lance()
        return [
            self._row("words", self.prompts, self._by_fts5, self._words_by_lance, sqlite["words"], lance["words"]),
            self._row(
                "vectors", list(self.vectors), self._by_matrix, self._by_lance, sqlite["vectors"], lance["vectors"]
            ),
        ]

    def close(self) -> None:
        """Release the store."""
        self.lance.close()
        self.exact.close()
        self.store.close()

    def _row(
        self, what: str, queries: Sequence[Any], one: Callable[[Any], list[str]], other: Callable[[Any], list[str]],
        megabytes: float, megabytes_of_lance: float,
    ) -> dict[str, Any]:  # fmt: skip
        times: tuple[list[float], list[float]] = [], []
        both = best = 0
        for number, query in enumerate([queries[0], *queries]):
            (found, seconds), (theirs, lance_seconds) = timed(partial(one, query)), timed(partial(other, query))
            if number:  # the first reads what the others find at hand
                times[0].append(seconds)
                times[1].append(lance_seconds)
                both, best = both + len(set(found) & set(theirs)), best + len(found)
        figures: dict[str, Any] = {"size": self.size, "what": what}
        for name, figure in (("p50", p50), ("p95", p95)):
            mine, lances = figure(times[0]), figure(times[1])
            figures |= {f"sqlite_{name}_ms": mine, f"lance_{name}_ms": lances, f"{name}_ratio": round(lances / mine, 2)}
        return figures | {
            "same_of_ten": round(both / best, 3), "sqlite_mb": round(megabytes, 1),
            "lance_mb": round(megabytes_of_lance, 1), "mb_ratio": round(megabytes_of_lance / megabytes, 2),
        }  # fmt: skip

    def _by_fts5(self, prompt: str) -> list[str]:
        with self.store.database.read() as connection:
            return [hit.fact.id for hit in lexical(connection, prompt, self.view, 10).hits]

    def _words_by_lance(self, prompt: str) -> list[str]:
        with self.store.database.read() as connection:
            found = lexical(connection, prompt, self.view, 10, self.lance)
        if found.by != "lance":
            raise click.ClickException(f"LanceDB was not asked for words: {found.why}")
        return [hit.fact.id for hit in found.hits]

    def _by_matrix(self, query: Vectors) -> list[str]:
        return [hit.id for hit in self.exact.search(query, self.view, 10)]

    def _by_lance(self, query: Vectors) -> list[str]:
        found = [hit.id for hit in self.lance.search(query, self.view, 10)]
        if self.lance.answered_by != "lance":
            raise click.ClickException("LanceDB was not asked for vectors")
        return found

    def _megabytes(self) -> dict[str, float]:
        """Return the room of SQLite's index of words, and of its table of vectors."""
        with self.store.database.read() as connection:
            sql = "SELECT sum(pgsize) / 1e6 FROM dbstat WHERE name LIKE ? AND name NOT LIKE 'facts_fts%' = ?"
            return {
                "words": run(connection, sql, ("facts_fts%", False))[0][0],
                "vectors": run(connection, sql, ("%vectors%", True))[0][0],
            }

    def _megabytes_of_lance(self) -> dict[str, float]:
        """Return the room of LanceDB's index of words, and of all else in its table, without earlier versions."""
        import lancedb

        [name] = lancedb.connect(self.store.lance_folder).list_tables().tables
        table = lancedb.connect(self.store.lance_folder).open_table(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nobody else has it open
            table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
        [words] = [each.size_bytes or 0 for each in table.list_indices() if each.columns == ["text"]]
        whole = sum(path.stat().st_size for path in self.store.lance_folder.rglob("*") if path.is_file())
        return {"words": words / 1e6, "vectors": (whole - words) / 1e6}


def beside(sizes: Sequence[int], queries: int, seed: int) -> list[dict[str, Any]]:
    """Compare LanceDB with SQLite at each of these sizes."""
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            store = Beside(Path(folder), size, queries, seed)
            rows += store.compared()
            store.close()
    return rows


def crossover(sizes: Sequence[Mapping[str, float]]) -> float | None:
    """Return the smallest size from which on LanceDB was faster than the matrix; None: at none of them."""
    slower = max((each["size"] for each in sizes if each["lance_per_exact"] > 1), default=0)
    return min((each["size"] for each in sizes if each["size"] > slower), default=None)


@click.option("--size", default=100_000, type=click.IntRange(min=1_000))
@click.option("--queries", default=60, type=click.IntRange(min=2 * CHANGED))
@click.option("--real", default=300, type=click.IntRange(min=1), help="Prompts for real vectors.")
@click.option("--beside", "stores", default=(100_000, 400_000), type=click.IntRange(min=1_000), multiple=True)
@click.option("--seed", default=1)
def bench(size: int, queries: int, real: int, stores: Sequence[int], seed: int) -> dict[str, Any]:
    """Measure at SIZE vectors, and for the crossover also at a tenth and a third of it; then whole stores."""
    sizes = []
    for count in (size // 10, size // 3, size):
        with tempfile.TemporaryDirectory() as folder:
            store = Sized(Path(folder), count, queries, seed)
            sizes.append(store.measured())
            fresh, wrong = store.changed()
            store.close()
    last = sizes[-1]
    return {
        **{name: last[name] for name in ("size", "recall_at_10", "exact_ms", "lance_ms", "build_s")},
        "recall_at_10_fresh": fresh, "wrong_rows": wrong, "crossover": crossover(sizes), "sizes": sizes,
        "beside": beside(stores, queries, seed), "real": measured_on_real(real),
    }  # fmt: skip


main = program(bench)
