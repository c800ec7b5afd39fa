"""Does recall bring up what helps, all of it and nothing else? On a labelled set that was written without the code.

python -m bench precision --json [--data FILE]

The set (bench/data/precision.json): facts with scope, slot and supersession, and prompts with the facts that should
come up for them. Constants may be chosen on the queries of the half "tuned" alone; those of "untouched" only tell.

Precision: of what was brought up, the share that was expected. Recall: of what was expected, the share that was
brought up. Silence: of the prompts that nothing was expected for, the share that got nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from bench.measuring import Counts
from bench.memories import Words, brought, opened
from bench.program import program
from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.embed.base import Embedder
from perdure.embed.load import load_default
from perdure.hooks.types import Channel

DATA = Path(__file__).parent / "data" / "precision.json"
HALVES = ("tuned", "untouched")
TOP = 10
HOUR = 3600.0
Ask = Callable[[Mapping[str, Any]], Sequence[str]]


def fill(home: Path, facts: Sequence[Mapping[str, Any]], clock: ManualClock, embedder: str = "auto") -> dict[str, str]:
    """Store the facts as they were said, one after another; return the set's id of each stored one.

    They are made permanent: the set tells what was superseded, not how long a fact that nobody confirms should live.
    """
    ids: dict[str, str] = {}
    owners: dict[str | None, Memory] = {}
    scopes = sorted({fact["scope"] for fact in facts})
    projects = [scope for scope in scopes if scope.startswith("project:")]
    try:
        for fact in sorted(facts, key=lambda each: each["said_at"]):
            clock.set(datetime.fromisoformat(fact["said_at"]).timestamp())
            agent = fact["scope"].removeprefix("agent:") if fact["scope"].startswith("agent:") else None
            if agent not in owners:
                owners[agent] = Memory.open(home, agent=agent, scopes=projects, clock=clock, embedder=embedder)
                owners[agent].ready()
            former = ids.get(fact["supersedes"] or "")
            # Something else may have taken its place by itself.
            if former is not None and owners[agent].get(former).superseded_at is not None:
                former = None
            stored = owners[agent].store(
                fact["text"], category=fact["category"], entity=fact["entity"], key=fact["key"], value=fact["value"],
                tags=fact["tags"] or None, decay_class="permanent", scope=_scope(fact["scope"]), channel=Channel.USER,
                supersedes=former,
            )  # fmt: skip
            ids[fact["id"]] = stored.id
    finally:
        for memory in owners.values():
            memory.close()
    return {stored: name for name, stored in ids.items()}


def by_perdure(memory: Memory, names: Mapping[str, str]) -> Ask:
    """Return what a host's turn brings up."""

    def ask(query: Mapping[str, Any]) -> list[str]:
        reader = query["reader"]
        scopes = tuple(f"project:{name}" for name in reader["projects"])
        items = brought(memory, query["prompt"], query["id"], agent_id=reader["agent"], scopes=scopes)
        return [names.get(item.id, item.id) for item in items]

    return ask


def by_vector(facts: Sequence[Mapping[str, Any]], embedder: Embedder) -> Ask:
    """Return the nearest facts, whatever they are."""
    matrix = embedder.embed([fact["text"] for fact in facts])

    def ask(query: Mapping[str, Any]) -> list[str]:
        scores = matrix @ embedder.embed([query["prompt"]], query=True)[0]
        return [facts[at]["id"] for at in (-scores).argsort()[:TOP]]

    return ask


def by_words(facts: Sequence[Mapping[str, Any]]) -> Ask:
    """Return the facts with the most telling words in common, whatever they are."""
    words = Words(fact["text"] for fact in facts)
    return lambda query: [facts[place]["id"] for place in words.best(query["prompt"], TOP)]


def figures(asked: Sequence[Mapping[str, Any]], found: Sequence[set[str]]) -> dict[str, float]:
    """Return precision, recall and silence, 0 to 1."""
    counts = Counts()
    for query, got in zip(asked, found, strict=True):
        counts.add(got, set(query["expected"]))
    return counts.figures()


def mistakes(asked: Sequence[Mapping[str, Any]], found: Sequence[set[str]]) -> list[dict[str, Any]]:
    """Return the queries that something was missed for, or brought up falsely."""
    return [
        {"id": query["id"], "kind": query["kind"], "missed": sorted(wanted - got), "false": sorted(got - wanted)}
        for query, got in zip(asked, found, strict=True) if got != (wanted := set(query["expected"]))
    ]  # fmt: skip


def _scope(name: str) -> str | None:
    # An agent's and the user's are their openers' own.
    return name if name == "global" or name.startswith("project:") else None


@click.option("--data", type=click.Path(path_type=Path, exists=True), default=DATA, help="Another set of this form.")
@click.option("--embedder", default="auto", help="Another embedder for perdure.")
@click.option("--wrong", is_flag=True, help="Also the queries of the half to tune on that went wrong.")
def bench(data: Path, embedder: str, wrong: bool) -> dict[str, Any]:
    """Measure precision, recall and silence."""
    content = json.loads(data.read_text(encoding="utf-8"))
    facts, queries = content["facts"], content["queries"]
    clock = ManualClock()
    result: dict[str, Any] = {"facts": len(facts), "queries": len(queries)}
    with tempfile.TemporaryDirectory() as folder:
        names = fill(Path(folder), facts, clock, embedder)
        clock.advance(HOUR)
        with opened(folder, clock=clock, embedder=embedder) as memory:
            ways = {
                "perdure": by_perdure(memory, names),
                "vector_top10": by_vector(facts, load_default()),
                "fts5_top10": by_words(facts),
            }
            for half in HALVES:
                asked = [query for query in queries if query["half"] == half]
                found = {name: [set(ask(query)) for query in asked] for name, ask in ways.items()}
                result[half] = {name: figures(asked, given) for name, given in found.items()}
                if wrong and half == "tuned":
                    result["wrong"] = mistakes(asked, found["perdure"])
    return result


main = program(bench)
