"""A host whose store has lost its truth goes on without memory, and loses no turn."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.errors import StoreLostError
from perdure.hooks.types import TurnContext
from perdure.plugin.plugin import PerdurePlugin, hookimpls_for
from perdure.store.inbox import waiting_in
from perdure.store.rollback_guard import Truth, judge
from tests.kit import complaints, deleted, kept

pytestmark = pytest.mark.sqlite

CONTEXT = TurnContext(session_id="s", host="test")
FACT = "The staging database is called heron."
QUESTION = "What is the staging database called?"
Damage = Callable[[Path], None]


@pytest.fixture
def home(home: Path) -> Path:
    with Memory.open(home, embedder="none") as memory:
        memory.store(FACT)
    return home


def older(home: Path) -> None:
    copy = shutil.copy(home / "facts.db", home.parent / "copy.db")
    with Memory.open(home, embedder="none") as memory:
        memory.store("My cat is called Tom.")
    deleted(home)
    shutil.move(copy, home / "facts.db")


def foreign(home: Path) -> None:
    with Memory.open(home.parent / "other", embedder="none") as memory:
        memory.store("The staging database is somebody else's.")
    deleted(home)
    shutil.copy(home.parent / "other" / "facts.db", home / "facts.db")


def turn(plugin: PerdurePlugin, text: str) -> int | None:
    assert plugin.before_agent_start(QUESTION, [], CONTEXT) is None
    return plugin.agent_end([{"role": "user", "content": text}], True, CONTEXT)


@pytest.mark.parametrize("damage", [deleted, older, foreign])
def test_turns_are_acknowledged_and_captured_when_the_store_is_back(
    home: Path, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    aside = shutil.copytree(home, home.parent / "aside")
    damage(home)
    plugin = hookimpls_for(home=home, embedder="none")
    plugin.host_started(CONTEXT)
    assert turn(plugin, "My dentist is Doctor Wagner.") == 1
    assert plugin.before_compaction([{"role": "user", "content": "I live in Graz."}], CONTEXT) == 1
    [line] = complaints(caplog)
    assert "perdure recover" in line
    tool = plugin.call_tool("memory_recall", {"query": "heron"}, CONTEXT)
    assert tool.refused
    assert tool.details == {"error": "lost", "truth": judge(home).truth}
    assert "kept" in tool.text
    plugin.host_stopping(CONTEXT)
    assert judge(home).lost

    deleted(home)
    for name in ("facts.db", "remembered.json"):
        shutil.copy(aside / name, home / name)
    with Memory.open(home, embedder="none") as memory:
        assert memory.settle()
    assert kept(home) == [FACT, "My dentist is Doctor Wagner.", "I live in Graz."]


def test_the_store_is_opened_by_the_same_host_when_it_is_back(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.plugin.plugin.RETRY_SECONDS", 0.0)
    aside = (home / "facts.db").rename(home.parent / "facts.db")
    plugin = hookimpls_for(home=home, embedder="none")
    assert turn(plugin, "My dentist is Doctor Wagner.") == 1
    assert turn(plugin, "I live in Graz.") == 1
    shutil.move(aside, home / "facts.db")
    assert plugin.before_agent_start(QUESTION, [], CONTEXT) is not None
    plugin.host_stopping(CONTEXT)
    assert sorted(kept(home)) == ["I live in Graz.", "My dentist is Doctor Wagner.", FACT]


def test_a_history_that_comes_again_is_held_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.plugin.plugin.RETRY_SECONDS", 0.0)
    deleted(home)
    plugin = hookimpls_for(home=home, embedder="none")
    history = [{"role": "user", "content": "My dentist is Doctor Wagner."}]
    assert plugin.agent_end(history, True, CONTEXT) == 1
    history += [{"role": "assistant", "content": "OK."}, {"role": "user", "content": "I live in Graz."}]
    assert plugin.agent_end(history, True, CONTEXT) == 1
    assert plugin.agent_end(history, True, CONTEXT) == 0
    plugin.host_stopping(CONTEXT)
    assert waiting_in(home / "inbox") == 2


@pytest.mark.skipif(os.name != "posix", reason="Windows keeps a file that is open")
def test_what_is_lost_while_it_is_open_costs_no_turn(home: Path) -> None:
    aside = shutil.copytree(home, home.parent / "aside")
    plugin = hookimpls_for(home=home, embedder="none")
    assert plugin.before_agent_start(QUESTION, [], CONTEXT) is not None
    deleted(home)
    assert plugin.agent_end([{"role": "user", "content": "I live in Graz."}], True, CONTEXT) == 1
    plugin.host_stopping(CONTEXT)
    assert judge(home).truth is Truth.MISSING

    shutil.copy(aside / "facts.db", home / "facts.db")
    with Memory.open(home, embedder="none") as memory:
        assert memory.settle()
    assert kept(home) == [FACT, "I live in Graz."]


def test_the_library_raises_what_the_matter_is(home: Path) -> None:
    deleted(home)
    with pytest.raises(StoreLostError, match="1 memory") as raised:
        Memory.open(home)
    assert raised.value.truth == "missing"
    assert not (home / "facts.db").exists()


def test_others_turns_are_not_held(home: Path) -> None:
    deleted(home)
    plugin = hookimpls_for(home=home, embedder="none", auto_capture=False)
    assert turn(plugin, "I live in Graz.") == 0
    plugin.host_stopping(CONTEXT)
    assert list((home / "inbox").iterdir()) == []
