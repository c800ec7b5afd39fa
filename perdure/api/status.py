"""The state of a store, as `perdure status` prints it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perdure.background.drain import PROBLEM
from perdure.engine.composing import llm_state
from perdure.engine.engine import Engine
from perdure.engine.paths import data_folder
from perdure.index.feeding import REMEDY
from perdure.index.missing import unembedded
from perdure.maintenance.exports import daily_files
from perdure.store.expiry import parked_expiry
from perdure.store.inbox import waiting_in
from perdure.store.inbox_lines import damaged_turns
from perdure.store.notices import left_out
from perdure.store.rollback_guard import Truth, judge
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.sql import newest, run
from perdure.text.pluralize import counted


@dataclass(frozen=True, slots=True)
class Status:
    """The state of an open store.

    Attributes:
        home: the data folder.
        truth: facts.db compared with the folder's record of it: "sound"; "replaced" while it was open, so that nothing
            is written any more; else see `perdure.store.rollback_guard.Truth`.
        read_only: why nothing can be written to it; None: it is writable.
        facts: number of memories that the caller may read.
        model: "ready: ...", "loading", or why recall uses keyword search only.
        llm: the language model and how many of today's tokens it has used, or "off: ...".
        changes: number of the last change.
        vector_index: the index that is searched.
        index_problem: why the derived index is behind, if it has failed, or what a large store lacks.
        inbox: number of acknowledged turns still to be captured, of all processes.
        inbox_problem: why capturing them has failed so far, if it has.
        damaged: number of damaged turns set aside: `perdure review` shows what can be read.
        unembedded: number of memories without a vector yet, found by keyword only.
        outbox: number of memories waiting to be indexed.
        parked: number of inbox entries set aside after repeated failures.
        review: number of memories pending review that the caller may read.
        left_out: secrets left out of memories, such as "2 password"; `perdure vault store` keeps them.
        exported: the newest daily export, from which `perdure import` reads; None: there is none.
        timers: which process maintains the store: "this process", "another process" or "none".
        failing: background jobs whose last run failed, and how.
        parked_expiry: why due memories do not expire: `perdure prune --yes` lets them; None: all is well.
        auto_recall, auto_capture: whether they are on.
        extensions: installed extensions, name and version.
        problems: what was skipped at startup, and why.
    """

    home: str
    truth: str
    read_only: str | None
    facts: int
    changes: int
    model: str
    llm: str
    vector_index: str
    index_problem: str | None
    inbox: int
    inbox_problem: str | None
    damaged: int
    unembedded: int
    outbox: int
    parked: int
    review: int
    left_out: tuple[str, ...]
    exported: str | None
    timers: str
    failing: tuple[str, ...]
    parked_expiry: str | None
    auto_recall: bool
    auto_capture: bool
    extensions: tuple[str, ...]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON can hold them."""
        return asdict(self)


def status_of(engine: Engine, audience: Audience) -> Status:
    """Return the state of an open store, as a caller may know it."""
    condition, values = View(audience, engine.clock.now()).sql(engine.store.database.dialect)
    with engine.store.database.read() as connection:
        facts = run(connection, f"SELECT count(*) FROM facts WHERE {condition}", values)[0][0]
        waiting = f"SELECT count(*) FROM facts WHERE review_state = 'pending' AND {condition}"
        review = run(connection, waiting, values)[0][0]
        changes = newest(connection)
        parked = run(connection, "SELECT count(*) FROM inbox_parked")[0][0]
    outbox = engine.store.outbox_state()
    inbox = len(engine.store.waiting())
    extensions = engine.extensions
    return Status(
        home=str(engine.store.folder),
        truth=_truth(engine),
        read_only=engine.store.refusal,
        facts=facts,
        changes=changes,
        model=engine.model.state,
        llm=llm_state(engine.settings, engine.store),
        vector_index=engine.settings.vector_index,
        index_problem=_index_problem(engine, outbox.problem),
        inbox=inbox,
        inbox_problem=engine.drain.problem or (engine.store.meta(PROBLEM) if inbox else None),
        damaged=len(damaged_turns(engine.store.folder / "inbox")),
        unembedded=unembedded(engine.store),
        outbox=outbox.waiting,
        parked=parked + outbox.parked,
        review=review,
        left_out=left_out(engine.store),
        exported=next((path.name for path in daily_files(engine.store.folder)), None),
        timers=engine.timers.leader,
        failing=tuple(f"{name}: {state.result}" for name, state in engine.timers.states().items() if state.failures),
        parked_expiry=_parked_expiry(engine),
        auto_recall=engine.settings.auto_recall,
        auto_capture=engine.settings.auto_capture,
        extensions=tuple(f"{name} {version}" for name, version in extensions.distributions),
        problems=tuple(f"{problem.name} ({problem.stage}): {problem.error}" for problem in extensions.problems),
    )


@dataclass(frozen=True, slots=True)
class LostStatus:
    """The state of a store that cannot be opened: facts.db differs from its record, or its server is unreachable.

    Attributes:
        home: the data folder.
        truth: the state of facts.db, see `perdure.store.rollback_guard.Truth`; "unavailable": the server cannot
            be reached.
        problem: the same in a sentence, with what to do.
        inbox: number of acknowledged turns that wait until it is back.
    """

    home: str
    truth: str
    problem: str
    inbox: int

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON can hold them."""
        return asdict(self)


def lost_status(home: str | Path | None = None) -> LostStatus | None:
    """Return the state of a store that was lost; None if it was not.

    Raises:
        PerdureError: the folder cannot be read.
    """
    folder = data_folder(home)
    verdict = judge(folder)
    if not verdict.lost:
        return None
    return LostStatus(str(folder), verdict.truth, verdict.said, waiting_in(folder / "inbox"))


def _index_problem(engine: Engine, behind: str | None) -> str | None:
    lacking = engine.feed.lacking()
    return f"{lacking}; {REMEDY}" if lacking else behind


def _truth(engine: Engine) -> str:
    if engine.store.database.shared:
        return Truth.SOUND  # what a server holds, no folder remembers
    if engine.store.database.displaced:
        verdict = judge(engine.store.folder)
        return verdict.truth if verdict.lost else "replaced"
    with engine.store.database.read() as connection:
        return judge(engine.store.folder, connection).truth


def _parked_expiry(engine: Engine) -> str | None:
    parked = parked_expiry(engine.store)
    if parked is None:
        return None
    share = f"{parked.facts} of {counted(parked.total, 'memory')}"
    return f"{share} would expire at once: check that the clock is right, then run perdure prune --yes"
