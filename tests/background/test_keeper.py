"""The thread that does what turns leave behind, and the gate that holds it back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from perdure.background.keeper import Keeper, TurnGate
from perdure.errors import StoreBusyError

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
