"""The rungs of a search of files, as somebody meets them who has a damaged, a locked or a lost index."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext
from perdure.store.sql import run
from tests.cli.calling import call
from tests.kit import OpenMemory

TEXT = "The staging database is called heron."
QUESTION = "What is the staging database called?"
LOCK = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
for statement in ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"):
    connection.execute(statement).fetchall()
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(f"# Servers\n\n{TEXT}\n")
    for number in range(40):
        (folder / "memory" / f"{number}.md").write_text(f"Note {number}: the gardener came.\n" * 20)
    return folder


@pytest.fixture
def memory(open_memory: OpenMemory, workspace: Path) -> Memory:
    memory = open_memory(workspace=workspace, watch=False)
    assert memory.ready()
    assert memory.files.search(QUESTION).backend == "hybrid"
    return memory


def index_file(home: Path) -> Path:
    [path] = home.glob("index-*.db")
    return path


def changed(home: Path, sql: str) -> None:
    connection = apsw.Connection(str(index_file(home)))
    connection.set_busy_timeout(10_000)  # the worker may be writing
    run(connection, sql)
    connection.close()


def words_damaged(home: Path) -> None:
    changed(home, "UPDATE chunks_fts_data SET block = x'00' WHERE id > 10")


def words_gone(home: Path) -> None:
    changed(home, "DROP TABLE chunks_fts")


def pages_overwritten(home: Path) -> None:
    changed(home, "PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(index_file(home).read_bytes())
    content[8192:] = random.Random(1).randbytes(len(content) - 8192)
    index_file(home).write_bytes(content)


@pytest.mark.parametrize("harm", [words_damaged, words_gone, pages_overwritten])
def test_a_damaged_index_is_answered_from_the_files_and_built_anew(
    memory: Memory, home: Path, harm: Callable[[Path], None]
) -> None:
    harm(home)
    answer = memory.files.search(QUESTION)
    assert (answer.backend, answer.provider) == ("substring", "none")
    assert answer.reason == "the index is damaged; while it is being rebuilt, the files are searched directly"
    assert answer.results[0].citation == "MEMORY.md#L1-L3"
    assert memory.settle()
    healed = memory.files.search(QUESTION)
    assert (healed.backend, healed.reason, healed.dirty) == ("hybrid", None, 0)
    assert healed.results[0].citation == "MEMORY.md#L1-L3"
    assert len(list(home.glob("index-*.db"))) == 1


def test_a_turn_that_meets_the_damage_has_it_mended(memory: Memory, home: Path) -> None:
    words_damaged(home)
    assert memory.turns.before(QUESTION, TurnContext(session_id="s")) is None
    assert memory.settle()
    recall = memory.turns.before(QUESTION, TurnContext(session_id="s"))
    assert recall is not None
    assert [item.id for item in recall.items] == ["MEMORY.md#L1-L3"]


def test_by_hand_a_damaged_index_is_built_anew_too(memory: Memory, home: Path) -> None:
    pages_overwritten(home)
    assert memory.files.sync(force=True).rebuilt
    assert memory.files.search(QUESTION).backend in ("keyword", "hybrid")


def test_an_index_that_another_program_locks_is_neither_waited_for_nor_replaced(
    open_memory: OpenMemory, workspace: Path, memory: Memory, home: Path
) -> None:
    memory.close()
    path = index_file(home)
    with subprocess.Popen([sys.executable, "-c", LOCK, str(path)], stdin=-1, stdout=-1, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == "locked\n"
        again = open_memory(workspace=workspace, watch=False)
        answer = again.files.search(QUESTION)
        assert answer.backend == "substring"
        assert "locked by another process" in str(answer.reason)
        assert answer.results[0].path == "MEMORY.md"
        program.stdin.close()
    again.ready()
    assert again.files.search(QUESTION).backend == "hybrid"
    assert index_file(home) == path, "what was locked is still good"


def test_the_command_says_on_which_rung_it_stands(memory: Memory, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.close()
    words_gone(home)
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    found = call("files", "search", "staging database heron", "--home", home)
    assert "MEMORY.md" in found.stdout
    assert "the index is damaged" in found.output
    found = call("files", "search", "staging database heron", "--home", home, "--json")
    assert found.json["backend"] == "keyword"
