"""The thread that does what turns leave behind, and the gate that holds it back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import pytest

from perdure.background.keeper import BEHIND, PATIENCE, Keeper, TurnGate
from perdure.errors import StoreBusyError
from tests.waiting import until

LONG = 20.0
"""Seconds after which a test gives up; nothing here takes as long."""


def started(tick: Callable[[], None] = lambda: None) -> Keeper:
    keeper = Keeper(TurnGate(), tick)
    keeper.start()
    return keeper


def test_tasks_are_done_one_after_another_in_order() -> None:
    keeper, done = started(), list[int]()
    for number in range(50):
        keeper.submit("note", lambda number=number: done.append(number))  # type: ignore[misc]
    assert keeper.settle(LONG)
    assert done == list(range(50))
    keeper.close()


def test_a_task_that_fails_is_logged_without_its_message_and_the_next_is_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keeper, done = started(), threading.Event()

    def fail() -> None:
        raise StoreBusyError("the heron is secret")

    with caplog.at_level(logging.WARNING, "perdure.background"):
        keeper.submit("capture", fail)
        keeper.submit("note", done.set)
        assert keeper.settle(LONG)
    assert done.is_set()
    assert [record.getMessage() for record in caplog.records] == ["background task capture failed: StoreBusyError"]
    keeper.close()


def test_what_waits_is_done_before_it_closes_and_nothing_is_accepted_after() -> None:
    keeper, done = started(), list[str]()
    keeper.submit("note", lambda: done.append("before"))
    keeper.close(LONG)
    keeper.submit("note", lambda: done.append("after"))
    assert keeper.settle(0.0)
    assert done == ["before"]
    assert not any(thread.name == "perdure-keeper" for thread in threading.enumerate())


def test_settling_gives_up_in_time() -> None:
    keeper, release = started(), threading.Event()

    def wait() -> None:
        release.wait(LONG)

    keeper.submit("wait", wait)
    assert not keeper.settle(0.01)
    release.set()
    assert keeper.settle(LONG)
    keeper.close()


def test_what_is_due_is_looked_at_when_nothing_else_is_to_be_done() -> None:
    ticked = threading.Event()
    keeper = started(ticked.set)
    assert ticked.wait(LONG)
    keeper.close()


def test_a_task_waits_until_no_turn_is_running() -> None:
    gate = TurnGate()
    keeper, done = Keeper(gate, lambda: None), threading.Event()
    keeper.start()
    with gate.turn(), gate.turn():
        keeper.submit("note", done.set)
        assert not done.wait(0.05)
    assert done.wait(LONG)
    keeper.close()


def test_a_turn_that_hangs_does_not_stop_it_for_good() -> None:
    gate = TurnGate()
    with gate.turn():
        gate.pause()  # comes back by itself
    gate.pause()


def test_what_cannot_be_done_in_time_is_left_and_not_tried_on_a_closed_store() -> None:
    keeper, go, done = started(), threading.Event(), list[int]()
    keeper.submit("first", lambda: go.wait(LONG))
    for number in range(20):
        keeper.submit("note", lambda number=number: done.append(number))  # type: ignore[misc]
    keeper.close(0.1)
    go.set()
    assert until(lambda: not any(thread.name == "perdure-keeper" for thread in threading.enumerate()))
    assert done == []


def test_work_that_falls_far_behind_steps_aside_no_more() -> None:
    gate = TurnGate()
    keeper, done = Keeper(gate, lambda: None), list[int]()
    with gate.turn():
        for number in range(BEHIND + 8):
            keeper.submit("note", lambda number=number: done.append(number))  # type: ignore[misc]
        keeper.start()
        began = time.monotonic()
        assert until(lambda: len(done) >= 8)
        # With a turn running all the time, each would wait for a second.
        assert time.monotonic() - began < 8 * PATIENCE
    assert keeper.settle(LONG)
    keeper.close()
