"""A leg that hangs or fails costs its own results and nothing else."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import apsw
import numpy as np
import pytest

from perdure.embed.base import Embedder
from perdure.errors import ModelError
from perdure.index.vector_index import Survey, VectorHit
from perdure.recall.lane import Breaker, Lane, Ticket
from perdure.recall.options import PASSAGES
from perdure.recall.turn import Passage
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.sql import run
from tests.faulty import FailingEmbedder, HangingEmbedder, NanEmbedder, WrongDimsEmbedder
from tests.recall.conftest import Desk

QUESTION = "What is the staging database called?"
ANSWER = "The staging database is called heron."
HANGING = 30.0
"""Seconds that nothing here takes unless it waits for what hangs."""


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def states(desk: Desk, **options: Any) -> tuple[list[str], str]:
    """Return what is recalled, and how the vector leg did."""
    recall, receipt = desk.ask(QUESTION, **options)
    return [item.text for item in recall.items] if recall else [], receipt.states["semantic"]


@pytest.mark.parametrize("embedder", [FailingEmbedder(), NanEmbedder(), WrongDimsEmbedder()])
def test_a_faulty_model_leaves_the_words(desk: Desk, embedder: Embedder) -> None:
    desk.put(ANSWER)
    desk.leg = desk.broken(embedder)
    assert states(desk) == ([ANSWER], "ModelError")


def test_a_model_that_hangs_is_left_behind_at_the_deadline(desk: Desk, release: threading.Event) -> None:
    desk.put(ANSWER)
    hanging = HangingEmbedder(release)
    desk.leg = desk.broken(hanging)
    began = time.monotonic()
    found = states(desk, deadline=0.05)
    assert time.monotonic() - began < HANGING
    assert found == ([ANSWER], "late")
    assert hanging.started.is_set()


def test_a_hundred_turns_with_a_hanging_model_leave_no_threads(desk: Desk, release: threading.Event) -> None:
    desk.put(ANSWER)
    desk.leg = desk.broken(HangingEmbedder(release))
    recaller = desk.recaller(deadline=0.05)
    before = threading.active_count()
    seen = []
    for _ in range(100):
        # A breaker that has not tripped yet: every turn meets the hanging model anew.
        desk.leg = desk.broken(HangingEmbedder(release))
        recall, receipt = recaller.recall(QUESTION, Audience.of())
        seen.append(receipt.states["semantic"])
        time.sleep(0.006)  # an interrupted call needs a moment to end
        assert recall is not None
        assert [item.text for item in recall.items] == [ANSWER]
        assert threading.active_count() <= before + 1
    assert set(seen) <= {"late", "paused or busy"}
    assert seen.count("late") > 1
    recaller.close()
    assert threading.active_count() <= before


def test_a_model_that_stays_stuck_holds_one_thread(desk: Desk, release: threading.Event) -> None:
    class Stuck(HangingEmbedder):
        """Cannot be interrupted."""

        def interrupt(self) -> None:
            return

    desk.put(ANSWER)
    recaller = desk.recaller(deadline=0.5)
    before = threading.active_count()
    seen = set()
    for _ in range(20):
        desk.leg = desk.broken(Stuck(release))
        recall, receipt = recaller.recall(QUESTION, Audience.of())
        assert recall is not None
        seen.add(receipt.states["semantic"])
        assert threading.active_count() <= before + 1
    assert seen == {"late", "paused or busy"}
    release.set()


def test_after_failures_in_a_row_the_leg_rests(desk: Desk) -> None:
    desk.put(ANSWER)
    desk.leg = desk.broken(FailingEmbedder())
    assert [states(desk) for _ in range(3)] == [([ANSWER], "ModelError")] * 3
    assert states(desk) == ([ANSWER], "paused or busy")


def test_the_breaker_opens_rests_and_closes() -> None:
    breaker = Breaker(failures=3, rest=30.0)
    for at in (1.0, 2.0):
        breaker.note(ok=False, now=at)
    assert not breaker.open(2.0)
    breaker.note(ok=True, now=3.0)
    for at in (4.0, 5.0):
        breaker.note(ok=False, now=at)
    assert not breaker.open(5.0)
    breaker.note(ok=False, now=6.0)
    assert breaker.open(6.0)
    assert breaker.open(35.9)
    assert not breaker.open(36.0)


def test_a_lane_takes_one_call_at_a_time(release: threading.Event) -> None:
    lane = Lane("test")
    first = lane.start(lambda: release.wait(HANGING))
    assert first is not None
    assert lane.start(lambda: True) is None
    assert first.result(0.01) is None
    assert first.error == "late"
    release.set()
    assert first.result(HANGING) is True
    lane.close()


def test_a_lane_keeps_an_error_of_ours_for_the_receipt() -> None:
    def fail() -> bool:
        raise ModelError("no")

    lane = Lane("test")
    ticket = lane.start(fail)
    assert ticket is not None
    assert ticket.result(HANGING) is None
    assert ticket.error == "ModelError"
    lane.close()


def test_a_lane_goes_on_after_a_call_that_ended_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Lane("test")
    started: queue.SimpleQueue[Ticket[int] | None] = queue.SimpleQueue()
    # The hook is called by the thread that is about to end.
    monkeypatch.setattr(threading, "excepthook", lambda _: started.put(lane.start(lambda: 7)))

    def fail() -> int:
        raise ZeroDivisionError

    ticket = lane.start(fail)
    assert ticket is not None
    assert ticket.result(HANGING) is None
    following = started.get(timeout=HANGING)
    assert following is not None
    assert following.result(HANGING) == 7
    lane.close()


def test_closing_an_unused_lane_is_no_error() -> None:
    Lane("test").close()


class HangingIndex:
    """A vector index that hangs until it is released."""

    def __init__(self, release: threading.Event) -> None:
        self._release = release

    def search(self, query: Any, view: View, limit: int) -> list[VectorHit]:
        self._release.wait(HANGING)
        return []

    def survey(self, queries: Any, view: View, limit: int) -> Survey:
        self._release.wait(HANGING)
        none = np.zeros((len(queries), 0), dtype=np.float32)
        return Survey((), none, none.sum(1), none.sum(1), 0, 0)

    def close(self) -> None:
        return


class HangingSource:
    """A source that hangs in one of its halves until it is released."""

    def __init__(self, release: threading.Event, half: str) -> None:
        self._release = release
        self._half = half

    def draft(self, query: str, audience: Audience, session: str | None) -> str:
        if self._half == "draft":
            self._release.wait(HANGING)
        return query

    def passages(self, draft: Any, vector: Any, *, agents: bool = False) -> Sequence[Passage]:
        self._release.wait(HANGING)
        return ()


def test_an_index_that_hangs_leaves_the_words(desk: Desk, release: threading.Event) -> None:
    desk.put(ANSWER)
    assert desk.leg is not None
    desk.leg = replace(desk.leg, index=HangingIndex(release), breaker=Breaker())
    assert states(desk, deadline=0.05) == ([ANSWER], "late")


@pytest.mark.parametrize("half", ["draft", "passages"])
def test_a_source_that_hangs_leaves_the_facts(desk: Desk, release: threading.Event, half: str) -> None:
    desk.put(ANSWER)
    recaller = desk.recaller(HangingSource(release, half), deadline=0.05)
    for state in ("late", "busy"):
        recall, receipt = recaller.recall(QUESTION, Audience.of())
        assert recall is not None
        assert [item.text for item in recall.items] == [ANSWER]
        assert receipt.states[PASSAGES] == state
        assert receipt.verdicts.keys() == {item.id for item in recall.items}


@pytest.mark.sqlite
def test_a_writer_that_holds_the_database_costs_a_turn_nothing(desk: Desk) -> None:
    desk.put(ANSWER)
    other = apsw.Connection(str(desk.store.database.path))
    run(other, "BEGIN EXCLUSIVE")
    assert states(desk) == ([ANSWER], "ok")
    run(other, "ROLLBACK")
    other.close()


def test_a_thousand_bad_turns_leave_no_thread_and_at_most_the_words(desk: Desk, release: threading.Event) -> None:
    desk.put(ANSWER)
    assert desk.leg is not None
    # What can be interrupted or fails gets a recaller of its own: what stays stuck would keep its lane busy.
    ending = [desk.broken(each) for each in (FailingEmbedder(), NanEmbedder(), WrongDimsEmbedder())]
    ending.append(desk.broken(HangingEmbedder(release)))
    stuck = replace(desk.leg, index=HangingIndex(release))
    plain = desk.recaller(deadline=0.004)
    sources = [desk.recaller(HangingSource(release, half), deadline=0.004) for half in ("draft", "passages")]
    before = threading.active_count()
    seen, met = [], set()
    for turn in range(1_000):
        # A breaker that has not tripped yet: every turn meets the fault anew.
        desk.leg = replace(stuck if turn % 2 else ending[turn // 2 % 4], breaker=Breaker())
        recall, receipt = (sources[turn // 2 % 2] if turn % 2 else plain).recall(QUESTION, Audience.of())
        seen.append([item.text for item in recall.items] if recall else [])
        met.add(receipt.states["semantic"])
        assert threading.active_count() <= before + 5, "three lanes for vectors, two for passages"
    assert met == {"ModelError", "late", "paused or busy"}
    assert [ANSWER] in seen
    assert [texts for texts in seen if texts not in ([ANSWER], [])] == []
    release.set()
    for recaller in (plain, *sources):
        recaller.close()
    assert threading.active_count() <= before
