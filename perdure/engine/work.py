"""What the worker process does: whatever would hold a host's interpreter for longer than a turn can wait."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perdure.background.keeper import TurnGate
from perdure.background.scheduler import Pause, Scheduler
from perdure.background.upkeep import export_day, reconcile, rotate
from perdure.capture.describe import CategoryPatterns, compile_categories
from perdure.consolidation.classify import OTHER, classify
from perdure.embed.base import Embedder
from perdure.engine.composing import load_extensions
from perdure.engine.file_memory import files_options
from perdure.engine.jobs import worker_jobs
from perdure.engine.model import Recipes
from perdure.engine.settings import Settings
from perdure.engine.store_opening import objects_of, server_of
from perdure.errors import ModelError, StoreBusyError
from perdure.failpoints import fail_point
from perdure.files.index import FileIndex
from perdure.hooks.types import Channel
from perdure.index.calibrate import calibrate, grown
from perdure.index.feeding import Feeding
from perdure.index.missing import embed_missing
from perdure.index.reembed import Reembedder
from perdure.parts import part
from perdure.store.scope import GLOBAL, Audience, Scope
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.pluralize import counted

IDLE_SECONDS = 5.0
_AUTHOR = Author(Channel.UNKNOWN, "timers")
FILES_BATCH = 32
"""Texts of files that are embedded before facts are looked after again."""


def work(home: Path, settings: Settings, stop: threading.Event, idle_seconds: float = IDLE_SECONDS) -> None:
    """Do what there is to do, until it is idle or told to stop."""
    store = Store(home, server=server_of(settings), objects=objects_of(settings))
    fail_point("worker.opened")
    embedder_of = _embedders(settings)

    def of_the_store() -> Embedder | None:
        space = store.space()
        return embedder_of(space) if space else None

    table = _Table(store, settings, of_the_store)
    reembedder = Reembedder(store, embedder_of)
    files = FileIndex(store, files_options(settings))

    own, copies = compile_categories(settings.categories), settings.keep.copies
    works: dict[str, Callable[[Pause], str]] = {
        "classify": lambda pause: _classify(store, pause, own),
        "backup": lambda pause: rotate(store, copies),
        "export": lambda pause: export_day(store, copies, pause),
        "optimise": lambda pause: table.optimise(),
        "calibrate": lambda pause: calibrate(store, embedder_of, pause),
        "reconcile": lambda pause: reconcile(store, pause),
        "tidy": store.database.tidy,
    }
    jobs = Scheduler(store, worker_jobs(settings, works), store.clock, TurnGate(), stopping=stop)

    calibrates = _at_growth(store, jobs) if settings.jobs.calibrate else lambda: False

    def step() -> bool:
        # Jobs first: in a busy host there is always something to index.
        done = bool(jobs.run_wanted()) or table.step() or reembedder.step() or _embed_files(files, of_the_store)
        return done or calibrates()

    try:
        while not stop.is_set():
            fail_point("worker.stepping")
            if not step() and stop.wait(idle_seconds):
                break
            if not step():
                break
    finally:
        table.close()
        files.close()
        fail_point("worker.closed")
        store.close()


class _Table:
    """The derived LanceDB table: nothing of it is loaded for a store that has none and is not due to get one."""

    def __init__(self, store: Store, settings: Settings, embedder: Callable[[], Embedder | None]) -> None:
        self._store, self._settings, self._embedder = store, settings, embedder
        self._feeding = Feeding(store.database, settings.vector_index, settings.index.crossover)
        self._indexer: Any = None

    def step(self) -> bool:
        if self._is_due():
            return bool(self._indexer.step())
        return embed_missing(self._store, self._embedder)

    def optimise(self) -> str:
        return str(self._indexer.optimise()) if self._is_due() else "there is no LanceDB table yet"

    def close(self) -> None:
        if self._indexer is not None:
            self._indexer.close()

    def _is_due(self) -> bool:
        space = self._store.space()
        if self._indexer is None and space is not None and self._feeding.wanted(space):
            settings = self._settings
            self._indexer = part("lance.indexer").Indexer(
                self._store, self._embedder, settings.index.vectors, crossover=settings.index.crossover,
                feeding=self._feeding,
            )  # fmt: skip
        return self._indexer is not None


def _classify(store: Store, pause: Pause, own: CategoryPatterns) -> str:
    scopes = store.database.query(run, "SELECT DISTINCT scope, scope_target FROM facts WHERE category = ?", (OTHER,))
    done = 0
    for kind, target in scopes:
        # Scope by scope: the memories of one caller say nothing of those of another.
        scope = Scope(kind, target)
        audience, progress = Audience(frozenset({GLOBAL, scope}), scope), lambda looked, total: pause()
        done += len(classify(store, audience, _AUTHOR, pause=pause, own=own, progress=progress))
    return f"{counted(done, 'memory')} got a category" if done else "nothing to classify"


def _embed_files(files: FileIndex, embedder: Callable[[], Embedder | None]) -> bool:
    try:
        if files.generations.live() is None:
            return False
        model = embedder()
        return model is not None and bool(files.embed(model, FILES_BATCH))
    except StoreBusyError:
        return False
    except ModelError as error:
        sys.stderr.write(f"perdure worker: embedding files failed: {type(error).__name__}\n")
        return False


def _at_growth(store: Store, jobs: Scheduler) -> Callable[[], bool]:
    """Return a function that asks for a calibration when the store has grown, and says whether it did."""
    asked = False

    def calibrates() -> bool:
        nonlocal asked
        # One that failed is tried again by the timer alone.
        before, asked = asked, grown(store)
        if asked and not before:
            jobs.run("calibrate")
            return True
        return False

    return calibrates


def _embedders(settings: Settings) -> Callable[[VectorSpace], Embedder | None]:
    """Return a function that makes the embedder of a space when it is first needed, and keeps it."""
    made: dict[str, Embedder | None] = {}

    def of(space: VectorSpace) -> Embedder | None:
        if space.id not in made:
            made[space.id] = Recipes(settings, load_extensions(settings)).embedder(space)
        return made[space.id]

    return of
