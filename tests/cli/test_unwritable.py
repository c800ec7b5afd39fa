"""A store that cannot be written is shown, and it is said in words why; one that is not there is not made."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.errors import PerdureError, StoreFullError, StoreUnavailableError
from perdure.hooks.types import TurnContext
from tests.cli import calling
from tests.cli.calling import Called
from tests.unwritable import bound, full_disk, read_only

FACT = "The staging database is called heron."
SAID = "My cat is called Tom."
QUESTION = "Which database is staging?"
WORKING = """
import os, sys
from pathlib import Path
from perdure.hooks.types import TurnContext
from perdure.api.memory import Memory

memory = Memory.open(Path(sys.argv[1]), embedder="hash", vector_index=sys.argv[2], timers=False)
memory.ready()
print(memory.store(sys.argv[3]).id)
memory.settle()
if sys.argv[2] == "lance":
    assert memory.admin.sync_index()
memory._engine.keeper.close()  # what is acknowledged from here on waits
memory.turns.after([{"role": "user", "content": sys.argv[4]}], True, TurnContext(session_id="s"))
sys.stdout.flush()
if sys.argv[5] == "killed":
    os._exit(9)
memory.close()
"""
READS = (
    "list", "lookup user", "show 00000000", "stats", "recall heron", "why", "why-not 00000000", "search heron",
    "history", "graph 00000000", "stats --all", "review", "review list", "review audit", "review propose --dry-run",
    "status", "jobs", "files status", "files search heron", "files read MEMORY.md",
    "checkpoint list", "eval", "model status", "model list", "verify", "export OUT",
    "forget 00000000 --dry-run", "undo --dry-run", "prune --dry-run", "consolidate --dry-run", "reflect --dry-run",
    "distill --dry-run", "classify --dry-run", "scrub --dry-run", "purge 00000000 --dry-run", "purge --status",
    "backup", "backup list", "backup restore OUT --dry-run", "model switch --dry-run", "model rollback --dry-run",
    "model prune --dry-run", "doctor", "vault list", "vault status", "uninstall --dry-run", "review drop x --dry-run",
    "review approve x --dry-run", "unlink 00000000 00000001 --dry-run",
    "files remove OUT --dry-run",
)  # fmt: skip
Broken = Callable[[Path], AbstractContextManager[None]]
BROKEN: dict[str, tuple[Broken, str]] = {
    "read-only": (read_only, "read-only file system|permission denied"),
    "full": (partial(full_disk, size=3_000_000), "the disk is full"),
}


@pytest.fixture
def home(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERDURE_EMBEDDER", "hash")
    return elsewhere


def left(home: Path, how: str, index: str = "exact") -> str:
    """Let a process store a fact, acknowledge a turn and end; return the id of the fact."""
    command = [sys.executable, "-c", WORKING, str(home), index, FACT, SAID, how]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout.strip()


def call(home: Path, line: str, code: int | None = 0) -> Called:
    words = [str(home.with_name("out")) if word == "OUT" else word for word in line.split()]
    return calling.call(*words, "--home", home, code=code)


def complaint(home: Path, line: str) -> str:
    """Return what a command tells on stderr, or with what it is refused."""
    try:
        return call(home, line, code=None).stderr
    except PerdureError as error:
        return str(error)


@pytest.mark.parametrize("line", READS)
def test_a_command_that_reads_makes_no_store(home: Path, line: str) -> None:
    complaint(home, line)
    assert not home.exists()


def test_it_says_that_there_is_none(home: Path) -> None:
    shown = call(home, "list --json")
    assert shown.json["facts"] == []
    assert "there is no store in" in shown.stderr
    for line in ("export OUT", "backup", "purge --status", "verify"):
        assert "there is no store in" in complaint(home, line)


@pytest.mark.parametrize("how", ["closed", "killed"])
@pytest.mark.parametrize("what", BROKEN)
def test_what_cannot_be_written_is_shown_with_the_reason(home: Path, what: str, how: str) -> None:
    broken, reason = BROKEN[what]
    fact_id = left(home, how)
    with broken(home):
        before = contents(home)
        for line in ("list", f"show {fact_id}", "search heron", f"history {fact_id}", "recall heron"):
            shown = call(home, line)
            assert "heron" in shown.stdout, line
            assert " cannot be written (" in shown.stderr, line
            assert any(each in shown.stderr for each in reason.split("|")), line
            assert "1 turn to capture" in shown.stderr, line
        assert SAID in call(home, "review").stdout
        call(home, "export OUT")
        assert FACT in home.with_name("out").read_text(encoding="utf-8")
        assert "memories can be read but not changed" in call(home, "status").stdout
        doctor = call(home, "doctor", code=1)
        assert "IOError" not in doctor.output
        assert "but not changed" in doctor.output
        assert contents(home).items() >= before.items()
        with pytest.raises((StoreUnavailableError, StoreFullError), match=r"not changed|the disk is full"):
            call(home, "store MORE")


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_after_a_kill_the_log_is_read_though_nothing_can_be_written(home: Path, how: str) -> None:
    left(home, how)
    # As a copy without it has it: the index of the log goes with its last process.
    (home / "facts.db-shm").unlink(missing_ok=True)
    with read_only(home):
        assert "heron" in call(home, "list").stdout


def test_a_host_recalls_and_says_that_it_takes_nothing_in(home: Path) -> None:
    left(home, "closed", "lance")
    context = TurnContext(session_id="t")
    with read_only(home), Memory.open(home, embedder="hash", vector_index="lance") as memory:
        assert memory.ready()
        found = memory.turns.before(QUESTION, context)
        assert found is not None
        assert FACT in found.block
        said = [{"role": "user", "content": "My dog is called Fido."}]
        with pytest.raises(StoreUnavailableError, match="but not changed"):
            memory.turns.after(said, True, context)
        assert memory.settle()
        status = memory.status()
        assert (status.facts, status.inbox) == (1, 1)
        assert "but not changed" in (status.read_only or "")


def test_a_process_inside_sees_what_one_outside_writes(home: Path, tmp_path: Path) -> None:
    left(home, "closed")
    inside = tmp_path / "inside"
    inside.mkdir()
    with bound(home, inside), Memory.open(inside, embedder="none") as reader:
        assert [fact.text for fact in reader.admin.list()] == [FACT]
        with Memory.open(home, embedder="none") as writer:
            writer.settle()
            writer.store("The production database is called crane.")
            assert len(reader.admin.list()) == 3
        assert len(reader.admin.list()) == 3


def test_readers_leave_what_waits_to_an_owner(home: Path) -> None:
    left(home, "killed")
    shown = call(home, "list")
    assert "1 turn to capture" in shown.stderr
    assert "Tom" not in shown.stdout
    assert SAID in call(home, "review").stdout
    with Memory.open(home, embedder="hash") as memory:
        assert memory.settle()
    shown = call(home, "list")
    assert "wait" not in shown.stderr
    assert "Tom" in shown.stdout


def contents(home: Path) -> dict[str, bytes]:
    # SQLite's own side files come and go with connections.
    files = (path for path in home.resolve().rglob("*") if path.is_file())
    return {path.name: path.read_bytes() for path in files if not path.name.endswith(("-shm", "-wal"))}
