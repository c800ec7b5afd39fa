"""The background jobs of a store, with what they work on. In the order in which they run at the first start."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from perdure.background.canary import Canary
from perdure.background.prune import Retention, prune
from perdure.background.scheduler import Job, Pause, Scheduler
from perdure.background.turn_gate import TurnGate
from perdure.background.upkeep import export_day, reconcile, rotate
from perdure.capture.describe import CategoryPatterns, compile_categories
from perdure.capture.pipeline import Capturer
from perdure.clock import Clock
from perdure.consolidation.classify import OTHER, classify
from perdure.embed.base import Embedder
from perdure.engine.file_memory import FileMemory
from perdure.engine.settings import Settings
from perdure.files.transcript_log import TranscriptLog
from perdure.hooks.types import Channel, Recall, TurnContext
from perdure.index.calibrate import calibrate
from perdure.llm import Asker
from perdure.recall.receipt import Receipt
from perdure.store.scope import GLOBAL, Audience, Scope
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.pluralize import counted

MINUTE = 60.0
HOUR = 3_600.0
DAY = 86_400.0
LOOK = 0.05
_AUTHOR = Author(Channel.UNKNOWN, "timers")


class Host(Protocol):
    """An open store in a host's process, as its jobs need it: an engine."""

    store: Store
    settings: Settings
    capturer: Capturer
    clock: Clock
    gate: TurnGate
    files: FileMemory

    def recall(
        self, prompt: str, context: TurnContext, *, receipt_to: Callable[[Receipt], None] | None = None
    ) -> Recall | None:
        """Return what comes up for a prompt."""
        ...

    def recover(self) -> None:
        """Capture what dead processes left behind."""
        ...

    def start_worker(self) -> None:
        """Have the worker process run, if there is work for it."""
        ...


def timers_of(engine: Host) -> Scheduler:
    """Return the timers of an open store; they do not run yet."""
    jobs = host_jobs(engine) + worker_jobs(engine.store, engine.settings)
    return Scheduler(engine.store, jobs, engine.clock, engine.gate, start_worker=engine.start_worker)


def host_jobs(engine: Host) -> list[Job]:
    """Return the jobs that run in the host's process: each steps aside for turns."""
    settings = engine.settings
    canary = Canary(engine.store, engine.capturer, lambda prompt, scope: _recalled(engine, prompt, scope))
    days = settings.conversation_days
    keep = Retention(settings.retention_days * DAY, settings.receipt_days * DAY, None if days is None else days * DAY)
    log = engine.files.log
    return [
        Job("prune", settings.prune_minutes * MINUTE, 0, lambda pause: _prune(engine, log, keep, pause), at_start=True),
        Job("canary", settings.canary_hours * HOUR, 2, canary.sing, at_start=True),
        Job("files", settings.sync_minutes * MINUTE, 10, lambda pause: _files(engine), here=True),
    ]  # fmt: skip


def worker_jobs(
    store: Store,
    settings: Settings,
    optimise: Callable[[], str] = lambda: "only the worker does this",
    embedder_of: Callable[[VectorSpace], Embedder | None] = lambda space: None,
    llm: Asker | None = None,
) -> list[Job]:
    """Return the jobs that run in the worker process.

    Args:
        store: the truth.
        settings: how often, and how much is kept.
        optimise: tidies the derived table; a host's process only plans these jobs.
        embedder_of: makes the embedder of a space; None if it cannot be made.
        llm: the language model that the settings name, if any.
    """
    own = compile_categories(settings.categories)

    return [
        Job("classify", settings.classify_hours * HOUR, 5 * MINUTE,
            lambda pause: _classify(store, pause, own, llm), True),
        Job("backup", settings.backup_hours * HOUR, MINUTE, lambda pause: rotate(store, settings.backup_keep), True),
        Job("export", settings.export_hours * HOUR, MINUTE,
            lambda pause: export_day(store, settings.export_keep, pause), True),
        Job("optimise", settings.optimise_hours * HOUR, 2 * MINUTE, lambda pause: optimise(), True),
        Job("calibrate", settings.calibrate_hours * HOUR, 5 * MINUTE,
            lambda pause: calibrate(store, embedder_of, pause), True),
        Job("reconcile", settings.reconcile_hours * HOUR, 10 * MINUTE, lambda pause: reconcile(store, pause), True),
        Job("tidy", settings.tidy_hours * HOUR, 15 * MINUTE, store.database.tidy, True),
    ]  # fmt: skip


def run_and_wait(timers: Scheduler, name: str, timeout: float) -> str:
    """Run a job now, wherever it belongs, and wait up to `timeout` seconds; return one line about it.

    Raises:
        InputError: there is no such job.
        StoreError: that it ran cannot be noted.
    """
    said = timers.run(name)
    deadline = time.monotonic() + timeout
    while (state := timers.states().get(name)) is not None and state.state != "waiting":
        if time.monotonic() > deadline:
            return f"{said}, which has not ended it in {timeout:.0f} s"
        timers.remind()
        time.sleep(LOOK)
    return (state.result if state else None) or said


def _prune(engine: Host, log: TranscriptLog, keep: Retention, pause: Pause) -> str:
    # A host that runs for months would else leave what others left behind to its next start.
    engine.recover()
    return prune(engine.store, log, keep, pause)


def _recalled(engine: Host, prompt: str, scope: Scope) -> str:
    context = TurnContext(scopes=(str(scope),), host="canary")
    recall = engine.recall(prompt, context, receipt_to=lambda receipt: None)
    return recall.block if recall else ""


def _files(engine: Host) -> str:
    if not engine.files.sync.roots():
        return "there are no files or conversations"
    left = engine.files.sync.fresh()
    return f"{counted(left, 'file')} left to read" if left else "up to date"


def _classify(store: Store, pause: Pause, own: CategoryPatterns, llm: Asker | None) -> str:
    with store.database.read() as connection:
        scopes = run(connection, "SELECT DISTINCT scope, scope_target FROM facts WHERE category = ?", (OTHER,))

    def let_go_first(looked: int, total: int) -> None:
        pause()

    done = 0
    for kind, target in scopes:
        # Scope by scope: the memories of one caller say nothing of those of another.
        scope = Scope(kind, target)
        audience = Audience(frozenset({GLOBAL, scope}), scope)
        done += len(classify(store, audience, _AUTHOR, pause=pause, own=own, llm=llm, progress=let_go_first))
    return f"{counted(done, 'memory')} got a category" if done else "nothing to classify"
