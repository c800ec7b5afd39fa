"""Nothing that a turn does waits for whoever writes to the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from perdure.hooks.types import TurnContext
from tests.kit import OpenMemory, complaints

TEXT = "The staging database is called heron."
QUESTION = "What is the staging database called?"


@contextmanager
def busy(home: Path) -> Iterator[apsw.Connection]:
    """Hold the write lock of a store for the block."""
    writer = apsw.Connection(str(home / "facts.db"))
    writer.execute("BEGIN IMMEDIATE")
    try:
        yield writer
    finally:
        writer.execute("ROLLBACK")
        writer.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("# Birds\n\nThe egret nests in the old willow.\n")
    return folder


def test_a_folder_that_is_new_to_a_busy_store_is_used_at_once_and_registered_later(
    open_memory: OpenMemory, home: Path, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = open_memory(watch=False)
    memory.store(TEXT)
    assert memory.settle()
    sessions = workspace / "sessions"
    context = TurnContext(session_id="s", workspace=str(workspace), sessions_folder=str(sessions), prompt_mode="full")
    with busy(home):
        memory.turns.session_start(context)
        memory.turns.foresee(QUESTION, context)
        recall = memory.turns.before(QUESTION, context)
        taken = memory.turns.after([{"role": "user", "content": "I live in Graz."}], True, context)
        memory.turns.session_end(context)
        # Whatever had waited for the lock, would have given up and said so.
        assert complaints(caplog) == []
    assert taken == 1
    assert recall is not None
    assert TEXT in recall.block
    assert any("old willow" in section.text for section in recall.sections)
    assert memory.settle(60.0)
    memory.close()
    again = open_memory(watch=False)
    assert {(kind, path) for kind, path, _ in again.files.status().roots} >= {
        ("workspace", str(workspace.resolve())), ("sessions", str(sessions.resolve())),
    }  # fmt: skip


def test_a_busy_store_is_opened_and_asked(open_memory: OpenMemory, home: Path, workspace: Path) -> None:
    memory = open_memory()
    memory.store(TEXT)
    memory.close()
    with busy(home):
        memory = open_memory(workspace=workspace)
        recall = memory.turns.before(QUESTION, TurnContext(session_id="s", prompt_mode="full"))
        assert recall is not None
        assert memory.ready(0.0)
        assert [item.text for item in recall.items] == [TEXT]
        assert any("old willow" in section.text for section in recall.sections)
    assert memory.settle(60.0)
    assert [kind for kind, _, _ in memory.files.status().roots] == ["workspace"]


def test_a_folder_that_is_removed_before_it_is_registered_stays_away(
    open_memory: OpenMemory, home: Path, workspace: Path
) -> None:
    memory = open_memory(watch=False)
    memory.store(TEXT)
    assert memory.settle()
    with busy(home):
        memory.turns.session_start(TurnContext(session_id="s", workspace=str(workspace)))
        assert [kind for kind, _, _ in memory.files.status().roots] == ["workspace"]
    assert memory.files.remove(workspace)
    assert memory.settle(60.0)
    assert memory.files.status().roots == ()
