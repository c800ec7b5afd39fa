"""`perdure jobs` and `perdure prune`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from perdure.api.memory import Memory
from perdure.cli.main import cli
from perdure.clock import ManualClock
from perdure.errors import InputError

DAY = 86_400.0


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return int(result.return_value), result.stdout


def call_json(*arguments: str) -> Any:
    return json.loads(call(*arguments, "--json")[1])


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


def test_jobs_show_their_state_and_can_be_run(home: str) -> None:
    assert call_json("jobs", "--home", home) == {
        "timers": "none",
        "jobs": dict.fromkeys(
            "revive prune canary files classify backup export optimise reconcile calibrate tidy".split()  # noqa: SIM905
        ),
    }  # fmt: skip
    assert call("jobs", "run", "prune", "--home", home) == (0, "nothing is due\n")
    state = call_json("jobs", "--home", home)["jobs"]["prune"]
    assert (state["result"], state["failures"]) == ("nothing is due", 0)
    code, text = call("jobs", "--home", home)
    assert code == 0
    assert "nothing is due" in text
    assert "No host looks after this store now." in text
    with pytest.raises(InputError, match="unknown"):
        call("jobs", "run", "nope", "--home", home)


def test_prune_expires_and_says_how_to_take_it_back(home: str) -> None:
    with Memory.open(home, embedder="none", clock=ManualClock()) as memory:
        fact = memory.store("The heron nests at the lake.", decay_class="session")
        now = memory._engine.clock.now()
    with Memory.open(home, embedder="none", clock=ManualClock(now - 400 * DAY)) as memory:
        old = memory.store("The kettle in the kitchen is broken.", decay_class="session")
    assert call_json("prune", "--home", home, "--dry-run")["expired"] == [old.id]
    code, text = call("prune", "--home", home)
    assert code == 0
    assert text.startswith("1 memories expired, 0 removed\nThey come back with: perdure undo --batch ")
    batch = text.split()[-1]
    assert call_json("undo", "--home", home, "--batch", batch)["facts"] == [old.id]
    assert {one["id"] for one in call_json("list", "--home", home)["facts"]} == {old.id, fact.id}


def test_much_at_once_waits_for_a_word(home: str) -> None:
    with Memory.open(home, embedder="none", clock=ManualClock(1_000_000_000.0)) as memory:
        for number in range(12):
            memory.store(f"Lake number {number} has {number} herons", decay_class="stable")
    code, text = call("prune", "--home", home)
    assert code == 1
    assert "12 of 12 memories would expire at once, so none did" in text
    assert "12 of 12" in call_json("status", "--home", home)["parked_expiry"]
    assert len(call_json("prune", "--home", home, "--yes")["expired"]) == 12
    assert call_json("status", "--home", home)["parked_expiry"] is None
