"""`perdure demo`: a conversation in which the agent remembers, played through the real hooks."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from perdure.api.memory import Memory
from perdure.cli.options import json_option
from perdure.cli.output import Output
from perdure.cli.script import Script, ScriptSession, ScriptTurn, load_script
from perdure.clock import ManualClock
from perdure.hooks.fake_host import FakeHost, Turn
from perdure.hooks.host import HookRunner
from perdure.plugin.plugin import hookimpls_for
from perdure.ranking.decay import DAY

SECONDS_PER_TURN = 60.0


@dataclass(slots=True)
class Summary:
    """How a played script went.

    Attributes:
        questions: turns that were judged.
        recalled, missed: expected memories that were recalled, or not.
        false_injections: memories in judged turns that were not expected, or hold words that must never come.
        captured: facts that were stored.
        secret_bytes: bytes of the script's secrets found in the files of the store.
        seconds: the whole of it.
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
        wrong = [f"never expected: {word}" for word in expected.never for text in texts if word in text]
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

    Args:
        script: what to play.
        home: the data folder.
        report: is told of each turn: script, what happened, what was captured, what was wrong.
        on_session: is told of each session that begins.
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
        runner = HookRunner()
        runner.register(hookimpls_for(memory=memory), "perdure")
        host = FakeHost(runner, session_id=session.id, now=clock.now)
        host.start()
        memory.ready()
        for scripted in session.turns:
            before = memory.status().changes
            turn = host.turn(scripted.user, scripted.agent)
            memory.settle()
            captured = [change.fact.text for change in memory.changes(before) if change.action == "add"]
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
    temporary = Path(tempfile.mkdtemp(prefix="perdure-"))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@click.command()
@click.option("--script", "script_file", type=click.Path(path_type=Path), help="Play this script (docs/demo.md).")
@click.option("--keep", type=click.Path(path_type=Path), help="Use this folder for the store and keep it.")
@json_option
def demo(script_file: Path | None, keep: Path | None, as_json: bool) -> int:
    """Play a conversation of two sessions in which the agent remembers.

    Example: perdure demo
    """
    script = load_script(script_file)
    output = Output(as_json)
    output.title(script.title)
    with folder(keep) as home:
        summary = play(script, home, _reporter(output), on_session=lambda name: output.rule(f"session: {name}"))
    if as_json:
        output.json(asdict(summary))
    else:
        _print_summary(output, summary, keep)
    return 0 if summary.ok else 1


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
            output.line(f"  WRONG      {what}", style="red")
        recall_ms, capture_ms = turn.recall_seconds * 1e3, turn.capture_seconds * 1e3
        output.line(f"  recall {recall_ms:.1f} ms, acknowledged in {capture_ms:.1f} ms", style="dim")

    return report


def _print_summary(output: Output, summary: Summary, keep: Path | None) -> None:
    output.rule("summary")
    rows = [(name.replace("_", " "), str(value)) for name, value in asdict(summary).items()]
    output.table(("", ""), rows)
    output.line("Everything was remembered." if summary.ok else "Something went wrong, see above.", style="bold")
    if keep is not None:
        output.line(f"The store is in {keep}")
