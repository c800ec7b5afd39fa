"""Conversations through the hooks that a host fires: `perdure replay` of a transcript, `perdure demo` of a script."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from statistics import quantiles
from typing import Any

import click
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perdure.api.memory import Memory
from perdure.cli.operation import operation
from perdure.cli.output import Output, progress
from perdure.clock import ManualClock
from perdure.errors import InputError
from perdure.files.turns import FORMATS, Dialogue, Exchange, read_transcript
from perdure.hooks.fake_host import FakeHost, Turn
from perdure.hooks.host import HookRunner
from perdure.plugin.plugin import hookimpls_for
from perdure.ranking.decay import DAY
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
    host = _host(memory, dialogues[0].session if dialogues else "none", clock)
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


def _host(memory: Memory, session: str, clock: ManualClock) -> FakeHost:
    runner = HookRunner()
    runner.register(hookimpls_for(memory=memory), "perdure")
    host = FakeHost(runner, session_id=session, now=clock.now)
    host.start()
    memory.ready()
    return host


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
        facts = [change.fact for change in memory.admin.changes(limit=10**9) if change.action == "add"]
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
            if self._memory.admin.embed(turn.user) is not None:
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


@operation()
@click.option("--format", "form", type=click.Choice(FORMATS), default="auto", show_default=True, help="File format.")
@click.option("--conversation", help="Conversation of a LoCoMo file; default: the first.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the store in this folder.")
def replay(output: Output, file: Path, form: str, conversation: str | None, keep: Path | None) -> None:
    """Replay a transcript and show what is captured, with timings.

    Example: perdure replay session.jsonl --keep ./memory
    """
    dialogues = read_transcript(file, form, conversation)
    total = sum(len(dialogue.exchanges) for dialogue in dialogues)
    with folder(keep) as home, progress("replaying", total, quiet=output.as_json) as advance:
        figures = measure(dialogues, home, advance)
    output.json(figures)
    output.table(("text",), [(text,) for text in figures.pop("memories")], none="Nothing was captured.")
    output.table(("", ""), [(name.replace("_", " "), value) for name, value in figures.items()])


SECONDS_PER_TURN = 60.0


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptTurn(_Part):
    """What the user says, what the agent answers, and words of the memories that should come to mind, or must not."""

    user: str
    agent: str = "OK."
    # An empty list: none should be recalled; left out: the turn is not judged.
    expect: tuple[str, ...] | None = None
    never: tuple[str, ...] = ()


class ScriptSession(_Part):
    """A conversation. The store is closed and opened again between two of them."""

    id: str
    days_ago: float = Field(0.0, ge=0)
    turns: tuple[ScriptTurn, ...] = Field(min_length=1)


class Script(_Part):
    """Conversations to be played, and secrets that must not be found in any file afterwards."""

    title: str = "Conversation"
    secrets: tuple[str, ...] = ()
    sessions: tuple[ScriptSession, ...] = Field(min_length=1)


def load_script(path: Path | None = None) -> Script:
    """Read a script and check it; None: the one that comes with perdure."""
    try:
        source = path.read_text(encoding="utf-8-sig") if path else packaged_script()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read script {path} ({type(error).__name__}); give a JSON file") from error
    try:
        return Script.model_validate_json(source)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"script {path} at {where or 'top'}: {first['msg']}; docs/demo.md has the schema") from None


def packaged_script() -> str:
    """Return the text of the script that comes with perdure."""
    return files("perdure.cli").joinpath("data/demo.json").read_text(encoding="utf-8")


@dataclass(slots=True)
class Summary:
    """How a played script went: turns that were judged, and expected memories that were recalled or not in them.

    False injections are memories in judged turns that were not expected, or hold words that must never come; secret
    bytes are bytes of the script's secrets found in the files of the store.
    """

    questions: int = 0
    recalled: int = 0
    missed: int = 0
    false_injections: int = 0
    captured: int = 0
    secret_bytes: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether everything went as the script expects."""
        return not (self.missed or self.false_injections or self.secret_bytes)

    def judge(self, expected: ScriptTurn, texts: list[str]) -> list[str]:
        """Count a turn; return what was wrong with it, in words."""
        wrong = [f"must not be recalled: {word}" for word in expected.never for text in texts if word in text]
        self.false_injections += len(wrong)
        if expected.expect is None:
            return wrong
        self.questions += 1
        for words in expected.expect:
            found = any(words in text for text in texts)
            self.recalled += found
            self.missed += not found
            wrong += [] if found else [f"missed: {words}"]
        extra = [text for text in texts if not any(words in text for words in expected.expect)]
        self.false_injections += len(extra)
        return wrong + [f"not expected: {text}" for text in extra]


Report = Callable[[ScriptTurn, Turn, list[str], list[str]], None]


def play(script: Script, home: Path, report: Report, *, on_session: Callable[[str], None]) -> Summary:
    """Play a script against a store, which is closed and opened again between the sessions.

    `report` is told of each turn: script, what happened, what was captured, what was wrong.
    """
    summary = Summary()
    began = time.monotonic()
    for session in script.sessions:
        on_session(session.id)
        _play_session(session, home, summary, report)
    summary.secret_bytes = sum(bytes_of(home, secret) for secret in script.secrets)
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


def _play_session(session: ScriptSession, home: Path, summary: Summary, report: Report) -> None:
    clock = ManualClock(time.time() - session.days_ago * DAY)
    with Memory.open(home, clock=clock, timers=False) as memory:
        host = _host(memory, session.id, clock)
        for scripted in session.turns:
            before = memory.status().changes
            turn = host.turn(scripted.user, scripted.agent)
            memory.settle()
            captured = [change.fact.text for change in memory.admin.changes(before) if change.action == "add"]
            summary.captured += len(captured)
            texts = [item.text for recall in turn.recalls for item in recall.items]
            report(scripted, turn, captured, summary.judge(scripted, texts))
            clock.advance(SECONDS_PER_TURN)
        host.stop()


def bytes_of(folder: Path, secret: str) -> int:
    """Return how many bytes of a secret lie in the files below a folder."""
    needle = secret.encode()
    return sum(path.read_bytes().count(needle) * len(needle) for path in folder.rglob("*") if path.is_file())


@contextmanager
def folder(keep: Path | None) -> Iterator[Path]:
    """Lend a folder for a store: the one to keep, or one that is gone afterwards."""
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="perdure-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary)


@operation()
@click.option("--script", "script_file", type=click.Path(path_type=Path), help="Script to play (docs/demo.md).")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the store in this folder.")
def demo(output: Output, script_file: Path | None, keep: Path | None) -> int:
    """Replay two sample sessions and watch an agent remember.

    Example: perdure demo
    """
    script = load_script(script_file)
    output.title(script.title)
    with folder(keep) as home:
        summary = play(script, home, _reporter(output), on_session=lambda name: output.rule(f"session: {name}"))
    output.json(summary)
    output.rule("summary")
    output.table(("", ""), [(name.replace("_", " "), value) for name, value in asdict(summary).items()])
    output.line("Everything was remembered." if summary.ok else "Something went wrong; see above.", style="bold")
    if keep is not None:
        output.line(f"Store: {keep}")
    return int(not summary.ok)


def _reporter(output: Output) -> Report:
    def report(scripted: ScriptTurn, turn: Turn, captured: list[str], wrong: list[str]) -> None:
        output.line(f"user       {turn.user}", style="bold")
        for recall in turn.recalls:
            for item in recall.items:
                output.line(f"  recalled   [{item.leg}/{item.category}] {item.text}", style="green")
        output.line(f"agent      {turn.reply}")
        for text in captured:
            output.line(f"  captured   {text}", style="cyan")
        for what in wrong:
            output.line(f"  FAILED     {what}", style="red")
        recall_ms, capture_ms = turn.recall_seconds * 1e3, turn.capture_seconds * 1e3
        output.line(f"  recall {recall_ms:.1f} ms, acknowledged in {capture_ms:.1f} ms", style="dim")

    return report
