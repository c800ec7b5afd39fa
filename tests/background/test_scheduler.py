"""Jobs run when they are due: over restarts, failures, clocks that jump, and with one leader among all processes."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.background.keeper import TurnGate
from perdure.background.scheduler import JITTER, LEASE, RETRY, Job, Pause, Scheduler
from perdure.clock import ManualClock
from perdure.errors import InputError
from perdure.store.store import Store
from tests.waiting import until

START = 1_800_000_000.0
DAY = 86_400.0
LONG = 20.0


class Counting:
    """Jobs that count their runs; those named in `broken` fail."""

    def __init__(self, *broken: str) -> None:
        self.runs: Counter[str] = Counter()
        self.broken = set(broken)

    def job(self, name: str, every: float, first: float = 0.0, **more: bool) -> Job:
        def work(_: Pause) -> str:
            self.runs[name] += 1
            if name in self.broken:
                raise ValueError(name)
            return "done"

        return Job(name, every, first, work, **more)


def scheduler(store: Store, *jobs: Job, start_worker: Callable[[], None] = lambda: None) -> Scheduler:
    return Scheduler(store, jobs, store.clock, TurnGate(), start_worker=start_worker, chance=lambda: 0.0)


def test_a_job_runs_at_its_interval_and_not_before_its_first_time(store: Store, clock: ManualClock) -> None:
    counting = Counting()
    timers = scheduler(store, counting.job("backup", 3600, 60), counting.job("never", 0))
    assert timers.run_due() == []
    clock.advance(60)
    assert timers.run_due() == ["backup"]
    assert timers.run_due() == []
    clock.advance(3599)
    assert timers.run_due() == []
    clock.advance(1)
    assert timers.run_due() == ["backup"]
    state = timers.states()["backup"]
    assert (state.last_run, state.next_run, state.result, state.failures) == (
        START + 3660, START + 7260, "done", 0
    )  # fmt: skip


def test_a_restart_neither_skips_nor_repeats(store: Store, clock: ManualClock) -> None:
    counting = Counting()
    for _ in range(8):
        clock.advance(900)
        scheduler(store, counting.job("prune", 3600), counting.job("canary", 86_400, at_start=True)).run_due()
    assert counting.runs == {"prune": 2, "canary": 8}


def test_a_job_that_always_fails_does_not_starve_the_others(store: Store, clock: ManualClock) -> None:
    counting = Counting("broken")
    timers = scheduler(store, counting.job("broken", 3600), counting.job("sound", 60), counting.job("other", 60))
    before = threading.active_count()
    for _ in range(1_000):
        timers.run_due()
        clock.advance(60)
    assert counting.runs["sound"] == counting.runs["other"] == 1_000
    # 30, 60, 120 ... seconds, then its interval: far fewer than a thousand tries.
    assert 16 <= counting.runs["broken"] <= 26
    assert threading.active_count() == before
    state = timers.states()["broken"]
    assert (state.failures, state.result) == (counting.runs["broken"], "failed: ValueError")
    counting.broken.clear()
    clock.advance(3600)
    timers.run_due()
    assert timers.states()["broken"].failures == 0


def test_the_first_retry_comes_soon(store: Store, clock: ManualClock) -> None:
    counting = Counting("broken")
    timers = scheduler(store, counting.job("broken", DAY))
    timers.run_due()
    clock.advance(RETRY - 1)
    assert timers.run_due() == []
    clock.advance(1)
    assert timers.run_due() == ["broken"]


@pytest.mark.parametrize("jump", [-DAY, -10 * 365 * DAY, 10 * 365 * DAY])
def test_after_a_jump_of_the_clock_everything_goes_on(store: Store, clock: ManualClock, jump: float) -> None:
    counting = Counting()
    timers = scheduler(store, counting.job("hourly", 3600), counting.job("daily", DAY, 60))
    clock.advance(60)
    timers.run_due()
    clock.advance(jump)
    timers.run_due()
    counting.runs.clear()
    # The first look may plan anew what the jump has moved, after its first time: an interval and that at the most.
    for _ in range(24 * 60 + 1):
        clock.advance(60)
        timers.run_due()
    assert counting.runs == {"hourly": 24, "daily": 1}


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jumps=st.lists(st.floats(-400 * DAY, 400 * DAY), min_size=1, max_size=5))
def test_whatever_the_clock_does_a_job_waits_no_longer_than_its_interval(
    tmp_path_factory: pytest.TempPathFactory, jumps: list[float]
) -> None:
    clock, counting = ManualClock(START), Counting()
    store = Store(tmp_path_factory.mktemp("clock"), clock=clock)
    timers = scheduler(store, counting.job("hourly", 3600))
    for jump in jumps:
        clock.advance(jump)
        timers.run_due()
        before = counting.runs["hourly"]
        clock.advance(3600 * (1 + JITTER))
        timers.run_due()
        assert counting.runs["hourly"] > before
    store.close()


def test_the_change_to_summer_time_and_back_moves_nothing(store: Store, clock: ManualClock) -> None:
    """Times are epoch seconds: an hour that a wall clock skips or repeats is none of ours."""
    zone = ZoneInfo("Europe/Berlin")
    for day in (dt.datetime(2027, 3, 28, tzinfo=zone), dt.datetime(2027, 10, 31, tzinfo=zone)):
        clock.set(day.timestamp())
        counting = Counting()
        timers = scheduler(store, counting.job(f"hourly-{day.month}", 3600))
        for _ in range(23 * 4):
            timers.run_due()
            clock.advance(900)
        assert counting.runs.total() == 23


def test_what_the_worker_is_to_do_is_only_wanted_here(store: Store, clock: ManualClock) -> None:
    counting, starts = Counting(), list[int]()
    job = counting.job("optimise", 3600, in_worker=True)
    host = scheduler(store, job, start_worker=lambda: starts.append(1))
    host.run_due()
    assert (counting.runs.total(), len(starts), host.states()["optimise"].state) == (0, 1, "wanted")
    host.run_due()
    assert len(starts) == 2, "a worker that ended before it took the job is started again"
    worker = scheduler(store, job)
    assert worker.run_wanted() == ["optimise"]
    assert worker.run_wanted() == []
    assert (counting.runs["optimise"], host.states()["optimise"].state) == (1, "waiting")
    host.run_due()
    assert len(starts) == 2


def test_what_a_worker_gives_up_at_its_end_the_next_one_does(store: Store, clock: ManualClock) -> None:
    starts, stop, counting = list[int](), threading.Event(), Counting()

    def endless(pause: Pause) -> str:
        stop.set()
        while True:
            pause()

    host = scheduler(store, Job("backup", 3600, 0, endless, in_worker=True), start_worker=lambda: starts.append(1))
    host.run_due()
    Scheduler(store, [Job("backup", 3600, 0, endless)], clock, TurnGate(), stopping=stop).run_wanted()
    host.run_due()
    assert len(starts) == 2
    assert scheduler(store, counting.job("backup", 3600)).run_wanted() == ["backup"]
    assert (host.states()["backup"].state, host.states()["backup"].failures) == ("waiting", 0)


def test_a_worker_that_dies_of_a_job_is_not_started_again_and_again(store: Store, clock: ManualClock) -> None:
    starts = list[int]()

    def dies(_: Pause) -> str:
        raise KeyboardInterrupt

    job = Job("optimise", 10_000, 0, dies, in_worker=True)
    host = scheduler(store, job, start_worker=lambda: starts.append(1))
    for _ in range(2 * int(LEASE)):
        host.run_due()
        with pytest.raises(KeyboardInterrupt) if host.states()["optimise"].state == "wanted" else nullcontext():
            scheduler(store, job).run_wanted()
        clock.advance(1)
    assert len(starts) == 2
    assert host.states()["optimise"].failures == 1


def test_an_unknown_job_is_named(store: Store) -> None:
    with pytest.raises(InputError, match="job 'nope' is unknown; use one of prune"):
        scheduler(store, Counting().job("prune", 60)).run("nope")


def test_only_one_leads_and_another_takes_over(store: Store) -> None:
    counting = Counting()
    timers = [scheduler(store, counting.job(f"job-{number}", 3600)) for number in range(2)]
    assert timers[0].leader == "none"
    timers[0].start()
    assert until(lambda: timers[0].leader == "this process")
    timers[1].start()
    assert until(lambda: counting.runs["job-0"] == 1)
    assert timers[1].leader == "another process"
    assert counting.runs["job-1"] == 0
    timers[0].close()
    assert until(lambda: timers[1].leader == "this process")
    assert until(lambda: counting.runs["job-1"] == 1)
    timers[1].close()
    assert timers[1].leader == "none"


def test_a_running_job_gives_up_when_the_host_ends_and_is_still_due(store: Store, clock: ManualClock) -> None:
    begun, ended = threading.Event(), list[str]()

    def endless(pause: Pause) -> str:
        begun.set()
        try:
            while True:
                pause()
        finally:
            ended.append("gave up")

    timers = scheduler(store, Job("endless", 3600, 0, endless))
    timers.start()
    assert begun.wait(LONG)
    timers.close(LONG)
    assert ended == ["gave up"]
    assert timers.states() == {}
    counting = Counting()
    assert scheduler(store, counting.job("endless", 3600)).run_due() == ["endless"]


def test_a_job_steps_aside_for_a_turn(store: Store) -> None:
    gate, steps, go = TurnGate(), list[str](), threading.Event()

    def work(pause: Pause) -> str:
        go.wait(LONG)
        pause()
        steps.append("job")
        return "done"

    timers = Scheduler(store, [Job("job", 3600, 0, work)], store.clock, gate)
    thread = threading.Thread(target=timers.run_due)
    with gate.turn():
        thread.start()
        go.set()
        steps.append("turn")
    thread.join(LONG)
    assert steps == ["turn", "job"]


def test_what_each_process_does_is_done_by_one_that_does_not_lead(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.background.scheduler.TICK", 0.01)
    monkeypatch.setattr("perdure.background.scheduler.EACH", 0.0)
    leads, counting = scheduler(store), Counting()
    follows = scheduler(store, counting.job("lent", 3600, 3600, each=True), counting.job("shared", 60))
    leads.start()
    try:
        until(lambda: leads.leader == "this process")
        follows.start()
        until(lambda: counting.runs["lent"] > 1)
        assert not counting.runs["shared"]
    finally:
        for timers in (follows, leads):
            timers.stop()
            timers.close(LONG)


def test_closing_before_the_start_is_no_error_and_nothing_starts_after_it(store: Store) -> None:
    counting = Counting()
    timers = scheduler(store, counting.job("prune", 3600))
    timers.close()
    timers.start()
    assert timers.leader == "none"
    assert counting.runs.total() == 0
