"""`perdure replay`: a real transcript through the same hooks that a host fires."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import click

from perdure.cli.demo import folder
from perdure.cli.output import Output, progress
from perdure.clock import ManualClock
from perdure.files.transcripts import FORMATS, Dialogue, Exchange, read_transcript
from perdure.hooks.fake_host import FakeHost, Turn
from perdure.hooks.host import HookRunner
from perdure.plugin.memory import Memory
from perdure.plugin.plugin import hookimpls_for
from perdure.recall.query import understand

TURN_SECONDS = 30.0


@dataclass(slots=True)
class Measured:
    """What a replay measured, in seconds, each figure beside a bare one.

    Attributes:
        recall: `before_agent_start` of the distinct prompts that were searched for, with the model loaded.
        embed: embedding the same prompts alone, after the turn.
        capture: `agent_end` of every other turn.
        append: a bare synced append of the user's words to a file beside the store, in the other turns at the
            same place: the first sync after a pause takes longer than the one behind it.
    """

    recall: list[float] = field(default_factory=list)
    capture: list[float] = field(default_factory=list)
    embed: list[float] = field(default_factory=list)
    append: list[float] = field(default_factory=list)


def play_dialogues(
    dialogues: Sequence[Dialogue],
    memory: Memory,
    clock: ManualClock,
    on_turn: Callable[[Turn], None],
    on_reply: Callable[[str], None] = lambda user: None,
) -> None:
    """Fire the hooks of a host for each exchange. As in life, a turn's leftovers are done before the next.

    Args:
        dialogues: what is said.
        memory: where it goes.
        clock: is set to the time of each exchange.
        on_turn: is told of each turn.
        on_reply: is called with the user's words where the model would answer, between the two hooks.
    """
    runner = HookRunner()
    runner.register(hookimpls_for(memory=memory), "perdure")
    host = FakeHost(runner, session_id=dialogues[0].session if dialogues else "none", now=clock.now)
    host.start()
    memory.ready()
    for number, dialogue in enumerate(dialogues):
        if number:
            host.new_session(dialogue.session)
        for exchange in dialogue.exchanges:
            if exchange.at is not None and exchange.at > clock.now():
                clock.set(exchange.at)
            turn = host.turn(exchange.user, _answering(memory, exchange, on_reply))
            memory.settle()
            on_turn(turn)
            clock.advance(TURN_SECONDS)


def _answering(memory: Memory, exchange: Exchange, on_reply: Callable[[str], None]) -> Callable[[str], str]:
    def answer(prompt_seen: str) -> str:
        # A model takes seconds to answer; by then the receipt has been written.
        memory.settle()
        on_reply(exchange.user)
        return exchange.reply

    return answer


def measure(dialogues: Sequence[Dialogue], home: Path, on_turn: Callable[[], None]) -> dict[str, Any]:
    """Replay dialogues into a store and return the figures."""
    measured = Measured()
    first = next((exchange.at for dialogue in dialogues for exchange in dialogue.exchanges if exchange.at), time.time())
    clock = ManualClock(first)
    began = time.monotonic()

    with Memory.open(home, clock=clock) as memory:
        probe = Probe(memory, home / "append.probe")
        asked: set[str] = set()
        turns = 0

        def compare(user: str) -> None:
            if turns % 2:
                measured.append.append(probe.append(user))

        def note(turn: Turn) -> None:
            nonlocal turns
            measured.capture += [] if turns % 2 else [turn.capture_seconds]
            turns += 1
            if turn.user not in asked and understand(turn.user).trivial is None:
                asked.add(turn.user)
                measured.recall.append(turn.recall_seconds)
                alone = probe.embed(turn.user)
                measured.embed += [] if alone is None else [alone]
            on_turn()

        play_dialogues(dialogues, memory, clock, note, compare)
        probe.close()
        facts = [change.fact for change in memory.changes(limit=10**9) if change.action == "add"]
    return _figures(turns, measured, Counter(fact.category for fact in facts), time.monotonic() - began)


class Probe:
    """A bare synced append and a bare embedding, to hold the hooks against."""

    def __init__(self, memory: Memory, path: Path) -> None:
        self._memory = memory
        self._path = path
        self._handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._sync = getattr(os, "fdatasync", os.fsync)

    def append(self, text: str) -> float:
        """Return how long an append of this text takes until the disk has it, in seconds."""
        began = time.perf_counter()
        os.write(self._handle, text.encode("utf-8", "replace") + b"\n")
        self._sync(self._handle)
        return time.perf_counter() - began

    def embed(self, text: str) -> float | None:
        """Return how long embedding this text alone takes, in seconds; None without a model."""
        began = time.perf_counter()
        return None if self._memory.embed(text) is None else time.perf_counter() - began

    def close(self) -> None:
        """Remove the file."""
        os.close(self._handle)
        self._path.unlink()


def _figures(turns: int, measured: Measured, categories: Counter[str], seconds: float) -> dict[str, Any]:
    facts = categories.total()
    recall, embed = _percentiles(measured.recall), _percentiles(measured.embed)
    capture, append = _percentiles(measured.capture), _percentiles(measured.append)
    return {
        "turns": turns,
        "searched": len(measured.recall),
        "captured": facts,
        "by_category": dict(categories.most_common()),
        "facts_per_100_turns": round(100 * facts / turns, 1) if turns else 0.0,
        "before_agent_start_ms": recall,
        "embed_ms": embed,
        "recall_to_embed_ratio": _ratio(recall, embed),
        "agent_end_ms": capture,
        "append_ms": append,
        "capture_to_append_ratio": _ratio(capture, append),
        "seconds": round(seconds, 2),
    }


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {}
    cuts = quantiles(seconds, n=20, method="inclusive")
    return {"p50": round(cuts[9] * 1e3, 3), "p95": round(cuts[18] * 1e3, 3)}


def _ratio(one: dict[str, float], other: dict[str, float]) -> float | None:
    return round(one["p50"] / other["p50"], 2) if one and other else None


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), default="auto", show_default=True, help="Kind of file.")
@click.option("--conversation", help="Which conversation of a LoCoMo file; without it the first.")
@click.option("--keep", type=click.Path(path_type=Path), help="Use this folder for the store and keep it.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON object.")
def replay(file: Path, form: str, conversation: str | None, keep: Path | None, as_json: bool) -> int:
    """Play a transcript through the hooks, and show what was kept and how long it took.

    Example: perdure replay session.jsonl --keep ./memory
    """
    dialogues = read_transcript(file, form, conversation)
    total = sum(len(dialogue.exchanges) for dialogue in dialogues)
    with folder(keep) as home, progress("replaying", total, quiet=as_json) as advance:
        figures = measure(dialogues, home, advance)
    output = Output(as_json)
    if as_json:
        output.json(figures)
    else:
        output.table(("", ""), [(name.replace("_", " "), value) for name, value in figures.items()])
    return 0
