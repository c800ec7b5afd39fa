"""Several machines, one memory: conversations, turns of a machine that is gone, and who looks after things."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextvars import Context
from pathlib import Path
from typing import Any

import psycopg
import pytest

from perdure import Memory, TurnContext
from perdure.clock import ManualClock
from perdure.errors import StoreBusyError, StoreFullError, StorePurgedError, StoreUnavailableError
from perdure.files.shared_log import SEEN, log_of
from perdure.maintenance.teardown import purge_tenant
from perdure.postgres.database import PostgresDatabase
from perdure.postgres.lease import Lease
from perdure.store import conversation_lines as said
from perdure.store import shared_inbox
from perdure.store.moved import MOVED
from perdure.store.sql import put_meta, run
from perdure.store.store import Server as Shared
from perdure.store.store import Store
from tests.postgres.server import Server
from tests.waiting import until

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("same_key")]
Open = Callable[..., Memory]
FACT = "The staging database is called heron."
SAID = [
    {"role": "user", "content": "Which of the two quotes for the greenhouse was cheaper?"},
    {"role": "assistant", "content": "Glasbau Weber, by 340 euros."},
]


def test_a_conversation_of_one_machine_is_found_at_another_and_goes_on_there(opened: Open) -> None:
    one, other = opened("one"), opened("other")
    one.turns.after(SAID, True, TurnContext(session_id="s1"))
    assert one.settle()

    def found(words: str) -> list[str]:
        return [hit.snippet for hit in other.files.search(words).results]

    assert until(lambda: any("greenhouse" in text for text in found("greenhouse quotes")))
    more = [*SAID, {"role": "user", "content": "Then order from them, with the ventilation flap."}]
    other.turns.after(more, True, TurnContext(session_id="s1"))
    assert other.settle()
    [file] = list(one._engine.files.log._root.glob("*/*.jsonl"))
    assert until(lambda: "flap" in file.read_text())
    assert [line.count("greenhouse") + line.count("flap") for line in file.read_text().splitlines()] == [0, 1, 0, 1]


def test_who_reads_first_and_writes_last_leaves_no_older_state(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = opened("one"), opened("other")
    one.turns.after(SAID[:1], True, TurnContext(session_id="s1"))
    assert one.settle()
    log, read = other._engine.files.log, said.lines
    beside = threading.Thread(target=lambda: log_of(other._engine.store).pull())

    def slow(*given: Any) -> list[bytes]:
        found = read(*given)
        if threading.current_thread() is threading.main_thread() and not beside.ident:
            # Meanwhile the conversation goes on, and another process of this machine takes that over, if it may.
            with one._engine.store.database.write() as connection:
                said.add(connection, given[1], given[2], [b'{"role":"user","content":"later"}'], 1.8e9)
            beside.start()
            beside.join(1.0)
        return found

    other._engine.timers.stop()
    other._engine.keeper.close()
    (log._root / SEEN).unlink(missing_ok=True)
    monkeypatch.setattr(said, "lines", slow)
    log.pull()
    beside.join()
    [file] = list(log._root.glob("*/*.jsonl"))
    assert "later" in file.read_text()


def test_a_turn_is_kept_once_whatever_keeps_the_database_from_it(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = opened(ack="database")

    def full(*_: object) -> None:
        raise StoreFullError("no room left")

    monkeypatch.setattr(shared_inbox, "put", full)
    assert memory.turns.after([{"role": "user", "content": FACT}], True, TurnContext(session_id="s1")) == 1
    assert memory.settle()
    assert [fact.text for fact in memory.admin.list()] == [FACT]
    assert memory._engine.store.waiting() == []


def test_what_is_purged_leaves_the_conversations_of_all_machines(opened: Open) -> None:
    one, other = opened("one"), opened("other")
    one.turns.after([{"role": "user", "content": FACT}], True, TurnContext(session_id="s1"))
    assert one.settle()
    assert until(lambda: bool(one.admin.list()))
    assert until(lambda: list(other._engine.files.log._root.glob("*/*.jsonl")))
    [file] = list(other._engine.files.log._root.glob("*/*.jsonl"))
    assert "heron" in file.read_text()
    one.admin.purge(one.admin.list()[0].id)
    assert one.settle()

    assert until(lambda: "heron" not in file.read_text())
    with one._engine.store.database.read() as connection:
        assert not run(connection, "SELECT 1 FROM said WHERE line LIKE '%heron%'")


def test_a_turn_that_the_database_acknowledged_outlives_its_machine(
    opened: Open, server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = opened("other")
    lost = Store(tmp_path / "lost", server=Shared(server.url, tenant, acknowledges=True))
    entry = {
        "at": 1_700_000_000.0, "session": "s1", "cursor": "global\0s1", "tail": "", "scope": "global",
        "host": "python", "turn": None, "messages": [{"role": "user", "text": FACT}],
    }  # fmt: skip
    lost.acknowledge(entry)
    lost.close()
    other._engine.drain.recover()
    assert other.admin.list() == []  # it is left to its machine for a while
    monkeypatch.setattr(shared_inbox, "PATIENCE", -1.0)
    other._engine.drain.recover()
    assert [fact.text for fact in other.admin.list()] == [FACT]
    with other._engine.store.database.read() as connection:
        assert shared_inbox.held(connection) == set()
    # The machine comes back, and its disk has the turn as well.
    with Memory.open(
        tmp_path / "lost", store_url=server.url, store_tenant=tenant, embedder="none", timers=False
    ) as back:
        assert back.settle()
        assert [fact.reinforced_count for fact in back.admin.list()] == [0]


def test_a_tenant_is_purged_everywhere_and_nothing_is_written_for_it_again(
    opened: Open, server: Server, tenant: str
) -> None:
    one, other = opened("one"), opened("other", ack="database")
    one.turns.after([{"role": "user", "content": FACT}], True, TurnContext(session_id="s1"))
    assert one.settle()
    folder = other._engine.store.folder
    assert until(lambda: list(folder.glob("transcripts/*/*.jsonl")))
    done = purge_tenant(one._engine.store)
    assert (done.left, done.rows["facts"], len(done.certificate)) == (0, 1, 32)
    assert not list(one._engine.store.folder.glob("transcripts"))
    with pytest.raises(StorePurgedError, match="were purged on"):
        other.store("The printer is called Otto.")
    # A turn of which it hears too late is kept nowhere but in its own inbox, which goes.
    other.turns.after([{"role": "user", "content": "The cat is called Mia."}], True, TurnContext(session_id="s2"))
    assert until(lambda: not list(folder.glob("transcripts")))
    with pytest.raises(StorePurgedError):
        opened("a third")
    with psycopg.connect(server.url) as connection:
        connection.execute("SELECT set_config('perdure.tenant', %s, true)", (tenant,))
        for table in ("facts", "inbox", "said"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]
        assert connection.execute("SELECT key FROM meta").fetchall() == [("purged",)]


def test_a_folder_holds_turns_of_one_tenant_alone(opened: Open, tenant: str) -> None:
    opened("one").close()
    with pytest.raises(StoreUnavailableError, match="another tenant"):
        opened("one", store_tenant=f"{tenant} and another")


@pytest.fixture
def databases(server: Server, tenant: str, tmp_path: Path) -> Iterator[list[PostgresDatabase]]:
    (tmp_path / "machine").mkdir()
    made = [PostgresDatabase(server.url, tenant, tmp_path / "machine") for _ in range(2)]
    yield made
    for each in made:
        each.close()


def test_one_leads_until_it_gives_up_or_is_not_heard_of(databases: list[PostgresDatabase]) -> None:
    one, other = (Lease(each, seconds) for each, seconds in zip(databases, (30.0, 0.0), strict=True))
    assert one.take()
    assert not other.take()
    assert one.take()
    one.give_up()
    assert other.take()
    # That one's time is over at once. Who was refused, or gave up, looks again after a third of its own.
    assert not one.take()
    assert Lease(databases[0], 30.0).take()


def test_who_led_before_writes_nothing_more(databases: list[PostgresDatabase]) -> None:
    one, other = Lease(databases[0], 0.0), Lease(databases[1], 30.0)
    assert one.take()
    with one.fenced():
        with databases[0].write() as connection:
            put_meta(connection, "mine", "one")
        assert Context().run(other.take)
        with pytest.raises(StoreBusyError, match="another process"), databases[0].write() as connection:
            put_meta(connection, "mine", "two")
        with pytest.raises(StoreBusyError):
            one.take()
    with databases[1].read() as connection:
        assert run(connection, "SELECT value FROM meta WHERE key = 'mine'") == [("one",)]


def test_who_works_for_the_one_that_leads_is_refused_with_it(databases: list[PostgresDatabase]) -> None:
    leading, worker, other = (Lease(databases[at], seconds) for at, seconds in ((0, 0.0), (0, 30.0), (1, 30.0)))
    assert leading.take()
    with worker.fenced():
        with databases[0].write() as connection:
            put_meta(connection, "mine", "one")
        assert Context().run(other.take)
        with pytest.raises(StoreBusyError, match="another process"), databases[0].write() as connection:
            put_meta(connection, "mine", "two")
    assert not leading.take()
    with pytest.raises(StoreBusyError, match="another process"), leading.fenced():
        pass


def test_own_turns_are_known_for_a_while_as_another_machine_may_hold_them(opened: Open) -> None:
    memory = opened(ack="database")
    memory.turns.after([{"role": "user", "content": FACT}], True, TurnContext(session_id="s1"))
    assert memory.settle()
    store = memory._engine.store
    store.inbox.empty()
    store.prune_finished()
    with store.database.read() as connection:
        assert len(run(connection, "SELECT 1 FROM inbox_done")) == 1


def test_a_turn_that_only_the_database_has_is_taken_in_by_its_own_machine(
    opened: Open, server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_inbox, "PATIENCE", -1.0)
    own = Store(tmp_path / "one", server=Shared(server.url, tenant, acknowledges=True))
    own.acknowledge({
        "at": 1_700_000_000.0, "session": "s1", "cursor": "global\0s1", "tail": "", "scope": "global",
        "host": "python", "turn": None, "messages": [{"role": "user", "text": FACT}],
    })  # fmt: skip
    assert own.orphans() == []  # its inbox has it
    own.close()
    for path in (tmp_path / "one" / "inbox").iterdir():
        path.unlink()
    memory = opened("one")
    assert until(lambda: [fact.text for fact in memory.admin.list()] == [FACT])


def test_nothing_is_written_to_a_store_that_was_moved_away(opened: Open) -> None:
    memory = opened()
    memory.store(FACT)
    with memory._engine.store.database.ending() as connection:
        run(connection, "INSERT INTO meta VALUES (?, ?)", (MOVED, "elsewhere"))
    with pytest.raises(StoreUnavailableError, match="moved to elsewhere"):
        memory.store("The printer is called Otto.")
    assert memory.turns.after([{"role": "user", "content": "My cat is Mia."}], True, TurnContext(session_id="s")) == 1
    assert until(lambda: memory._engine.drain.problem)
    assert [fact.text for fact in memory.admin.list()] == [FACT]


def test_jobs_run_at_one_machine_and_those_of_its_files_at_each(opened: Open) -> None:
    one, other = (opened(name)._engine.timers for name in ("one", "other"))
    assert "prune" in one.run_due()
    assert other.run_due() == []
    clock = ManualClock(4e9)
    one.clock = other.clock = clock
    assert {"files", "prune"} <= set(one.run_due())
    assert other.run_due() == ["files"]


def test_a_folder_with_memories_of_its_own_serves_no_shared_store(opened: Open, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "one", embedder="none", timers=False) as own:
        own.store(FACT)
    with pytest.raises(StoreUnavailableError, match="memories of its own"):
        opened("one")
    with Memory.open(tmp_path / "one", embedder="none", timers=False) as own:
        assert [fact.text for fact in own.admin.list()] == [FACT]
