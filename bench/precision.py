"""Does recall bring up what helps, all of it and nothing else? On a labelled set that was written without the code.

python -m bench.precision --json [--data FILE]

The set (bench/data/precision.json): facts with scope, slot and supersession, and prompts with the facts that should
come up for them. Constants may be chosen on the queries of the half "tuned" alone; those of "untouched" only tell.

Precision: of what was brought up, the share that was expected. Recall: of what was expected, the share that was
brought up. Silence: of the prompts that nothing was expected for, the share that got nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import click

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.embed.base import Embedder
from perdure.embed.load import load_default
from perdure.hooks.types import Channel, TurnContext
from perdure.text.normalise import fts_text, match_query, match_terms

DATA = Path(__file__).parent / "data" / "precision.json"
HALVES = ("tuned", "untouched")
TOP = 10
HOUR = 3600.0
Ask = Callable[[Mapping[str, Any]], Sequence[str]]


@dataclass(slots=True)
class Counts:
    """What one way of recalling did over many queries."""

    brought: int = 0
    right: int = 0
    expected: int = 0
    quiet: int = 0
    to_be_quiet: int = 0
    wrong: list[dict[str, Any]] = field(default_factory=list)

    def count(self, query: Mapping[str, Any], found: Iterable[str]) -> None:
        """Count one query."""
        got, wanted = set(found), set(query["expected"])
        self.brought += len(got)
        self.right += len(got & wanted)
        self.expected += len(wanted)
        if not wanted:
            self.to_be_quiet += 1
            self.quiet += not got
        if got != wanted:
            self.wrong.append({"id": query["id"], "kind": query["kind"], "missed": sorted(wanted - got),
                               "false": sorted(got - wanted)})  # fmt: skip

    def figures(self) -> dict[str, float]:
        """Return precision, recall and silence, 0 to 1."""
        return {
            "precision": round(self.right / self.brought, 3) if self.brought else 1.0,
            "recall": round(self.right / self.expected, 3),
            "silence": round(self.quiet / self.to_be_quiet, 3),
        }


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
        context = TurnContext(session_id=query["id"], agent_id=reader["agent"], scopes=scopes, host="bench")
        recall = memory.turns.before(query["prompt"], context)
        return [names.get(item.id, item.id) for item in recall.items] if recall else []

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
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE facts USING fts5 (text, tokenize='porter unicode61')")
    connection.executemany("INSERT INTO facts VALUES (?)", [(fts_text(fact["text"]),) for fact in facts])

    def ask(query: Mapping[str, Any]) -> list[str]:
        wanted = match_query(match_terms(query["prompt"]))
        sql = "SELECT rowid FROM facts WHERE facts MATCH ? ORDER BY rank LIMIT ?"
        return [facts[row - 1]["id"] for (row,) in connection.execute(sql, (wanted, TOP))] if wanted else []

    return ask


def _scope(name: str) -> str | None:
    # An agent's and the user's are their openers' own.
    return name if name == "global" or name.startswith("project:") else None


@click.command()
@click.option("--data", type=click.Path(path_type=Path, exists=True), default=DATA, help="Another set of this form.")
@click.option("--embedder", default="auto", help="Another embedder for perdure.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--wrong", is_flag=True, help="Also the queries of the half to tune on that went wrong.")
def main(data: Path, embedder: str, as_json: bool, wrong: bool) -> None:
    """Measure precision, recall and silence."""
    content = json.loads(data.read_text(encoding="utf-8"))
    facts, queries = content["facts"], content["queries"]
    clock = ManualClock()
    result: dict[str, Any] = {"facts": len(facts), "queries": len(queries)}
    with tempfile.TemporaryDirectory() as folder:
        names = fill(Path(folder), facts, clock, embedder)
        clock.advance(HOUR)
        with Memory.open(folder, clock=clock, embedder=embedder) as memory:
            memory.ready()
            ways = {
                "perdure": by_perdure(memory, names),
                "vector_top10": by_vector(facts, load_default()),
                "fts5_top10": by_words(facts),
            }
            for half in HALVES:
                counts = {name: Counts() for name in ways}
                for query in queries:
                    if query["half"] == half:
                        for name, ask in ways.items():
                            counts[name].count(query, ask(query))
                result[half] = {name: count.figures() for name, count in counts.items()}
                if wrong and half == "tuned":
                    result["wrong"] = counts["perdure"].wrong
    if as_json:
        click.echo(json.dumps(result))
        return
    for half in HALVES:
        for name, figures in result[half].items():
            click.echo(f"{half:10} {name:13} {figures}")


if __name__ == "__main__":
    main()
