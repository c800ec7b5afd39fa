"""The timers of a store: one thread in a long-lived host's process runs what is due, one job after another.

Of all processes that have a store open, one leads: the one that holds `leader.lock`; of all machines, where a server
has the store, the one that holds its lease. When each job is due stands in the store. What holds the interpreter for
longer than a turn can wait runs in the worker process, which is only told that the job is wanted.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from perdure.background.keeper import TurnGate
from perdure.clock import Clock
from perdure.errors import InputError, PerdureError, StoreClosedError
from perdure.store import schedule
from perdure.store.folder import FILE_MODE
from perdure.store.schedule import JobState
from perdure.store.store import Store

TICK = 1.0
"""Seconds between two looks at what is due."""
JITTER = 0.1
"""The share of an interval by which runs are spread, so that the timers of many stores do not meet."""
RETRY = 30.0
"""Seconds after the first failure until the next try; they double with each further one, up to the interval."""
MAX_DOUBLINGS = 20
LEASE = 600.0
"""Seconds after which a job is taken back from a worker that has not ended it."""
EACH = 60.0
"""Seconds between two runs of what each process does, in one that does not lead."""
STOPPED = "stopped"
_log = logging.getLogger("perdure.background")
Pause = Callable[[], None]
"""To be called every two milliseconds or so: lets turns go first, and raises `Stopping` when the host ends."""


class Stopping(PerdureError):
    """The host is ending: a job gives up what it was doing. It is done again another time."""


@dataclass(frozen=True, slots=True)
class Job:
    """Something that is done again and again."""

    name: str  # unique
    every: float  # seconds between two runs; 0: never by itself
    first: float  # seconds after the start of the host before it runs at all; its interval if that is shorter
    work: Callable[[Pause], str]  # does it, and returns one line about what was done, or why there was nothing to do
    in_worker: bool = False  # it holds the interpreter too long for the host's process
    at_start: bool = False  # it runs once at each start as well
    # it is about the files of this machine, so that each machine does it, where several have the store open
    here: bool = False
    each: bool = False  # each process does it, whether it leads or not: what it needs may be there in one alone


@dataclass(eq=False)
class Scheduler:
    """Runs jobs when they are due. Usable from any thread."""

    store: Store
    jobs: Sequence[Job]
    clock: Clock
    gate: TurnGate
    _: KW_ONLY
    start_worker: Callable[[], None] = lambda: None
    chance: Callable[[], float] = random.random  # 0 to 1, for the spread
    stopping: threading.Event = field(default_factory=threading.Event)  # set when the host ends

    def __post_init__(self) -> None:
        """Prepare; `start` begins."""
        self._jobs: Mapping[str, Job] = {job.name: job for job in self.jobs}
        own = f"@{self.store.machine}" if self.store.machine else ""
        self._rows: Mapping[str, str] = {job.name: job.name + (own if job.here else "") for job in self.jobs}
        self._began = self.clock.now()
        self._greeted: set[str] = set()
        self._leads = False
        self._each_at = time.monotonic() + EACH
        self._busy = threading.Lock()
        # Not thread-local: the thread that closes is not the one that leads.
        self._leader = FileLock(self.store.folder / "leader.lock", timeout=0, mode=FILE_MODE, thread_local=False)
        self._thread = threading.Thread(target=self._run, name="perdure-timers", daemon=True)

    @property
    def names(self) -> Sequence[str]:
        """The names of the jobs."""
        return list(self._jobs)

    @property
    def leader(self) -> str:
        """Which process runs the timers of the store: "this process", "another process" or "none"."""
        if self._leader.is_locked:
            return "this process"
        if not Path(self._leader.lock_file).exists():
            return "none"
        try:
            with FileLock(self._leader.lock_file, timeout=0, mode=FILE_MODE):
                return "none"
        except Timeout:
            return "another process"
        except OSError:
            return "none"  # the folder cannot be written, so nobody leads

    def start(self) -> None:
        """Begin to look at what is due, unless it was stopped already."""
        if not self.stopping.is_set():
            self._thread.start()

    def stop(self) -> None:
        """Tell the job that is running to give up, and begin no other. Returns at once."""
        self.stopping.set()

    def close(self, patience: float = 2.0) -> None:
        """Stop, and wait `patience` seconds for a job that is running to notice."""
        self.stop()
        if self._thread.is_alive():
            self._thread.join(patience)
        self._leader.release(force=True)

    def states(self) -> dict[str, JobState]:
        """Return what is known of the jobs, by name."""
        known = self.store.database.query(schedule.states)
        return {name: known[row] for name, row in self._rows.items() if row in known}

    def run_due(self) -> list[str]:
        """Run every job that is due, the longest overdue first; return their names."""
        done = []
        for name in self._due():
            if self.stopping.is_set():
                break
            self.run(name)
            done.append(name)
        return done

    def run_wanted(self) -> list[str]:
        """Run what is wanted from the worker process, which this one is; return the names."""
        done = []
        for name, state in self.states().items():
            wanted = state.state == "wanted" and not self.stopping.is_set()
            if wanted and self.store.database.jot(schedule.take, name):
                if self._run_here(self._jobs[name]) == STOPPED:
                    self._want(name)
                done.append(name)
        return done

    def run(self, name: str) -> str:
        """Run a job now, or hand it to the worker process; return one line about it."""
        job = self._jobs.get(name)
        if job is None:
            raise InputError(f"job {name!r} is unknown; use one of {', '.join(self._jobs)}")
        if not job.in_worker:
            return self._run_here(job)
        self._want(name)
        self.start_worker()
        return "passed to the worker"

    def remind(self) -> None:
        """Start the worker again if it ended before it took what is wanted from it."""
        if any(state.state == "wanted" for state in self.states().values()):
            self.start_worker()

    def _want(self, name: str) -> None:
        self.store.database.jot(schedule.want, name, self.clock.now() + LEASE)

    def _run_each(self) -> None:
        if time.monotonic() < self._each_at:
            return
        self._each_at = time.monotonic() + EACH
        for job in self._jobs.values():
            if job.each:
                # The schedule is the leader's.
                self._run_here(job, noted=False)

    def _run_here(self, job: Job, *, noted: bool = True) -> str:
        with self._busy:
            began = time.monotonic()
            failed = False
            try:
                with nullcontext() if job.here else self.store.database.leading():
                    result = job.work(self._pause)
            except (Stopping, StoreClosedError):
                return STOPPED
            except Exception as error:  # noqa: BLE001 - one job that fails must not end the others
                failed, result = True, f"failed: {type(error).__name__}"
                _log.warning("job %s failed: %s", job.name, type(error).__name__)
            if noted:
                self._note(job, result, failed=failed, took=time.monotonic() - began)
            return result

    def _note(self, job: Job, result: str, *, failed: bool, took: float) -> None:
        known = self.states().get(job.name)
        failures = (known.failures if known else 0) + 1 if failed else 0
        self.store.database.jot(
            schedule.ended, self._rows[job.name], self.clock.now(), self._next(job, failures),
            took=round(took, 3), result=result, failed=failed,
        )  # fmt: skip

    def _due(self) -> list[str]:
        """Return the names of the jobs that are due, and plan those that never were."""
        now, leads = self.clock.now(), self.store.database.lead()
        self._leads = leads
        # A clock that was set back must not make the start lie ahead.
        self._began = min(self._began, now)
        known = self.states()
        due: list[tuple[float, str]] = []
        for name, job in self._jobs.items():
            state = known.get(name)
            if not job.every or self._began + min(job.first, job.every) > now or not (leads or job.here):
                continue
            greeting = job.at_start and name not in self._greeted
            self._greeted.add(name)
            if state is None or greeting:
                due.append((now, name))
            elif state.state != "waiting":
                self._remind(job, state, now)
            elif state.next_run > now + job.every * (1 + JITTER):
                # The clock was ahead when this was planned, or the interval is shorter now.
                self.store.database.jot(schedule.plan, self._rows[name], self._next(job, 0))
            elif state.next_run <= now:
                due.append((state.next_run, name))
        return [name for _, name in sorted(due)]

    def _remind(self, job: Job, state: JobState, now: float) -> None:
        # One that the worker has taken is not handed out again before its time is up: it may be what kills it.
        if not now < state.next_run <= now + LEASE:
            self._note(job, "failed: the worker did not finish it", failed=True, took=LEASE)
        elif state.state == "wanted":
            self.start_worker()

    def _next(self, job: Job, failures: int) -> float:
        wait = job.every
        if failures:
            retry = RETRY * 2.0 ** min(failures - 1, MAX_DOUBLINGS)
            wait = min(wait, retry) if wait else retry
        return self.clock.now() + wait * (1 + JITTER * self.chance())

    def _pause(self) -> None:
        self.gate.pause()
        if self._leads:
            self.store.database.lead()
        if self.stopping.is_set():
            raise Stopping("the host is exiting")

    def _run(self) -> None:
        told = ""
        while not self.stopping.wait(TICK):
            try:
                if self._lead():
                    self.run_due()
                else:
                    self._run_each()
                told = ""
            except StoreClosedError:
                return
            except PerdureError as error:
                # A server may be away for hours.
                if type(error).__name__ != told:
                    told = type(error).__name__
                    _log.warning("scheduler paused: %s", told)

    def _lead(self) -> bool:
        if not self._leader.is_locked:
            try:
                self._leader.acquire()
            except (Timeout, OSError):
                return False
        return True
