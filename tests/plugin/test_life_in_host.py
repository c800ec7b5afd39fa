"""Background life in a host's process: its timers, forks, signals, the end of the interpreter, and no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import StoreClosedError
from perdure.hooks.types import TurnContext
from perdure.plugin.plugin import hookimpls_for
from perdure.store.store import Store
from tests.background.test_drain import ENTRY
from tests.kit import kept
from tests.waiting import until

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
SILENT = """
import json, sys, threading
from pathlib import Path

tried = []
sys.addaudithook(lambda event, args: tried.append(event) if event in ("socket.connect", "socket.getaddrinfo") else None)
from perdure.api.memory import Memory
from perdure.engine.settings import Settings
from perdure.engine.work import work
from perdure.store import schedule

home = Path(sys.argv[1])
with Memory.open(home) as memory:
    memory.ready()
    memory.store("The heron nests at the lake.")
    said = {name: memory.admin.run_job(name) for name in ("prune", "canary", "files")}
    wanted = [name for name in memory.admin.jobs() if name not in said]
    with memory._engine.store.database.write() as connection:
        for name in wanted:
            schedule.want(connection, name, memory._engine.clock.now() + 600)
    work(home, Settings(), threading.Event(), idle_seconds=0)
    states = memory.admin.jobs()
    print(json.dumps({"tried": tried, "jobs": {name: states[name].result for name in states}}))
"""
FORKING = """
import os, sys, threading
from perdure.errors import PerdureError
from perdure.hooks.types import TurnContext
from perdure.api.memory import Memory
from perdure.plugin.plugin import hookimpls_for

home = sys.argv[1]
plugin = hookimpls_for(home=home, embedder="none")
plugin.host_started(TurnContext())
memory = Memory.open(home, embedder="none")
memory.store("The heron nests at the lake.")
stop, number = threading.Event(), [0]

def busy():
    while not stop.wait(0.002):
        number[0] += 1
        memory.store(f"Lake {number[0]} has {number[0]} reeds.")
        memory.recall("Where does the heron nest?")

threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads:
    thread.start()
for round in range(5):
    child = os.fork()
    if child == 0:
        stop.set()
        try:
            memory.recall("Where does the heron nest?")
            os._exit(3)
        except PerdureError as error:
            assert "before the process was forked" in str(error)
        memory.close()
        # A hook opens the store anew.
        recall = plugin.before_agent_start("Where does the heron nest?", (), TurnContext())
        assert recall is not None and "heron" in recall.block
        with Memory.open(home, embedder="none") as own:
            own.store(f"Child {round} lives at the lake.")
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads:
    thread.join()
"""


def run(code: str, *arguments: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=timeout)


def test_a_host_leads_and_its_first_jobs_run_by_themselves(tmp_path: Path) -> None:
    clock = ManualClock()
    with Memory.open(tmp_path, embedder="none", timers=True, clock=clock) as memory:
        assert until(lambda: memory.admin.jobs()["prune"] is not None)
        assert memory.status().timers == "this process"
        with Memory.open(tmp_path, embedder="none") as other:
            assert other.status().timers == "another process"
        clock.advance(2)
        assert until(lambda: memory.admin.jobs()["canary"] is not None)
    with Memory.open(tmp_path, embedder="none") as memory:
        assert memory.status().timers == "none"


def test_a_job_that_fails_shows_in_status(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="none") as memory:
        (tmp_path / "backups").write_text("in the way")
        assert memory.admin.run_job("backup", 60).startswith("failed: ")
        [failing] = memory.status().failing
        assert failing.startswith("backup: failed: ")


def test_the_recovery_comes_before_the_first_prune(tmp_path: Path) -> None:
    """What a dead process left is stored first, and then judged as all the rest is."""
    clock = ManualClock()
    with Memory.open(tmp_path, embedder="none", clock=clock) as memory:
        engine = memory._engine
        engine.keeper.close()
        engine.take_in([{"role": "user", "content": "Remember that the heron nests at the lake."}], TurnContext())
        assert engine.store.inbox.waiting == 1
    clock.advance(30 * 86_400)
    with Memory.open(tmp_path, embedder="none", timers=True, clock=clock) as memory:
        assert until(lambda: memory.admin.jobs()["prune"] is not None)
        with memory._engine.store.database.read() as connection:
            rows = list(connection.execute("SELECT count(*) FROM facts"))
        assert rows == [(1,)]


def test_what_another_process_leaves_behind_is_captured_without_a_new_start(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="none") as memory:
        assert memory.settle()
        dead = Store(tmp_path)
        dead.inbox.append(ENTRY)
        dead.close()
        memory.admin.run_job("prune")
        assert memory.settle()
        assert kept(tmp_path) == ["I prefer tea over coffee."]


def test_no_job_opens_a_connection_and_each_says_what_it_did(tmp_path: Path) -> None:
    done = run(SILENT, str(tmp_path))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["tried"] == []
    assert set(told["jobs"]) == {
        "prune", "canary", "files", "classify", "backup", "export", "optimise", "reconcile", "calibrate",
        "tidy",
    }  # fmt: skip
    assert all(result and "\n" not in result and "failed" not in result for result in told["jobs"].values())


@posix
def test_a_forked_child_says_what_is_wrong_or_opens_anew_and_never_hangs(tmp_path: Path) -> None:
    done = run(FORKING, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0"] * 5, done.stderr
    with Memory.open(tmp_path, embedder="none") as memory:
        assert memory.admin.verify() == []
        with memory._engine.store.database.read() as connection:
            [(count,)] = connection.execute("SELECT count(*) FROM facts WHERE text GLOB 'Child *'")
        assert count == 5


@posix
def test_the_parent_goes_on_after_a_fork(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="none") as memory:
        fact = memory.store("The heron nests at the lake.")
        child = os.fork()
        if child == 0:
            try:
                memory.get(fact.id)
            except StoreClosedError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        memory.store("The kettle in the kitchen is broken.")
        assert memory.recall("Where does the heron nest?")


def test_a_stopped_host_may_start_again(tmp_path: Path) -> None:
    plugin = hookimpls_for(home=tmp_path, embedder="none", timers=True)
    for _ in range(2):
        plugin.host_started(TurnContext())
        messages = [{"role": "user", "content": "Remember that the heron nests at the lake."}]
        plugin.agent_end(messages, True, TurnContext())
        plugin.host_stopping(TurnContext())
        assert not _locked(tmp_path)


def _locked(home: Path) -> Sequence[str]:
    return [path.name for path in (home / "presence").glob("*.lock") if path.name != "door.lock"]
