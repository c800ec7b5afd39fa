"""`perdure demo`: a conversation in which the agent remembers, played through the real hooks."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

import click
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perdure.api.memory import Memory
from perdure.cli.options import json_option
from perdure.cli.output import Output
from perdure.clock import ManualClock
from perdure.errors import InputError
from perdure.hooks.fake_host import FakeHost, Turn
from perdure.hooks.host import HookRunner
from perdure.plugin.plugin import hookimpls_for
from perdure.ranking.decay import DAY

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
        raise InputError(f"script {path} cannot be read ({type(error).__name__}); give a JSON file") from error
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
    with tempfile.TemporaryDirectory(prefix="perdure-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary)


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
    output.json(summary)
    output.rule("summary")
    output.table(("", ""), [(name.replace("_", " "), value) for name, value in asdict(summary).items()])
    output.line("Everything was remembered." if summary.ok else "Something went wrong, see above.", style="bold")
    if keep is not None:
        output.line(f"The store is in {keep}")
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
            output.line(f"  WRONG      {what}", style="red")
        recall_ms, capture_ms = turn.recall_seconds * 1e3, turn.capture_seconds * 1e3
        output.line(f"  recall {recall_ms:.1f} ms, acknowledged in {capture_ms:.1f} ms", style="dim")

    return report
