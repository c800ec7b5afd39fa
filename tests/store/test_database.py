"""Several writers, several processes, and the borders of one connection."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from perdure.errors import StoreBusyError, StoreClosedError, StoreError
from perdure.hooks.types import Channel
from perdure.store.database import Database
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View, by_ids, every, lexical
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.store.feeding import feed

AUTHOR = Author(Channel.LIBRARY)
WRITER = """
import sys
from pathlib import Path
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.store import Store
from perdure.store.transaction import Author

store = Store(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    with store.write(Author(Channel.LIBRARY)) as tx:
        fact = tx.add(Fact(f"{sys.argv[3]} heron {number}"))
    print(fact.id, flush=True)
store.close()
"""
OPENER = """
import sys
from pathlib import Path
from perdure.store.store import Store

for line in sys.stdin:
    store = Store(Path(line.strip()))
    print(store.key.hex(), flush=True)
    store.close()
"""


@contextmanager
def child(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        with process:
            yield process
    finally:
        process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def all_ids(store: Store) -> list[str]:
    with store.database.read() as connection:
        return [row[0] for row in run(connection, "SELECT id FROM facts")]


def test_two_threads_lose_nothing(store: Store) -> None:
    second = Store(store.folder, clock=store.clock)
    added: list[Fact] = []

    def write(into: Store, name: str) -> None:
        for number in range(40):
            with into.write(AUTHOR) as tx:
                added.append(tx.add(Fact(f"{name} heron {number}")))

    # Two on one connection, one on another.
    threads = [threading.Thread(target=write, args=(into, f"{n}")) for n, into in enumerate((store, store, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    second.close()
    assert len(added) == 120
    assert sorted(all_ids(store)) == sorted(fact.id for fact in added)
    assert sorted(fact.change_seq for fact in added) == list(range(1, 121))
    with store.database.read() as connection:
        assert len(lexical(connection, "heron", View(Audience.of(), store.clock.now()), 200).hits) == 120


def test_two_processes_lose_nothing(store: Store) -> None:
    feed(store)
    folder = str(store.folder)
    with child(WRITER, folder, "60", "first") as first, child(WRITER, folder, "60", "second") as second:
        for process in (first, second):
            assert line_of(process) == "ready"
        for process in (first, second):
            tell(process, "go")
        acknowledged = [line_of(process) for process in (first, second) for _ in range(60)]
    assert (first.returncode, second.returncode) == (0, 0)
    assert sorted(all_ids(store)) == sorted(acknowledged)
    assert store.outbox_state().waiting == 120


def test_two_processes_open_an_empty_folder_at_once(tmp_path: Path) -> None:
    with child(OPENER) as first, child(OPENER) as second:
        for number in range(20):
            for process in (first, second):
                tell(process, str(tmp_path / f"{number}"))
            keys = {line_of(first), line_of(second)}
            # One key means that one of them made the schema and the other found it.
            assert len(keys) == 1
            assert len(keys.pop()) == 64


def test_what_another_process_wrote_is_seen_at_once(store: Store) -> None:
    other = Store(store.folder, clock=store.clock)
    with other.write(AUTHOR) as tx:
        fact = tx.add(Fact("heron"))
    with store.database.read() as connection:
        assert by_ids(connection, [fact.id], View(Audience.of(), store.clock.now())) == {fact.id: fact}
    other.close()


def test_a_lock_that_stays_is_reported_and_nothing_is_kept(store: Store) -> None:
    hasty = Database(store.folder / "facts.db", busy_ms=20)
    with store.database.write(), pytest.raises(StoreBusyError, match=r"facts\.db"), hasty.write():
        pytest.fail("two writers at once")
    with hasty.write() as connection:
        run(connection, "INSERT INTO meta VALUES ('a', 'b')")
    hasty.close()
    assert store.meta("a") == "b"


def test_reading_goes_on_while_somebody_writes(store: Store) -> None:
    with store.database.write() as connection:
        run(connection, "INSERT INTO meta VALUES ('a', 'b')")
        assert store.meta("a") is None
    assert store.meta("a") == "b"


def test_a_statement_is_broken_off_at_its_deadline_and_the_reader_lives_on(store: Store) -> None:
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with (
        pytest.raises(StoreBusyError, match="too long"),
        store.database.read(deadline=time.monotonic() + 0.02) as connection,
    ):
        run(connection, endless)
    with store.database.read() as connection:
        assert run(connection, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 99999)"
                               " SELECT count(*) FROM n") == [(99999,)]  # fmt: skip


def test_a_ctrl_c_at_any_line_of_a_write_keeps_all_or_nothing_and_the_next_write_works(tmp_path: Path) -> None:
    database = Database(tmp_path / "numbers.db")
    with database.write() as connection:
        run(connection, "CREATE TABLE numbers (number)")
    interrupts = 0
    while interrupted(database, interrupts + 1):
        interrupts += 1
        with database.write() as connection:
            run(connection, "INSERT INTO numbers VALUES (0)")
    with database.read() as connection:
        counts = run(connection, "SELECT number, count(*) FROM numbers GROUP BY number")
    assert interrupts > 5
    assert counts[0] == (0, interrupts)
    assert {count for number, count in counts[1:]} == {2}
    database.close()


def interrupted(database: Database, moment: int) -> bool:
    """Write two rows, with a Ctrl-C at the line of `write` that is run as the `moment`th; return whether it came."""
    lines = itertools.count(1)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_name != "write" or not frame.f_code.co_filename.endswith("database.py"):
            return None
        if event == "line" and next(lines) == moment:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with database.write() as connection:
            run(connection, "INSERT INTO numbers VALUES (?), (?)", (moment, moment))
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_after_closing_everything_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.database.read() as lent:
        store.close()
        # What was lent out before still works until it comes back.
        assert run(lent, "SELECT count(*) FROM facts") == [(0,)]
    store.close()
    with pytest.raises(StoreClosedError), store.write(AUTHOR):
        pytest.fail("written after closing")
    with pytest.raises(StoreClosedError):
        store.meta("store_key")
    with pytest.raises(StoreClosedError):
        store.inbox.append({"messages": []})


def test_everything_stays_over_reopening(tmp_path: Path) -> None:
    first = Store(tmp_path)
    with first.write(AUTHOR) as tx:
        fact = tx.add(Fact("heron"))
    first.close()
    second = Store(tmp_path)
    assert all_ids(second) == [fact.id]
    assert second.key == first.key
    second.close()


def test_what_is_read_in_one_block_is_one_state_of_the_store(store: Store) -> None:
    view = View(Audience.of(), time.time() + 60)

    def add() -> None:
        with store.write(AUTHOR) as tx:
            tx.add(Fact("The heron stands in the reeds."))

    with store.database.reading(), store.database.reading():
        before = len(store.database.query(every, view))
        adding = threading.Thread(target=add)
        adding.start()
        adding.join()
        assert (before, len(store.database.query(every, view))) == (0, 0)
        with pytest.raises(StoreError):
            store.database.query(run, "SELECT * FROM nowhere")
    assert len(store.database.query(every, view)) == 1
