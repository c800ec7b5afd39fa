"""From the inbox to facts: every acknowledged turn is captured once, whatever dies in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.background.drain import PROBLEM, Drain
from perdure.background.keeper import Keeper, TurnGate
from perdure.capture.pipeline import Capturer
from perdure.capture.writing import Writer, WritingOptions
from perdure.clock import ManualClock
from perdure.hooks.types import TurnContext
from perdure.store.inbox_lines import Entry
from perdure.store.sql import run
from perdure.store.store import Store
from tests.waiting import until

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
ANIMALS = ("heron", "otter", "lynx", "badger", "falcon", "newt", "viper", "gecko", "marten", "stoat")
KILLED = """
import sys
from pathlib import Path
from perdure.hooks.types import TurnContext
from perdure.api.memory import Memory

memory = Memory.open(Path(sys.argv[1]), embedder="none")
said = [{"role": "user", "content": "I prefer tea over coffee."}]
assert memory.turns.after(said, True, TurnContext(session_id="s")) == 1
if sys.argv[2] == "captured":
    memory.settle()
print("acknowledged", flush=True)
sys.stdin.read()
"""


AT_ONCE = """
import sys
from perdure import Memory, TurnContext

with Memory.open(sys.argv[1]) as memory:
    memory.turns.after([{"role": "user", "content": "I own a boat."}], True, TurnContext(session_id="s"))
    settled = memory.settle(30)
    print(settled, [fact.text for fact in memory.admin.list()], memory.ready(60))
"""


class Desk:
    """A store with what captures for it."""

    def __init__(self, folder: Path, rule: str | None = None) -> None:
        self.store = Store(folder, clock=ManualClock())
        self.gate = TurnGate()
        self.keeper = Keeper(self.gate, lambda: None)
        self.capturer = Capturer(self.store, Writer(lambda: None, WritingOptions()), lambda: (refuse,) if rule else ())
        self.drain = Drain(self.store, self.capturer.process, self.keeper, self.gate)

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


def crowd(store: Store, room: int | None) -> None:
    """Let the database grow no more, as on a full disk; None: let it grow again."""
    with store.database.write() as connection:
        [(pages,)] = run(connection, "PRAGMA page_count")
    with store.database.write() as connection:
        run(connection, f"PRAGMA max_page_count = {1 << 30 if room is None else pages + room}")


def said(number: int) -> str:
    """Return what makes ten facts."""
    return " ".join(f"My colleague {animal}{number} sits in room {number}." for animal in ANIMALS)


def long_entry(number: int) -> Entry:
    return {**ENTRY, "messages": [{"text": said(number), "at": None}]}


class Broken:
    """Heads that cannot be loaded at first, as where two threads import a library at once."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, heard: object) -> None:
        self.asked += 1
        if self.asked == 1:
            raise ImportError("partially initialized module")


def test_what_cannot_be_imported_at_first_is_captured_in_the_same_process(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="none") as memory:
        memory._engine.capturer._choice = broken = Broken()
        memory.turns.after([{"role": "user", "content": "I own a boat."}], True, TurnContext(session_id="s"))
        assert memory.settle(20)
        assert [fact.text for fact in memory.admin.list()] == ["I own a boat."]
        assert broken.asked > 1


def test_a_turn_that_comes_while_the_model_loads_is_captured(tmp_path: Path) -> None:
    for number in range(3):
        home = str(tmp_path / str(number))
        done = subprocess.run([sys.executable, "-c", AT_ONCE, home], capture_output=True, text=True, check=False)
        assert done.stdout == "True ['I own a boat.'] True\n", done.stderr


def until_it_works(desk: Desk) -> None:
    """Have it tried again, as is done in quiet moments."""
    for _ in range(100):
        desk.drain.retry()
        if desk.drain.problem is None:
            return
        time.sleep(0.1)


def test_a_drain_that_fails_says_why_until_it_works(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    crowd(desk.store, 0)
    for number in range(5):
        desk.drain.accept(desk.store.inbox.append(long_entry(number)))
    desk.keeper.start()
    assert desk.keeper.settle(20)
    assert desk.drain.problem is not None
    assert "disk is full" in desk.drain.problem
    assert desk.store.inbox.waiting == len(desk.store.waiting()) > 0
    crowd(desk.store, None)
    until_it_works(desk)
    assert desk.drain.problem is None
    assert desk.store.meta(PROBLEM) is None
    assert desk.store.waiting() == []
    assert len(texts(desk.store)) == 50
    desk.close()


def test_a_recovery_that_fails_says_why_and_is_tried_again(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    for number in range(5):
        first.store.inbox.append(long_entry(number))
    first.close()
    second = Desk(tmp_path)
    crowd(second.store, 0)
    second.drain.recover()
    assert second.drain.problem is not None
    assert len(second.store.waiting()) > 0
    crowd(second.store, None)
    until_it_works(second)
    assert len(texts(second.store)) == 50
    assert second.store.inbox.files() == frozenset()
    second.close()


def test_what_waits_and_why_shows_in_status_also_to_another_process(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="none") as memory:
        assert memory.settle()
        engine = memory._engine
        crowd(engine.store, 0)
        for number in range(5):
            messages = [{"role": "user", "content": said(number)}]
            assert memory.turns.after(messages, True, TurnContext(session_id=f"s{number}")) == 1
        assert not memory.settle(1)
        assert until(lambda: "disk is full" in (memory.status().inbox_problem or ""))
        waiting = memory.status().inbox
        assert waiting > 0
        with Memory.open(tmp_path, embedder="none") as other:
            assert until(lambda: "disk is full" in (other.status().inbox_problem or ""))
            assert other.status().inbox == waiting
        crowd(engine.store, None)


def test_nineteen_of_twenty_turns_are_captured_and_the_damaged_one_is_told(tmp_path: Path) -> None:
    first = Store(tmp_path)
    for number in range(20):
        text = f"My colleague {ANIMALS[number % 10]}{number} sits in room {number}."
        first.inbox.append({**ENTRY, "messages": [{"text": text, "at": None}]})
    first.close()
    [path] = (tmp_path / "inbox").glob("*.jsonl")
    content = bytearray(path.read_bytes())
    content[content.index(b"room 7")] ^= 1
    path.write_bytes(content)
    with Memory.open(tmp_path, embedder="none") as memory:
        assert memory.settle()
        status = memory.status()
        assert (status.facts, status.inbox, status.damaged) == (19, 0, 1)
        [finding] = memory.admin.verify()
        assert finding.what == "turn is damaged and set aside"


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


def test_what_a_neighbour_leaves_behind_is_captured_without_a_new_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.background.drain.ORPHANS", 0.0)
    staying, leaving = Desk(tmp_path), Desk(tmp_path)
    try:
        staying.drain.recover()
        leaving.store.inbox.append(ENTRY)
        staying.drain.retry()
        assert texts(staying.store) == []  # its owner lives
        leaving.close()
        staying.drain.retry()
        assert texts(staying.store) == [("I prefer tea over coffee.",)]
    finally:
        staying.close()


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
