"""What the pages of `perdure ui` cost the server, beside the bare query behind each.

python -m bench ui --facts 100000 --json

A store is filled, some turns are played, and each page and the query that it shows are asked for in turns. Per page:
median and 95th percentile in milliseconds, the ratio of its median to that of the query, and its size in bytes.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from starlette.testclient import TestClient

from bench.measuring import p50, p95, timed
from bench.program import program
from bench.store import fill, sentences
from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext
from perdure.store.listing import Filter
from perdure.ui.door import Keys
from perdure.ui.pages import PAGE, pages

PORT = 43_210
TURNS = 50
"""Turns that are played, so that there are some to show."""
SEED = 22
Query = Callable[[Memory], Any]


@click.option("--facts", default=100_000, help="Memories in the store.")
@click.option("--samples", default=40, help="Of each page.")
def bench(facts: int, samples: int) -> dict[str, Any]:
    """Fill a store and ask for its pages; return figures by page."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with Memory.open(home, embedder="hash", embedder_model="384", timers=False, watch=False) as memory:
            fill(memory._engine.store, facts, SEED)
        with Memory.open(home, embedder="hash", embedder_model="384", timers=False, watch=False) as memory:
            memory.ready()
            words = next(sentences(1, SEED)).split()
            for place in range(TURNS):
                memory.turns.before(f"What about {words[place % 9]} {words[(place + 2) % 9]}?", TurnContext())
            memory.settle()
            return {"facts": facts, "pages": _pages(memory, samples, f"{words[1]} {words[4]}")}


def _pages(memory: Memory, samples: int, words: str) -> dict[str, dict[str, float]]:
    keys = Keys()
    client = TestClient(pages(memory, keys, PORT), base_url=f"http://127.0.0.1:{PORT}")
    client.get("/enter", params={"token": keys.token()}).raise_for_status()
    newest, turn = memory.admin.list(limit=1)[0].id, memory.turns.past(1)[0].id
    rows: dict[str, tuple[str, Query]] = {
        "today": ("today", lambda memory: memory.admin.list(limit=PAGE)),
        "memories": ("memories", lambda memory: memory.admin.list(limit=PAGE)),
        "memories, searched": (f"memories?q={words}", lambda memory: memory.admin.search(words, limit=PAGE)),
        "memories, narrowed": (
            "memories?category=other", lambda memory: memory.admin.list(Filter(category="other"), limit=PAGE),
        ),
        "one memory": (f"memory/{newest}", lambda memory: memory.history(newest)),
        "turns": ("turns", lambda memory: memory.turns.past()),
        "one turn": (f"turns/{turn}", lambda memory: memory.why(turn)),
        "one turn, asked again": (f"turns/{turn}?replay=yes", lambda memory: memory.turns.replay(turn)),
        "review": ("review", lambda memory: memory.admin.review()),
        "files, searched": (f"files?q={words}", lambda memory: memory.files.search(words)),
        "health": ("health", lambda memory: memory.status()),
    }  # fmt: skip
    found = {}
    for name, (page, query) in rows.items():
        found[name] = _sampled(client, f"{keys.prefix}/{page}", partial(query, memory), samples)
    for name in ("today", "memories", "one memory"):
        page, query = rows[name]
        found[f"{name}, after a change"] = _sampled(
            client, f"{keys.prefix}/{page}", partial(query, memory), samples,
            lambda: memory.pin(newest, not memory.get(newest).pinned),
        )  # fmt: skip
    return found


def _sampled(
    client: TestClient, path: str, query: Callable[[], Any], samples: int, change: Callable[[], Any] = lambda: None
) -> dict[str, float]:
    taken: list[float] = []
    bare: list[float] = []
    size = 0
    for _ in range(samples + 1):
        change()
        bare.append(timed(query)[1])
        answer, seconds = timed(lambda: client.get(path))
        taken.append(seconds)
        answer.raise_for_status()
        size = len(answer.content)
    # The first of each reads what the others find in memory.
    taken, bare = taken[1:], bare[1:]
    return {
        "p50_ms": p50(taken, 1),
        "p95_ms": p95(taken, 1),
        "query_p50_ms": p50(bare, 1),
        "ratio": round(statistics.median(taken) / statistics.median(bare), 2),
        "bytes": size,
    }


main = program(bench)
