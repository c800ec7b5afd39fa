"""What the index of files costs: building it, keeping it, searching it; and what a search sees while it is rebuilt.

python -m bench files --files 10000 --chunks 50000 --json
python -m bench files --files 10000 --chunks 50000 --reindex --json

The texts are synthetic, of a vocabulary as skewed as a language's. Their vectors are random and put straight into the
index: a model would need an hour for them. Queries are embedded by the default model, if it is there. The time of a
search is given without that of embedding its query, and as a ratio to it.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import click
import numpy as np

from bench.kills import Child
from bench.measuring import p50, p95, script, tells_rss, timed
from bench.program import program
from perdure.clock import SystemClock
from perdure.embed.base import Embedder, EmbedderIdentity
from perdure.embed.deterministic import HashEmbedder
from perdure.embed.load import load_default
from perdure.errors import ModelError
from perdure.files import rows
from perdure.files.index import FileIndex
from perdure.files.options import FilesOptions
from perdure.files.retrievers import ChunkVectors
from perdure.files.roots import Root, root_of
from perdure.files.search import HYBRID, Answer, Ask, FileSearch
from perdure.store.scope import Audience, Scope
from perdure.store.sql import run
from perdure.store.store import Store

if TYPE_CHECKING:
    from perdure.embed.base import Vectors

WORDS = 60
VOCABULARY = 20_000
"""Words of a chunk, and different ones in all."""
SAMPLE = 200
"""Files that are embedded by the deterministic embedder; a fifth of them by the model."""
SEARCHES = 200
LONG_AGO = 1_700_000_000
OWNER = Audience.of()
PROBE = """
from bench.files import Opened, default_model
opened = Opened(sys.argv[1], default_model() if sys.argv[2] == "model" else None)
answer = opened.ask("a first search")
print(rss())
"""


class TimedEmbedder:
    """Another embedder, with the seconds that each call of it took."""

    def __init__(self, inner: Embedder) -> None:
        """Time `inner`."""
        self._inner = inner
        self.seconds: list[float] = []

    @property
    def identity(self) -> EmbedderIdentity:
        """That of the other one."""
        return self._inner.identity

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts and note the time."""
        vectors, seconds = timed(lambda: self._inner.embed(texts, query=query))
        self.seconds.append(seconds)
        return vectors

    def count_tokens(self, text: str) -> int:
        """Count as the other one does."""
        return self._inner.count_tokens(text)

    def interrupt(self) -> None:
        """Interrupt the other one."""
        self._inner.interrupt()


class Opened:
    """The store of the bench, its index and its search, as one process has them open."""

    def __init__(self, folder: Path | str, embedder: Embedder | None = None) -> None:
        """Open the store below a folder, with the deterministic embedder unless another one is given."""
        self.folder = Path(folder)
        self.embedder = TimedEmbedder(embedder or HashEmbedder(384))
        self.store = Store(self.folder / "home")
        self.index = FileIndex(self.store, FilesOptions())
        self.root: Root = root_of(Scope("user", "owner"), self.folder / "workspace", "workspace")
        self.search = FileSearch(self.index, lambda: self.embedder, SystemClock())

    def ask(self, query: str) -> Answer:
        """Search the index as it is."""
        return self.search.search(Ask(query, min_score=0.0), OWNER, list)

    def close(self) -> None:
        """Close everything."""
        self.search.close()
        self.index.close()
        self.store.close()


def opened(folder: Path | str, embedder: Embedder | None = None) -> closing[Opened]:
    """Open the store for a block."""
    return closing(Opened(folder, embedder))


def default_model() -> Embedder | None:
    """Return the default model, or None if it cannot be loaded."""
    try:
        return load_default()
    except ModelError:
        return None


def texts(count: int, seed: int) -> list[str]:
    """Return texts of `WORDS` words. The n-th word of the vocabulary is n times as rare; the shortest come first."""
    chance = np.random.default_rng(seed)
    syllables = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
    words: list[str] = []
    for size in (1, 2, 3):
        longer = ["".join(parts) for parts in product(syllables, repeat=size)]
        chance.shuffle(longer)
        words += longer
    shares = 1 / np.arange(1, VOCABULARY + 1)
    drawn = chance.choice(VOCABULARY, (count, WORDS), p=shares / shares.sum())
    return [" ".join(words[at] for at in row) for row in drawn]


def write_files(folder: Path, files: int, chunks: int, seed: int = 1) -> None:
    """Write memory files of long ago. Each names itself in one word; a heading begins each chunk."""
    memory = folder / "workspace" / "memory"
    written = texts(chunks, seed)
    for number in range(files):
        path = memory / str(number % 100) / f"{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = written[number::files]
        path.write_text("".join(f"# Part {at}\nzephyr{number} {part}\n" for at, part in enumerate(parts)))
        os.utime(path, (LONG_AGO, LONG_AGO))


def put_random_vectors(index: FileIndex, identity: EmbedderIdentity) -> None:
    """Give every text without a vector a random one of length one."""
    live = index.generations.live()
    if live is None:
        raise RuntimeError("there is no index to put vectors into")
    chance = np.random.default_rng(2)
    with live.database.write(durable=False) as connection:
        for digest in rows.pending(connection, identity.id, -1):
            vector = chance.normal(size=(1, identity.dims)).astype(np.float32)
            rows.put_vectors(connection, identity, digest, vector / np.linalg.norm(vector))


def indexing(folder: Path, files: int, model: Embedder | None) -> dict[str, float | None]:
    """Index and embed a sample; return chunks per second of processor time."""
    rates: dict[str, float | None] = {}
    for key, embedder, count in (
        ("chunks_per_cpu_second", HashEmbedder(384), files),
        ("chunks_per_cpu_second_model", model, max(1, files // 5)),
    ):
        if embedder is None:
            rates[key] = None
            continue
        write_files(folder / key, count, 5 * count)
        with opened(folder / key, embedder) as one:
            began = time.process_time()
            chunks = one.index.sync([one.root]).chunks
            while one.index.embed(embedder, 1_000):
                pass
            rates[key] = round(chunks / (time.process_time() - began), 1)
    return rates


def searching(one: Opened, files: int, searches: int) -> dict[str, float]:
    """Search for words of the files; return milliseconds."""
    queries = [f"{text} zephyr{number % files}" for number, text in enumerate(query_texts(searches))]
    one.ask(queries[0])
    one.embedder.seconds.clear()
    times = []
    for query in queries:
        answer, seconds = timed(partial(one.ask, query))
        times.append(seconds - one.embedder.seconds[-1])
        if answer.backend != HYBRID or not answer.results:
            raise RuntimeError(f"a search of the bench brought {len(answer.results)} results by {answer.backend}")
    embedded = one.embedder.seconds
    return {
        "search_p50_ms": p50(times),
        "search_p95_ms": p95(times),
        "embed_p50_ms": p50(embedded),
        "search_to_embed_ratio": round(statistics.median(times) / statistics.median(embedded), 2),
    }


def query_texts(count: int) -> list[str]:
    """Return questions of eight words each, of the same vocabulary as the files."""
    return [" ".join(text.split()[:8]) for text in texts(count, 1)]


def load_vectors_s(one: Opened) -> float:
    """Return the seconds that the first search of a process spends on reading all vectors."""
    live = one.index.generations.live()
    if live is None:
        raise RuntimeError("there is no index to search")
    identity = one.embedder.identity
    query = np.ones(identity.dims, dtype=np.float32) / np.float32(identity.dims**0.5)
    _, seconds = timed(lambda: ChunkVectors().nearest(live, identity.id, query, OWNER, ("memory",), 10))
    return round(seconds, 3)


def rss_mb(folder: Path, embedder: str) -> float | None:
    """Return the resident megabytes of a process that has searched once; None where it cannot be read."""
    return round(float(script(PROBE, folder, embedder)), 1) if tells_rss() else None


@click.option("--files", default=10_000, help="Files, at least 1.")
@click.option("--chunks", default=50_000, help="Chunks in all of them, at least one each.")
@click.option("--reindex", "rebuilds", is_flag=True, help="Rebuild while two processes search, and kill a rebuild.")
@click.option("--model/--no-model", default=True, help="Embed queries and a sample by the default model.")
def bench(
    files: int, chunks: int, model: bool = True, rebuilds: bool = False, searches: int = SEARCHES
) -> dict[str, Any]:
    """Measure what the index costs, or what a rebuild disturbs."""
    if rebuilds:
        return reindex(files, chunks)
    embedder = default_model() if model else None
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        result: dict[str, Any] = {"files": files, **indexing(folder, min(SAMPLE, files), embedder)}
        write_files(folder / "large", files, chunks)
        with opened(folder / "large", embedder) as one:
            result["chunks"] = one.index.sync([one.root]).chunks
            put_random_vectors(one.index, one.embedder.identity)
            cpu, wall = time.process_time(), time.perf_counter()
            if one.index.sync([one.root]).chunks:
                raise RuntimeError("files that are as before were indexed again")
            result["unchanged_resync_cpu_s"] = round(time.process_time() - cpu, 3)
            result["unchanged_resync_wall_s"] = round(time.perf_counter() - wall, 3)
            result["load_vectors_s"] = load_vectors_s(one)
            result |= searching(one, files, searches)
        result["rss_mb"] = rss_mb(folder / "large", "model" if embedder else "hash")
    return result


def search_on(folder: str, files: int) -> None:
    """Search for one file after another until the standard input ends; print how often, and how often in vain.

    In between, give texts vectors: nothing of that may reach a generation that is being replaced.
    """
    counts = {"searches": 0, "failed": 0, "empty": 0}
    with opened(Path(folder)) as one:
        print("searching", flush=True)
        reading = threading.Thread(target=sys.stdin.read, daemon=True)
        reading.start()
        while reading.is_alive():
            number = counts["searches"] % files
            answer = one.ask(f"what is zephyr{number}?")
            counts["searches"] += 1
            counts["failed"] += answer.backend != HYBRID
            counts["empty"] += not any(result.path.endswith(f"/{number}.md") for result in answer.results)
            one.index.embed(one.embedder, 1)
    print(json.dumps(counts), flush=True)


def reindex(files: int, chunks: int) -> dict[str, Any]:
    """Build the index anew while two processes search all the time; then kill such a process half-way."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_files(folder, files, chunks)
        with opened(folder) as one:
            one.index.sync([one.root])
            put_random_vectors(one.index, one.embedder.identity)
            said: list[str] = []

            def hear(line: str) -> bool:
                said.append(line)
                return True

            searchers = [Child(search_on, folder, files, hear=hear) for _ in range(2)]
            for searcher in searchers:
                searcher.begun.wait()
            old_writes, seconds = timed(lambda: rebuild_watched(one))
            for searcher in searchers:
                searcher.end()
            counts = [json.loads(line) for line in said[-2:]]
        works = works_after_kill(folder, files)
    return {
        "files": files,
        "reindex_s": round(seconds, 1),
        **{key: sum(count[key] for count in counts) for key in counts[0]},
        "old_generation_writes": old_writes,
        "works_after_kill": works,
    }


def rebuild_watched(one: Opened) -> int:
    """Build the index anew; return how many changes of the former file were seen from the moment it began."""
    live = one.index.generations.live()
    if live is None:
        raise RuntimeError("there is no index to rebuild")
    former = apsw.Connection(str(live.database.path))
    versions: list[int] = []

    def look(done: int, total: int) -> None:
        versions.append(run(former, "PRAGMA data_version")[0][0])

    one.index.sync([one.root], force=True, patience=-1, progress=look)
    time.sleep(0.5)
    look(0, 0)
    former.close()
    return sum(before != after for before, after in pairwise(versions))


def works_after_kill(folder: Path, files: int) -> bool:
    """Kill a process half-way through a rebuild; return whether all is found, and nothing left over stays."""
    rebuilding = Child(rebuild, folder, hear=_is_half)
    rebuilding.begun.wait()
    rebuilding.kill()
    if not rebuilding.acknowledged:
        raise RuntimeError("a process of the bench ended early")
    with opened(folder) as one:
        answer = one.ask("what is zephyr0?")
        found = answer.backend == HYBRID and any(result.path.endswith("/0.md") for result in answer.results)
        again = one.index.sync([one.root])
        left = list(one.store.folder.glob("index-*.db"))
        return found and not again.added and len(left) == 1


def _is_half(line: str) -> bool:
    done, total = map(int, line.split())
    return 2 * done >= total


def rebuild(folder: str) -> None:
    """Build the index anew, and tell how far that is."""
    with opened(Path(folder)) as one:
        one.index.sync([one.root], force=True, progress=lambda done, total: print(done, total, flush=True))


main = program(bench)
