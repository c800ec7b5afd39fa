"""How long a turn waits for recall, and what of it is the model, the vectors, the words.

python -m bench latency --sizes 1000,10000,100000 [--triggers N] --json

Each store also holds a record of past conversations. The texts are synthetic, of a vocabulary as skewed as a
language's; their vectors are put straight into the tables. Every prompt is asked once, and is made of words of a
stored fact. Beside each recall, in turn, stand what it cannot do without: embedding the prompt, the product of the
prompt's vector with those of all facts, and FTS5 over the two tables of words. Ratios are medians over the prompts.
With --peers, other stores are given the same facts and vectors; what is not installed is skipped.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import click
import numpy as np

from bench.files import put_random_vectors
from bench.measuring import p50, p95, script, tells_rss, timed
from bench.program import numbers, program
from bench.store import AUTHOR, EMBEDDER, fill, sentences
from perdure.api.memory import Memory
from perdure.clock import SystemClock
from perdure.embed.base import Embedder
from perdure.embed.deterministic import HashEmbedder
from perdure.embed.load import load_default
from perdure.files import registry
from perdure.files.index import FileIndex, Generation, Generations
from perdure.files.options import FilesOptions
from perdure.files.transcript_log import TranscriptLog
from perdure.hooks.types import TurnContext
from perdure.index.vector_index import dots
from perdure.lance.indexer import Indexer
from perdure.store.scope import Audience
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import StoredVector
from perdure.store.triggers import USER
from perdure.text.normalise import match_query, match_terms

SEED = 100
"""Of one sequence of sentences: `bench.store.fill` takes its beginning, conversations what comes after."""
SESSION = 100
"""Turns of a conversation."""
PROMPT_WORDS, TRIGGER_WORDS = 8, 6
CONTEXT = TurnContext(session_id="bench")
INDEX_BATCH = AIMED_BATCH = 1_000
PEER_BATCH, PEER_LIMIT = 1_000, 10
EMBEDDERS: dict[str, tuple[Callable[[], Embedder], dict[str, Any]]] = {
    "auto": (load_default, {"embedder": "auto"}),
    "hash": (lambda: HashEmbedder(384), {"embedder": "hash", "embedder_model": "384"}),
}
"""How to load each, and the settings with which a store uses it."""
COLD = """
import time
from perdure.hooks.types import TurnContext
from perdure.api.memory import Memory
with Memory.open(sys.argv[1], embedder="none") as memory:
    recall = memory.turns.before(sys.argv[2], TurnContext(session_id="bench"))
    print(json.dumps([recall is not None, time.process_time(), "numpy" in sys.modules]))
"""
RESIDENT = """
from perdure.hooks.types import TurnContext
from perdure.api.memory import Memory
with Memory.open(sys.argv[1], **json.loads(sys.argv[2])) as memory:
    ready = memory.ready()
    for prompt in sys.argv[3:]:
        memory.turns.before(prompt, TurnContext(session_id="bench"))
    memory.settle()
    print(json.dumps([ready, rss()]))
"""


def prompts(facts: int, count: int) -> list[str]:
    """Return distinct prompts, each of words of another fact, spread over all of them."""
    step = max(1, facts // count)
    picked = islice(sentences(facts, SEED), 0, None, step)
    return [f"What about {' '.join(text.split()[:PROMPT_WORDS])}?" for text in islice(picked, count)]


def aim(store: Store, each: int) -> None:
    """Give every fact of a store so many triggers, with random vectors."""
    space = store.space()
    if space is None:
        raise RuntimeError("there is no space to put vectors into")
    ids, chance = [row[0] for row in store.database.query(run, "SELECT id FROM facts")], np.random.default_rng(3)
    texts = sentences(each * len(ids), SEED + 1)
    for start in range(0, len(ids), AIMED_BATCH):
        with store.write(AUTHOR) as tx:
            for fact_id in ids[start : start + AIMED_BATCH]:
                said = [" ".join(text.split()[-TRIGGER_WORDS:]) for text in islice(texts, each)]
                vectors = chance.normal(size=(each, space.dims)).astype(np.float32)
                vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
                tx.put_triggers(fact_id, said, USER, dict(zip(said, StoredVector.rows(vectors, space.id), strict=True)))


def record(home: Path, facts: int, chunks: int, embedder: Embedder) -> None:
    """Record conversations of so many turns in a store of facts, and index them with random vectors."""
    store = Store(home)
    log = TranscriptLog(store.folder)
    scope = Audience.of().writable()
    texts = islice(sentences(facts + chunks, SEED), facts, None)
    for number in range(-(-chunks // SESSION)):
        said = islice(texts, min(SESSION, chunks - number * SESSION))
        messages = [
            {"role": "assistant" if place % 2 else "user", "content": text, "timestamp": 1_700_000_000 + place}
            for place, text in enumerate(said)
        ]
        log.append(scope, f"session-{number}", messages, SystemClock().now())
    registry.add_log(store, scope)
    index = FileIndex(store, FilesOptions())
    index.sync(registry.roots(store, log), patience=-1)
    put_random_vectors(index, embedder.identity)
    index.close()
    store.close()


def build(home: Path, facts: int, chunks: int, embedder: str, triggers: int = 0) -> None:
    """Make a store of so many facts, each with so many triggers, and of chunks, its index of vectors up to date."""
    load, settings = EMBEDDERS[embedder]
    with Memory.open(home, **settings) as memory:
        memory.ready()  # binds the store to the space of the model
    store = Store(home)
    fill(store, facts, SEED)
    if triggers:
        aim(store, triggers)
    store.close()
    record(home, facts, chunks, load())
    store = Store(home)
    indexer = Indexer(store, lambda: None, INDEX_BATCH)
    # To the end: a large store's index is trained only after the last fact is in it.
    while indexer.step():
        pass
    indexer.close()
    store.close()


class Bare:
    """What a recall cannot do without, done by itself."""

    def __init__(self, home: Path, index: Path) -> None:
        """Read the vectors of a store; `index` is its index of conversations."""
        self._facts, self._chunks = apsw.Connection(str(home / "facts.db")), apsw.Connection(str(index))
        blobs = [row[0] for row in run(self._facts, "SELECT vector FROM vectors")]
        self._matrix = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), -1)

    def dot(self, query: Any) -> None:
        """Compare a vector with those of all facts."""
        dots(self._matrix, query)

    def fts(self, prompt: str) -> None:
        """Find the best fifty facts and chunks of any of the words."""
        words = match_query(match_terms(prompt))
        for connection, table in ((self._facts, "facts_fts"), (self._chunks, "chunks_fts")):
            run(connection, f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT 50", (words,))

    def close(self) -> None:
        """Close the files."""
        self._facts.close()
        self._chunks.close()


def warm(home: Path, asked: Sequence[str], embedder: str) -> dict[str, Any]:
    """Recall for each prompt in one process and measure it beside what it cannot do without."""
    load, settings = EMBEDDERS[embedder]
    bare, model = Bare(home, live_index(home).database.path), load()
    times: dict[str, list[float]] = {name: [] for name in ("recall", "embed", "dot", "fts")}
    busy, recalled = [], 0
    with Memory.open(home, **settings) as memory:
        if not memory.ready():
            raise RuntimeError("the model cannot be loaded; see perdure status")
        for number, prompt in enumerate([*asked[:3], *asked]):
            began = time.process_time()
            recall, recall_s = timed(partial(memory.turns.before, prompt, CONTEXT))
            cpu = time.process_time() - began
            memory.settle()
            vectors, embed_s = timed(partial(model.embed, [prompt], query=True))
            _, dot_s = timed(partial(bare.dot, vectors[0]))
            _, fts_s = timed(partial(bare.fts, prompt))
            if number < 3:
                continue  # the first ones read everything from the disk
            recalled += recall is not None
            busy.append(cpu)
            for name, value in zip(times, (recall_s, embed_s, dot_s, fts_s), strict=True):
                times[name].append(value)
    bare.close()
    return {**_figures(times), "cpu_p50_ms": p50(busy), "recalled": recalled, "parts_ms": parts(home, len(asked))}


def _figures(times: dict[str, list[float]]) -> dict[str, Any]:
    recall, embed = statistics.median(times["recall"]), statistics.median(times["embed"])
    bare = statistics.median(dot + fts for dot, fts in zip(times["dot"], times["fts"], strict=True))
    rest = statistics.median(whole - part for whole, part in zip(times["recall"], times["embed"], strict=True))
    return {
        "recall_to_embed_ratio": round(recall / embed, 2),
        "rest_to_dot_and_fts_ratio": round(rest / bare, 2),
        "p50_ms": p50(times["recall"]),
        "p95_ms": p95(times["recall"]),
        **{f"{name}_p50_ms": p50(times[name]) for name in ("embed", "dot", "fts")},
    }


def parts(home: Path, count: int) -> dict[str, float]:
    """Return, from the newest receipts, the median milliseconds after which each leg was through, and the whole."""
    connection = apsw.Connection(str(home / "facts.db"))
    bodies = [
        json.loads(row[0]) for row in run(connection, "SELECT body FROM receipts ORDER BY at DESC LIMIT ?", (count,))
    ]
    connection.close()
    found: dict[str, list[float]] = {}
    for body in bodies:
        found.setdefault("all", []).append(body["seconds"])
        for leg, one in body.get("legs", {}).items():
            found.setdefault(leg, []).append(one["seconds"])
    return {leg: p50(values) for leg, values in found.items()}


def live_index(home: Path) -> Generation:
    """Return the index of conversations of a store.

    Raises:
        RuntimeError: there is none.
    """
    store = Store(home)
    live = Generations(store).live()
    store.close()
    if live is None:
        raise RuntimeError(f"{home} has no index of conversations")
    return live


def cold(home: Path, prompt: str) -> dict[str, Any]:
    """Measure a fresh process up to its first answer by words."""
    answers = [script(COLD, home, prompt) for _ in range(3)]
    if not all(recalled for recalled, *_ in answers):
        raise RuntimeError("a fresh process recalled nothing")
    seconds = statistics.median(used for _, used, _ in answers)
    return {"cold_cpu_s": round(seconds, 3), "cold_imports_numpy": any(numpy for *_, numpy in answers)}


def resident(home: Path, asked: Sequence[str], embedder: str) -> float | None:
    """Return the megabytes of a process that has recalled with everything; None where they cannot be read."""
    if not tells_rss():
        return None
    ready, megabytes = script(RESIDENT, home, json.dumps(EMBEDDERS[embedder][1]), *asked[:20])
    if not ready:
        raise RuntimeError("the model was not there in the process whose memory is measured")
    return round(float(megabytes), 1)


class Given:
    """In the place of mem0's embedder: looks vectors up, so that no peer computes its own."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        """Know the vectors of these texts."""
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Return the vector of a text that is known, whatever it is for."""
        return self._vectors[text]


def _chromadb(folder: Path, texts: Sequence[str], known: dict[str, list[float]]) -> Callable[[str], object]:
    chromadb = importlib.import_module("chromadb")
    client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("bench", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    for start in range(0, len(texts), PEER_BATCH):
        part = list(texts[start : start + PEER_BATCH])
        ids = [str(number) for number in range(start, start + len(part))]
        collection.add(ids=ids, documents=part, embeddings=[known[text] for text in part])
    return lambda prompt: collection.query(query_embeddings=[known[prompt]], n_results=PEER_LIMIT)


def _mem0(folder: Path, texts: Sequence[str], known: dict[str, list[float]]) -> Callable[[str], object]:
    os.environ["MEM0_TELEMETRY"] = "False"  # read when the module is loaded
    mem0 = importlib.import_module("mem0")
    store = {
        "path": str(folder),
        "collection_name": "bench",
        "embedding_model_dims": EMBEDDER.identity.dims,
        "on_disk": True,
    }
    unused = {"api_key": "nothing is inferred or embedded"}
    memory = mem0.Memory.from_config({
        "vector_store": {"provider": "qdrant", "config": store},
        "embedder": {"provider": "openai", "config": unused},
        "llm": {"provider": "openai", "config": unused},
        "history_db_path": str(folder.with_suffix(".history")),
    })  # fmt: skip
    memory.embedding_model = Given(known)
    for text in texts:
        memory.add(text, user_id="bench", infer=False)
    return lambda prompt: memory.search(prompt, filters={"user_id": "bench"}, top_k=PEER_LIMIT)


PEERS: dict[str, Callable[[Path, Sequence[str], dict[str, list[float]]], Callable[[str], object]]] = {
    "chromadb": _chromadb, "mem0": _mem0,
}  # fmt: skip
"""Other memory stores. Each is given its vectors: what is measured is the store, not a model."""


def beside(home: Path, facts: int, asked: Sequence[str], embedder: str) -> dict[str, float]:
    """Return the median milliseconds of a search in other stores of the same facts, where they are installed."""
    texts, found = list(sentences(facts, SEED)), {}
    vectors = np.concatenate([EMBEDDER.embed(texts), EMBEDDERS[embedder][0]().embed(asked, query=True)])
    known = dict(zip([*texts, *asked], vectors.tolist(), strict=True))
    for name, fill_peer in PEERS.items():
        if importlib.util.find_spec(name) is None:
            click.echo(f"{name}: skipped, it is not installed", err=True)
            continue
        search = fill_peer(home / "peers" / name, texts, known)
        found[name] = p50([timed(partial(search, prompt))[1] for prompt in asked])
    return found


@click.option("--sizes", callback=numbers, default="1000,10000,100000", help="Facts in the store, at least 1 each.")
@click.option("--chunks", default=50_000, help="Turns of past conversations, at least 1.")
@click.option("--samples", default=200, help="Prompts for each size.")
@click.option("--triggers", default=0, help="Triggers of each fact, at most 8.")
@click.option("--embedder", default="auto", type=click.Choice(sorted(EMBEDDERS)))
@click.option("--peers", "with_peers", is_flag=True, help="Also chromadb and mem0, where they are installed.")
def bench(
    sizes: Sequence[int], chunks: int, samples: int, embedder: str, with_peers: bool = False, triggers: int = 0
) -> dict[str, Any]:
    """Measure a store of each size, and other stores if asked for."""
    measured = []
    for size in sorted(sizes):
        with tempfile.TemporaryDirectory() as folder:
            home, asked = Path(folder), prompts(size, min(samples, size))
            build(home, size, chunks, embedder, triggers)
            measured.append({
                "facts": size,
                **warm(home, asked, embedder),
                **cold(home, asked[0]),
                "rss_mb": resident(home, asked, embedder),
                **({"peers_p50_ms": beside(home, size, asked, embedder)} if with_peers else {}),
            })  # fmt: skip
    return {"chunks": chunks, "triggers": triggers, "sizes": measured}


main = program(bench)
