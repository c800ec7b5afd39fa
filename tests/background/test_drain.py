"""From the inbox to facts: every acknowledged turn is captured once, whatever dies in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.background.drain import Drain
from perdure.background.keeper import Keeper
from perdure.background.turn_gate import TurnGate
from perdure.capture.pipeline import Capturer
from perdure.capture.writing import Writer, WritingOptions
from perdure.clock import ManualClock
from perdure.plugin.memory import Memory
from perdure.store.database import run
from perdure.store.inbox import Entry
from perdure.store.store import Store

ENTRY: Entry = {
    "at": 1_800_000_000.0,
    "session": "s",
    "cursor": "user:owner\0s",
    "tail": "0123456789abcdef",
    "scope": "user:owner",
    "host": "test",
    "turn": None,
    "messages": [{"text": "I prefer tea over coffee.", "at": None}],
}
KILLED = """
import sys
from pathlib import Path
from perdure.hooks.types import TurnContext
from perdure.plugin.memory import Memory

memory = Memory.open(Path(sys.argv[1]), embedder="none")
said = [{"role": "user", "content": "I prefer tea over coffee."}]
assert memory.turns.after(said, True, TurnContext(session_id="s")) == 1
if sys.argv[2] == "captured":
    memory.settle()
print("acknowledged", flush=True)
sys.stdin.read()
"""


class Desk:
    """A store with what captures for it."""

    def __init__(self, folder: Path, rule: str | None = None) -> None:
        self.store = Store(folder, clock=ManualClock())
        self.gate = TurnGate()
        self.keeper = Keeper(self.gate, lambda: None)
        self.capturer = Capturer(self.store, Writer(lambda: None, WritingOptions()), lambda: (refuse,) if rule else ())
        self.drain = Drain(self.store, self.capturer, self.keeper, self.gate)

    def close(self) -> None:
        self.keeper.close(0.5)
        self.store.close()


def refuse(sentence: str) -> str | None:
    """Raise what no part of perdure raises, as an extension's rule may."""
    raise RuntimeError("rule is broken")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()


def rows(store: Store, sql: str) -> list[tuple[object, ...]]:
    with store.database.read() as connection:
        return run(connection, sql)


def texts(store: Store) -> list[tuple[object, ...]]:
    return rows(store, "SELECT text FROM facts")


def test_an_accepted_entry_becomes_a_fact(desk: Desk) -> None:
    desk.keeper.start()
    desk.drain.accept(desk.store.inbox.append(ENTRY))
    assert desk.keeper.settle(20)
    assert texts(desk.store) == [("I prefer tea over coffee.",)]
    assert desk.store.inbox.waiting == 0
    assert desk.store.cursor("user:owner\0s") == "0123456789abcdef"


def test_an_entry_of_a_process_that_died_before_capturing_it(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    first.store.inbox.append(ENTRY)
    first.close()
    second = Desk(tmp_path)
    second.drain.recover()
    assert texts(second.store) == [("I prefer tea over coffee.",)]
    assert second.store.inbox.files() == frozenset()
    second.close()


def test_an_entry_of_a_process_that_died_after_the_commit_is_not_captured_again(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    entry = first.store.inbox.append(ENTRY)
    assert len(first.capturer.process(entry)) == 1
    first.close()
    second = Desk(tmp_path)
    assert second.store.is_finished(entry["id"])
    second.drain.recover()
    assert rows(second.store, "SELECT reinforced_count FROM facts") == [(0,)]
    assert rows(second.store, "SELECT count(*) FROM journal") == [(1,)]
    # The note on the entry goes when its file has gone.
    assert rows(second.store, "SELECT count(*) FROM inbox_done") == [(0,)]
    second.close()


def test_notes_on_entries_of_living_processes_stay(tmp_path: Path) -> None:
    living, other = Desk(tmp_path), Desk(tmp_path)
    entry = living.store.inbox.append(ENTRY)
    living.capturer.process(entry)
    other.drain.recover()
    assert living.store.is_finished(entry["id"])
    assert living.capturer.process(entry) == []
    living.close()
    other.close()


@pytest.mark.parametrize(
    "broken",
    [
        {"messages": None},
        {"messages": [{}]},
        {"messages": "text"},
        {"scope": "planet:earth"},
        {"at": 253402300799.0, "messages": [{"text": "Remember that the rent is due in 3 days.", "at": None}]},
        {"messages": [{"text": "I prefer tea over coffee.", "at": 1e300}]},
    ],
    ids=str,
)
def test_a_poisoned_entry_is_put_aside_and_the_next_one_captured(tmp_path: Path, broken: Entry) -> None:
    first = Desk(tmp_path)
    poisoned = first.store.inbox.append({**ENTRY, **broken})
    first.store.inbox.append(ENTRY)
    first.close()
    second = Desk(tmp_path)
    second.drain.recover()
    assert texts(second.store) == [("I prefer tea over coffee.",)]
    assert rows(second.store, "SELECT entry_id FROM inbox_parked") == [(poisoned["id"],)]
    second.close()


def test_a_rule_of_an_extension_that_raises_anything_costs_no_turn(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    first.store.inbox.append(ENTRY)
    first.store.inbox.append({**ENTRY, "messages": [{"text": "The weather was fine in spring.", "at": None}]})
    first.close()
    second = Desk(tmp_path, rule="broken")
    try:
        second.drain.recover()
        assert texts(second.store) == [("I prefer tea over coffee.",)]
    finally:
        second.close()


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize("moment", ["acknowledged", "captured"])
def test_an_acknowledged_turn_survives_a_kill_once(tmp_path: Path, moment: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), moment], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "acknowledged\n"
        process.send_signal(signal.SIGKILL)
    with Memory.open(tmp_path, embedder="none") as memory:
        assert memory.settle()
        assert memory.status().parked == 0
    store = Store(tmp_path)
    assert texts(store) == [("I prefer tea over coffee.",)]
    assert rows(store, "SELECT action FROM journal") == [("add",)]
    assert store.inbox.files() == frozenset()
    store.close()
