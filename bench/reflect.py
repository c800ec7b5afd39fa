"""What reflection says of labelled memories, and what it and consolidation make of real conversations.

python -m bench reflect [--out FILE]

Every store, life and day of `training/data/development` is a store of its own: the memories of a store or a life, one
a day in their order; of a day what is to be kept, on the day of its session, without what was replaced or withdrawn
there. `silent`: stores of which nothing is said, by language as well. With --out each sentence is written into a file
as a line of JSON, with the memories it rests on, for readers to judge: useful, neutral or silly.

python -m bench reflect locomo.json --json [--sample 30]

Each speaker of a conversation is a user: what they said is captured turn by turn, each turn in a session of its own.
The clock follows the conversation, and a reflection looks back every fortnight. `clusters` and `merges` are those of a
consolidation at the end, before which nothing was merged; `lower` tells how many there would be at lower cosines, which
puts the rules of words to the test. With --sample so many merges (also those at lower cosines) and patterns are printed
with their evidence, chosen by chance with a fixed seed, for a person to judge.

The data is under CC BY-NC 4.0, so it is not in this repository: https://github.com/snap-research/locomo.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from bench.locomo import Turn, located, turns
from bench.memories import live, opened
from bench.program import program
from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.consolidation.consolidate import Consolidated
from perdure.consolidation.reflect import Pattern
from perdure.hooks.types import TurnContext
from perdure.ranking.decay import DAY
from training.check import DATA, load
from training.forms import Day, Life, Store

FORTNIGHT = 14 * 86_400.0
LABELLED = DATA / "development"
NOW = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
"""The last day of a store or a life, whose prompts are of about then."""
ALL_DAYS = 36_500.0
LOWER = (0.85, 0.75)
SEED = 7


@dataclass(slots=True)
class Tally:
    """What all speakers gave together."""

    facts: int = 0
    users: int = 0
    merges: list[dict[str, Any]] = field(default_factory=list)
    lower: Counter[str] = field(default_factory=Counter)
    lower_merges: list[dict[str, Any]] = field(default_factory=list)
    patterns: list[dict[str, Any]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    actions: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    live_patterns: int = 0
    cpu_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def figures(self) -> dict[str, Any]:
        """Return what is printed."""
        return {
            "users": self.users,
            "facts": self.facts,
            "clusters": len(self.merges),
            "merged_facts": sum(len(merge["texts"]) for merge in self.merges),
            "clusters_at_lower_cosines": dict(self.lower),
            "patterns": dict(self.actions),
            "patterns_by_kind": dict(self.kinds),
            "patterns_at_the_end": self.live_patterns,
            "cpu_seconds": {name: round(seconds, 2) for name, seconds in self.cpu_seconds.items()},
        }


def speak(memory: Memory, clock: ManualClock, said: Sequence[Turn], tally: Tally) -> None:
    """Capture what one speaker said, and reflect every fortnight."""
    due = said[0].message["timestamp"] + FORTNIGHT
    for turn in said:
        while turn.message["timestamp"] >= due:
            clock.set(due)
            reflected(memory, tally)
            due += FORTNIGHT
        clock.set(turn.message["timestamp"])
        message = {**turn.message, "content": turn.message["content"][0]["text"]}
        memory.turns.after([message], True, TurnContext(session_id=turn.id, host="bench"))
    clock.set(due)
    reflected(memory, tally)


def reflected(memory: Memory, tally: Tally) -> None:
    """Reflect, and count what came of it."""
    memory.settle(600)
    # A fact may have expired by the time at which the pattern it speaks for is found again.
    tally.texts |= {fact.id: fact.text for fact in memory.admin.list(limit=10_000)}
    began = time.process_time()
    done = memory.upkeep.reflect()
    tally.cpu_seconds["reflect"] += time.process_time() - began
    for pattern in done.patterns:
        tally.actions[pattern.action] += 1
        if pattern.action != "known":
            tally.kinds[pattern.kind] += 1
            tally.patterns.append(shown(pattern, tally.texts))


def shown(pattern: Pattern, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return a pattern with its evidence in words."""
    evidence = [texts[fact_id] for fact_id in pattern.evidence]
    return {"kind": pattern.kind, "text": pattern.text, "evidence": evidence}


def merged(done: Consolidated) -> list[dict[str, Any]]:
    """Return merges in words."""
    return [{"text": each.text, "texts": list(each.texts), "cosine": each.cosine} for each in done.merges]


def measure(item: Mapping[str, Any], speaker: str, tally: Tally) -> None:
    """Measure one speaker of a conversation."""
    said = [turn for turn in turns(item["conversation"]) if turn.message["name"] == speaker]
    clock = ManualClock(said[0].message["timestamp"])
    with opened(clock=clock, record_sessions=False, watch=False) as memory:
        speak(memory, clock, said, tally)
        clock.set(said[-1].message["timestamp"])
        facts = memory.admin.list(limit=10_000)
        tally.users += 1
        tally.live_patterns += sum(fact.category == "pattern" for fact in facts)
        tally.facts += sum(fact.category != "pattern" for fact in facts)
        for cosine in LOWER:
            found = merged(memory.upkeep.consolidate(cosine=cosine, dry_run=True))
            tally.lower[str(cosine)] += len(found)
            tally.lower_merges += found if cosine == LOWER[-1] else []
        began = time.process_time()
        tally.merges += merged(memory.upkeep.consolidate())
        tally.cpu_seconds["consolidate"] += time.process_time() - began


def sampled(tally: Tally, size: int) -> dict[str, list[dict[str, Any]]]:
    """Return merges and patterns for a person to judge: all of them, or so many by chance."""
    chance = random.Random(SEED)
    merges = tally.lower_merges[:size]
    return {"merges": merges, "patterns": chance.sample(tally.patterns, min(size, len(tally.patterns)))}


def sayings(file: Store | Life | Day) -> Iterator[dict[str, Any]]:
    """Yield what reflection says of a file of labelled memories, with its evidence in words."""
    clock = ManualClock(NOW)
    with opened(clock=clock, embedder="none", watch=False, timers=False) as memory:
        if isinstance(file, Day):
            live_through(memory, clock, file)
        else:
            clock.set(NOW - len(file.memories) * DAY)
            for known in file.memories:
                memory.store(known.text)
                clock.advance(DAY)
        texts = {fact.id: fact.text for fact in live(memory)}
        for pattern in memory.upkeep.reflect(days=ALL_DAYS, dry_run=True).patterns:
            yield shown(pattern, texts)


def live_through(memory: Memory, clock: ManualClock, day: Day) -> None:
    """Store what is to be kept of a day and lasts; what it replaces or withdraws goes."""
    ids: dict[str, str] = {}
    for session in day.sessions:
        clock.set(datetime.fromisoformat(session.date).timestamp())
        for kept in (kept for turn in session.turns for kept in turn.keep):
            if kept.lasting:
                ids[kept.id] = memory.store(kept.text).id
            gone = {ids[name] for name in (*kept.replaces, *kept.withdraws) if name in ids} - {ids.get(kept.id)}
            for fact in [fact for fact in live(memory) if fact.id in gone]:
                memory.forget(fact.id)


def of_labelled(folder: Path, out: Path | None) -> dict[str, Any]:
    """Return how much is said of labelled memories; write it into a file."""
    files = [file for file in load(folder).files.values() if isinstance(file, Store | Life | Day)]
    said = {file: list(sayings(file)) for file in files}
    if out is not None:
        named = ({"store": _name(file), "lang": file.lang, **each} for file in files for each in said[file])
        out.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in named), encoding="utf-8")
    return {
        "stores": dict(Counter(file.lang for file in files)),
        "silent": dict(Counter(file.lang for file in files if not said[file])),
        "sentences": sum(map(len, said.values())),
        "by_kind": dict(Counter(each["kind"] for told in said.values() for each in told).most_common()),
    }


def _name(file: Store | Life | Day) -> str:
    return file.day if isinstance(file, Day) else file.store


@click.argument("data", required=False, type=click.Path(path_type=Path))
@click.option("--sample", type=int, default=0, help="Also print so many merges and patterns with their evidence.")
@click.option("--out", type=click.Path(path_type=Path), help="A file for what is said of labelled memories.")
def bench(data: Path | None, sample: int, out: Path | None) -> dict[str, Any]:
    """Measure reflection on labelled memories, or it and consolidation on LoCoMo."""
    if data is None or data.is_dir():
        return of_labelled(data or LABELLED, out)
    tally = Tally()
    for item in json.loads(located(data).read_text(encoding="utf-8")):
        for speaker in (item["conversation"]["speaker_a"], item["conversation"]["speaker_b"]):
            measure(item, speaker, tally)
            click.echo(f"{item['sample_id']} {speaker} done", err=True)
    return {**tally.figures(), **({"sample": sampled(tally, sample)} if sample else {})}


main = program(bench)
