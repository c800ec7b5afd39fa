"""`perdure replay`: a real transcript through the same hooks that a host fires."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

import click

from perdure.api.memory import Memory
from perdure.cli.demo import folder
from perdure.cli.options import json_option
from perdure.cli.output import Output, progress
from perdure.clock import ManualClock
from perdure.files.turns import FORMATS, Dialogue, Exchange, read_transcript
from perdure.hooks.fake_host import FakeHost, Turn
from perdure.hooks.host import HookRunner
from perdure.plugin.plugin import hookimpls_for
from perdure.recall.query import understand

TURN_SECONDS = 30.0


class Listener:
    """What a replay tells while it runs. Does nothing by itself."""

    def answering(self, user: str) -> None:
        """Take note that the model would answer now: between the two hooks of a turn."""

    def acknowledged(self, turn: Turn) -> None:
        """Take note that `agent_end` has returned: what the user said is on disk."""

    def settled(self, turn: Turn) -> None:
        """Take note that what the turn left behind is done."""


def play_dialogues(
    dialogues: Sequence[Dialogue], memory: Memory, clock: ManualClock, listener: Listener, *, settle: bool = True
) -> None:
    """Fire the hooks of a host for each exchange; the host's clock is set to its time, the memory keeps its own.

    To `settle` is as in life, where a model takes seconds to answer and a person to read: what a turn leaves behind is
    done before the next begins.
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
            turn = host.turn(exchange.user, _answer(memory if settle else None, exchange, listener))
            listener.acknowledged(turn)
            if settle:
                memory.settle()
            listener.settled(turn)
            clock.advance(TURN_SECONDS)


def _answer(memory: Memory | None, exchange: Exchange, listener: Listener) -> Callable[[str], str]:
    def answer(prompt_seen: str) -> str:
        if memory is not None:
            memory.settle()
        listener.answering(exchange.user)
        return exchange.reply

    return answer


def start_of(dialogues: Sequence[Dialogue]) -> float:
    """Return the time of the first exchange that has one, epoch seconds, else the time of the machine."""
    times = (exchange.at for dialogue in dialogues for exchange in dialogue.exchanges)
    return next((at for at in times if at is not None), time.time())


def measure(dialogues: Sequence[Dialogue], home: Path, on_turn: Callable[[], None]) -> dict[str, Any]:
    """Replay dialogues into a store and return the figures."""
    clock = ManualClock(start_of(dialogues))
    began = time.monotonic()
    with Memory.open(home, timers=False) as memory:
        stopwatch = Stopwatch(memory, home / "append.probe", on_turn)
        play_dialogues(dialogues, memory, clock, stopwatch)
        stopwatch.close()
        facts = [change.fact for change in memory.changes(limit=10**9) if change.action == "add"]
    figures = stopwatch.figures(Counter(fact.category for fact in facts), time.monotonic() - began)
    return {**figures, "memories": [fact.text for fact in facts]}


class Stopwatch(Listener):
    """Measures a replay, each figure beside a bare one.

    `before_agent_start` of the distinct prompts that were searched for stands beside embedding the same prompts
    alone, after the turn. `agent_end` of every other turn stands beside a bare synced append of the user's words,
    in the other turns at the same place: the first sync after a pause takes longer than the one behind it.
    """

    def __init__(self, memory: Memory, path: Path, on_turn: Callable[[], None]) -> None:
        """Measure with `memory`'s model and a file at `path`; `on_turn` is called after each turn."""
        self._memory = memory
        self._path = path
        self._on_turn = on_turn
        self._handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._turns = 0
        self._asked: set[str] = set()
        self._seconds: dict[str, list[float]] = {name: [] for name in ("recall", "embed", "capture", "append")}

    def answering(self, user: str) -> None:
        """Measure a bare append in every other turn."""
        if self._turns % 2:
            began = time.perf_counter()
            os.write(self._handle, user.encode("utf-8", "replace") + b"\n")
            getattr(os, "fdatasync", os.fsync)(self._handle)
            self._seconds["append"].append(time.perf_counter() - began)

    def settled(self, turn: Turn) -> None:
        """Take the turn's times, and measure a bare embedding of its prompt."""
        if not self._turns % 2:
            self._seconds["capture"].append(turn.capture_seconds)
        self._turns += 1
        if turn.user not in self._asked and understand(turn.user).trivial is None:
            self._asked.add(turn.user)
            self._seconds["recall"].append(turn.recall_seconds)
            began = time.perf_counter()
            if self._memory.embed(turn.user) is not None:
                self._seconds["embed"].append(time.perf_counter() - began)
        self._on_turn()

    def close(self) -> None:
        """Remove the file."""
        os.close(self._handle)
        self._path.unlink()

    def figures(self, categories: Counter[str], seconds: float) -> dict[str, Any]:
        """Return what was measured, in milliseconds."""
        facts = categories.total()
        recall, embed, capture, append = map(_percentiles, self._seconds.values())
        return {
            "turns": self._turns,
            "searched": len(self._seconds["recall"]),
            "captured": facts,
            "by_category": dict(categories.most_common()),
            "facts_per_100_turns": round(100 * facts / self._turns, 1) if self._turns else 0.0,
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
@json_option
def replay(file: Path, form: str, conversation: str | None, keep: Path | None, as_json: bool) -> None:
    """Play a transcript through the hooks, and show what was kept and how long it took.

    Example: perdure replay session.jsonl --keep ./memory
    """
    dialogues = read_transcript(file, form, conversation)
    total = sum(len(dialogue.exchanges) for dialogue in dialogues)
    with folder(keep) as home, progress("replaying", total, quiet=as_json) as advance:
        figures = measure(dialogues, home, advance)
    output = Output(as_json)
    output.json(figures)
    output.table(("text",), [(text,) for text in figures.pop("memories")])
    output.table(("", ""), [(name.replace("_", " "), value) for name, value in figures.items()])
