"""`perdure jobs` and `perdure prune`."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import InputError
from tests.cli.calling import call, call_json

DAY = 86_400.0


def test_jobs_show_their_state_and_can_be_run(elsewhere: Path) -> None:
    assert call_json("jobs", "--home", elsewhere) == {
        "timers": "none",
        "jobs": dict.fromkeys(
            "prune canary files classify backup export optimise reconcile calibrate tidy".split()  # noqa: SIM905
        ),
    }  # fmt: skip
    assert call("jobs", "run", "prune", "--home", elsewhere).stdout == "nothing is due\n"
    state = call_json("jobs", "--home", elsewhere)["jobs"]["prune"]
    assert (state["result"], state["failures"]) == ("nothing is due", 0)
    text = call("jobs", "--home", elsewhere).stdout
    assert "nothing is due" in text
    assert "Nothing is running them now" in text
    with pytest.raises(InputError, match="unknown"):
        call("jobs", "run", "nope", "--home", elsewhere)


def test_prune_expires_and_says_how_to_take_it_back(elsewhere: Path) -> None:
    with Memory.open(elsewhere, embedder="none", clock=ManualClock()) as memory:
        fact = memory.store("The heron nests at the lake.", decay_class="session")
        now = memory._engine.clock.now()
    with Memory.open(elsewhere, embedder="none", clock=ManualClock(now - 400 * DAY)) as memory:
        old = memory.store("The kettle in the kitchen is broken.", decay_class="session")
    assert call_json("prune", "--home", elsewhere, "--dry-run")["expired"] == [old.id]
    text = call("prune", "--home", elsewhere).stdout
    assert text.startswith("1 memory expired, 0 removed\nUndo: perdure undo --batch ")
    batch = text.split()[-1]
    assert call_json("undo", "--home", elsewhere, "--batch", batch)["facts"] == [old.id]
    assert {one["id"] for one in call_json("list", "--home", elsewhere)["facts"]} == {old.id, fact.id}


def test_much_at_once_waits_for_a_word(elsewhere: Path) -> None:
    with Memory.open(elsewhere, embedder="none", clock=ManualClock(1_000_000_000.0)) as memory:
        for number in range(12):
            memory.store(f"Lake number {number} has {number} herons", decay_class="stable")
    text = call("prune", "--home", elsewhere, code=1).stdout
    assert "12 of 12 memories would expire at once, so none did" in text
    assert "12 of 12" in call_json("status", "--home", elsewhere)["parked_expiry"]
    assert len(call_json("prune", "--home", elsewhere, "--yes")["expired"]) == 12
    assert call_json("status", "--home", elsewhere)["parked_expiry"] is None
