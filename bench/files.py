"""What the index of files costs: building it, keeping it, searching it; and what a search sees while it is rebuilt.

python -m bench.files --files 10000 --chunks 50000 --json
python -m bench.files --files 10000 --chunks 50000 --reindex --json

The texts are synthetic, of a vocabulary as skewed as a language's. Their vectors are random and put straight into the
index: a model would need an hour for them. Queries are embedded by the default model, if it is there. The time of a
search is given without that of embedding its query, and as a ratio to it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import click
import numpy as np

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
import json, sys
from bench.files import OWNER, Opened, default_model
opened = Opened(sys.argv[1], default_model() if sys.argv[2] == "model" else None)
answer = opened.ask("a first search")
with open("/proc/self/status") as status:
    kilobytes = [int(line.split()[1]) for line in status if line.startswith("VmRSS")]
print(json.dumps(kilobytes[0] / 1024))
"""
SEARCHING = """
import sys
from bench.files import search_on
search_on(sys.argv[1], int(sys.argv[2]))
"""
REBUILDING = """
import sys
from bench.files import Opened
opened = Opened(sys.argv[1])
opened.index.sync([opened.root], force=True, progress=lambda done, total: print(done, total, flush=True))
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
        began = time.perf_counter()
        vectors = self._inner.embed(texts, query=query)
        self.seconds.append(time.perf_counter() - began)
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
        return self.search.search(Ask(query, min_score=0.0), OWNER, [])

    def close(self) -> None:
        """Close everything."""
        self.search.close()
        self.index.close()
        self.store.close()


@contextmanager
def opened(folder: Path, embedder: Embedder | None = None) -> Iterator[Opened]:
    """Open the store for the block."""
    one = Opened(folder, embedder)
    try:
        yield one
    finally:
        one.close()


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
        began = time.perf_counter()
        answer = one.ask(query)
        times.append(time.perf_counter() - began - one.embedder.seconds[-1])
        if answer.backend != HYBRID or not answer.results:
            raise RuntimeError(f"a search of the bench brought {len(answer.results)} results by {answer.backend}")
    median, embed = statistics.median(times), statistics.median(one.embedder.seconds)
    return {
        "search_p50_ms": round(median * 1000, 2),
        "search_p95_ms": round(sorted(times)[int(0.95 * len(times))] * 1000, 2),
        "embed_p50_ms": round(embed * 1000, 2),
        "search_to_embed_ratio": round(median / embed, 2),
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
    began = time.perf_counter()
    ChunkVectors().nearest(live, identity.id, query, OWNER, ("memory",), 10)
    return round(time.perf_counter() - began, 3)


def rss_mb(folder: Path, embedder: str) -> float | None:
    """Return the resident megabytes of a process that has searched once; None where it cannot be read."""
    if not Path("/proc/self/status").exists():
        return None
    command = [sys.executable, "-c", PROBE, str(folder), embedder]
    return round(float(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)), 1)


def bench(files: int, chunks: int, model: bool, searches: int = SEARCHES) -> dict[str, Any]:
    """Measure what the index costs."""
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
            searchers = [child(SEARCHING, folder, str(files)) for _ in range(2)]
            for searcher in searchers:
                line(searcher)
            began = time.perf_counter()
            old_writes = rebuild_watched(one)
            seconds = time.perf_counter() - began
            counts = [json.loads(searcher.communicate()[0].splitlines()[-1]) for searcher in searchers]
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
    with child(REBUILDING, folder) as rebuilding:
        done, total = 0, files
        while 2 * done < total:
            done, total = map(int, line(rebuilding).split())
        rebuilding.kill()
    with opened(folder) as one:
        answer = one.ask("what is zephyr0?")
        found = answer.backend == HYBRID and any(result.path.endswith("/0.md") for result in answer.results)
        again = one.index.sync([one.root])
        left = list(one.store.folder.glob("index-*.db"))
        return found and not again.added and len(left) == 1


def child(script: str, *arguments: Path | str) -> subprocess.Popen[str]:
    """Start a script in a process of its own, with pipes."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints.

    Raises:
        RuntimeError: it ended before.
    """
    read = process.stdout.readline() if process.stdout else ""
    if not read:
        raise RuntimeError(f"a process of the bench ended early ({process.wait()})")
    return read


@click.command()
@click.option("--files", default=10_000, show_default=True, help="Files, at least 1.")
@click.option("--chunks", default=50_000, show_default=True, help="Chunks in all of them, at least one each.")
@click.option("--reindex", "rebuilds", is_flag=True, help="Rebuild while two processes search, and kill a rebuild.")
@click.option("--model/--no-model", default=True, help="Embed queries and a sample by the default model.")
@click.option("--json", "as_json", is_flag=True)
def main(files: int, chunks: int, rebuilds: bool, model: bool, as_json: bool) -> None:
    """Measure the index of files."""
    result = reindex(files, chunks) if rebuilds else bench(files, chunks, model)
    print(json.dumps(result) if as_json else "\n".join(f"{key}: {value}" for key, value in result.items()))


if __name__ == "__main__":
    main()
