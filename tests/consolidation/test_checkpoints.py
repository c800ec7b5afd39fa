"""Checkpoints are there for four hours, for whoever made them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import InputError, NotFoundError

HOURS = 3_600.0


def test_the_newest_one_is_restored(memory: Memory, clock: ManualClock) -> None:
    memory.upkeep.checkpoint("first", "a", "b")
    clock.advance(60)
    made = memory.upkeep.checkpoint("move the database", "backup made", "no downtime")
    assert memory.upkeep.restore() == made
    assert (made.intent, made.state, made.expected) == ("move the database", "backup made", "no downtime")
    assert [each.intent for each in memory.upkeep.checkpoints()] == ["move the database", "first"]


def test_the_same_once_more_is_another_one(memory: Memory) -> None:
    memory.upkeep.checkpoint("deploy")
    memory.upkeep.checkpoint("deploy")
    assert len(memory.upkeep.checkpoints()) == 2


def test_after_four_hours_it_is_gone(memory: Memory, clock: ManualClock) -> None:
    memory.upkeep.checkpoint("deploy")
    clock.advance(4 * HOURS - 1)
    assert memory.upkeep.restore().intent == "deploy"
    clock.advance(2)
    with pytest.raises(NotFoundError, match="four hours"):
        memory.upkeep.restore()


def test_others_do_not_get_it(tmp_path: Path, memory: Memory, clock: ManualClock) -> None:
    memory.upkeep.checkpoint("deploy")
    with Memory.open(tmp_path / "home", agent="ann", embedder="none", clock=clock, watch=False) as ann:
        with pytest.raises(NotFoundError):
            ann.upkeep.restore()
        ann.upkeep.checkpoint("of ann")
        assert ann.upkeep.restore().intent == "of ann"
    assert memory.upkeep.restore().intent == "deploy"


def test_secrets_are_left_out(memory: Memory) -> None:
    made = memory.upkeep.checkpoint("deploy", "password is hunter2secret!")
    assert "hunter2secret" not in repr(made) + repr(memory.get(made.id))


@pytest.mark.parametrize("values", [("",), ("  ",), ("x", "y" * 20_001)])
def test_what_cannot_be_one_is_refused(memory: Memory, values: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        memory.upkeep.checkpoint(*values)
