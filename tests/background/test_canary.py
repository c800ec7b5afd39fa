"""The canary goes through the running process and leaves nothing behind; one that does not get through is told of."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.background.canary import PREFIX, Canary, CanaryError
from perdure.store.sql import run
from perdure.store.store import Store
from tests.kit import OpenMemory

KILLED = """
import os, sys
from pathlib import Path
from perdure.api.memory import Memory
from perdure.background.canary import Canary

memory = Memory.open(sys.argv[1], embedder="none", timers=False)
engine = memory._engine
Canary(engine.store, engine.capturer, lambda prompt, scope: os._exit(9)).sing(lambda: None)
"""


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    memory = open_memory()
    memory.store("The heron nests at the lake.")
    return memory


def traces(home: Path) -> dict[str, int]:
    """Count the rows of every table that a memory leaves something in."""
    store = Store(home)
    tables = ("facts", "vectors", "memory_links", "outbox", "receipts", "cursors", "inbox_done", "tombstones", "seals")
    with store.database.read() as connection:
        counts = {table: run(connection, f"SELECT count(*) FROM {table}")[0][0] for table in tables}
        counts["words"] = run(connection, "SELECT count(*) FROM facts_terms")[0][0]
    store.close()
    return counts


def test_it_gets_through_and_leaves_no_trace(memory: Memory, tmp_path: Path) -> None:
    before = traces(tmp_path / "home")
    for _ in range(3):
        assert memory.admin.run_job("canary") == "captured, recalled and removed"
    assert traces(tmp_path / "home") == before
    assert memory.status().facts == 1
    assert memory.status().failing == ()
    assert memory.admin.verify() == []
    assert [change.action for change in memory.admin.changes()] == ["add"]


def test_one_that_is_not_recalled_shows_in_status_and_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # A block that has no room for anything: nothing can come up.
    with Memory.open(tmp_path / "home", embedder="none", recall_deadline_ms=1, recall_max_tokens=50) as memory:
        store = memory._engine.store
        canary = Canary(store, memory._engine.capturer, lambda prompt, scope: "")
        caplog.set_level(logging.ERROR)
        with pytest.raises(CanaryError, match="captured, but not recalled"):
            canary.sing(lambda: None)
        assert [record.getMessage() for record in caplog.records] == [
            "memory may not be working: the canary was captured, but not recalled; see perdure status"
        ]
    assert traces(tmp_path / "home")["facts"] == 0


def test_what_a_killed_process_left_is_removed_by_the_next(memory: Memory, tmp_path: Path) -> None:
    before = traces(tmp_path / "home")
    code = [sys.executable, "-c", KILLED, str(tmp_path / "home")]
    assert subprocess.run(code, env=os.environ, timeout=60).returncode == 9
    with memory._engine.store.database.read() as connection:
        assert run(connection, "SELECT count(*) FROM facts WHERE instr(scope_target, ?) = 1", (PREFIX,)) == [(1,)]
    assert memory.admin.run_job("canary") == "captured, recalled and removed"
    assert traces(tmp_path / "home") == before
