"""What is purged on one machine: what the server has of it, and what lies in the folders of the others."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
import pytest

from perdure import Memory, TurnContext
from perdure.api import moving
from perdure.engine.file_memory import files_options
from perdure.engine.settings import Settings
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.maintenance import remote_purges as elsewhere
from perdure.maintenance.backup import backup
from perdure.maintenance.exports import daily_export, newest_export
from perdure.maintenance.purge import CERTIFIED, certify, purge, purges
from perdure.maintenance.scrub import find, scrub
from perdure.store import shared_inbox
from perdure.store.fact import Fact
from perdure.store.sql import run
from perdure.store.store import Server as Shared
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.cli.calling import call
from tests.postgres.server import Server

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("same_key")]
Open = Callable[..., Memory]
AUTHOR = Author(Channel.LIBRARY, "test")
FACT = "My neighbour Xylophilus Quagmire owes me seven hundred crowns."
OTHER = "The printer is called Otto."
SECRET = "sk-proj-aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz"
TRACES = ("Quagmire", "quagmire", "quagmir")


def _left(server: Server, tenant: str) -> list[str]:
    """Return the tables in which a row of the tenant still has a trace."""
    with psycopg.connect(server.url) as connection:
        connection.execute("SELECT set_config('perdure.tenant', %s, true)", (tenant,))
        names = connection.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'"
            " WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
        ).fetchall()
        pattern = f"({'|'.join(TRACES)})"
        return [
            name
            for (name,) in names
            if connection.execute(f"SELECT 1 FROM {name} t WHERE t::text ~ %s LIMIT 1", (pattern,)).fetchall()
        ]


def _holding(folder: Path) -> list[str]:
    """Return the files of a folder in which there is a trace."""
    files = (path for path in folder.rglob("*") if path.is_file())
    found = (path for path in files if any(trace.encode() in path.read_bytes() for trace in TRACES))
    return sorted(path.relative_to(folder).as_posix() for path in found)


def _entry(text: str) -> dict[str, object]:
    return {
        "at": 1_700_000_000.0, "session": "s1", "cursor": "global\0s1", "tail": "", "scope": "global",
        "host": "python", "turn": None, "messages": [{"role": "user", "text": text}],
    }  # fmt: skip


def _follow(memory: Memory) -> bool:
    engine = memory._engine
    return elsewhere.follow(engine.store, files_options(engine.settings))


def test_a_turn_that_waits_in_the_database_loses_what_is_purged(
    opened: Open, server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = opened()
    stored = one.store(FACT)
    away = Store(tmp_path / "away", server=Shared(server.url, tenant, acknowledges=True))
    away.acknowledge(_entry(f"{OTHER} {FACT}"))
    away.park("parked", "ValueError", json.dumps(_entry(f"{FACT} \ud800")))
    away.close()
    assert {"inbox", "inbox_parked"} <= set(_left(server, tenant))
    done = one.admin.purge(stored.id)
    assert (done.state, _left(server, tenant)) == (CERTIFIED, [])
    # What else was said in the turn is taken in all the same.
    monkeypatch.setattr(shared_inbox, "PATIENCE", -1.0)
    one._engine.drain.recover()
    assert [fact.text for fact in one.admin.list()] == [OTHER]


def test_what_comes_in_beside_a_purge_is_gone_before_it_is_certified(opened: Open, server: Server, tenant: str) -> None:
    one = opened()
    store = one._engine.store
    purge(store, [one.store(FACT).id], AUTHOR)
    with store.database.beside() as connection:
        shared_inbox.put(connection, {"id": "late:1", **_entry(FACT)}, "late", 1_700_000_000.0)
    assert _left(server, tenant) == ["inbox"]
    [done] = certify(store)
    assert (done.state, _left(server, tenant)) == (CERTIFIED, [])


def test_a_secret_leaves_the_turns_that_wait_in_the_database(opened: Open, server: Server, tenant: str) -> None:
    one = opened()
    store = one._engine.store
    with store.database.beside() as connection:
        shared_inbox.put(connection, {"id": "late:1", **_entry(f"Write to {SECRET}")}, "late", 1_700_000_000.0)
    found = find(store)
    assert found.waiting == ("late:1",)
    assert scrub(store, found, AUTHOR) is not None
    with store.database.read() as connection:
        [(entry,)] = run(connection, "SELECT entry FROM inbox")
    assert SECRET not in entry
    assert "Write to" in entry
    assert not find(store)


def test_a_certificate_tells_what_nobody_has_searched(opened: Open) -> None:
    one = opened()
    done = one.admin.purge(one.store(FACT).id)
    assert done.state == CERTIFIED
    assert any("log" in each and "backups" in each for each in done.beyond)
    assert any("other machines" in each for each in done.beyond)
    assert purges(one._engine.store)[0].beyond == done.beyond


def test_another_machine_takes_it_out_of_its_exports_and_conversations(opened: Open) -> None:
    one, other = opened("one"), opened("other")
    one.turns.after([{"role": "user", "content": f"{OTHER} {FACT}"}], True, TurnContext(session_id="s1"))
    assert one.settle()
    there = other._engine
    there.files.pull()
    assert other.files.search("Quagmire crowns").results
    assert there.keeper.settle(60.0)
    path = daily_export(there.store)
    assert path is not None
    folder = there.store.folder
    assert {"exports/" + path.name} < set(_holding(folder))
    [wanted] = [fact for fact in one.admin.list() if "Quagmire" in fact.text]
    one.admin.purge(wanted.id)
    assert _follow(other)
    assert _holding(folder) == []
    assert not _follow(other)
    made = newest_export(there.store)
    assert made is not None
    assert (made.path, made.intact, OTHER in made.path.read_text()) == (path, True, True)
    assert other.files.search("printer Otto").results


def test_what_carried_the_text_and_is_pruned_leaves_the_exports_as_well(opened: Open) -> None:
    one, other = opened("one"), opened("other")
    with one._engine.store.write(AUTHOR) as tx:
        carrier, wanted, kept = (tx.add(Fact(text)) for text in (f"He said: {FACT}", FACT, OTHER))
    path = daily_export(other._engine.store)
    assert path is not None
    with one._engine.store.write(AUTHOR) as tx:
        tx.remove(carrier.id, "prune")
    one.admin.purge(wanted.id)
    assert _follow(other)
    facts = [line for line in map(json.loads, path.read_text().splitlines()) if line["type"] == "fact"]
    assert [line["id"] for line in facts] == [kept.id]


def test_a_machine_with_several_programs_waits_until_it_is_alone(opened: Open) -> None:
    one, other = opened("one"), opened("other")
    stored = one.store(FACT)
    assert daily_export(other._engine.store) is not None
    beside = Store(other._engine.store.folder, server=other._engine.store.server)
    one.admin.purge(stored.id)
    assert not _follow(other)
    beside.close()
    assert _follow(other)
    assert _holding(other._engine.store.folder) == []


def test_two_threads_do_not_take_each_other_for_another_program(opened: Open) -> None:
    one, other = opened("one"), opened("other")
    stored, ended = one.store(FACT), threading.Event()

    def follow() -> None:
        while not ended.is_set():
            _follow(one)

    other.admin.purge(other.store(OTHER).id)
    thread = threading.Thread(target=follow)
    thread.start()
    try:
        assert one.admin.purge(stored.id).state == CERTIFIED
    finally:
        ended.set()
        thread.join()


def test_who_has_certified_a_purge_has_nothing_left_to_do(opened: Open) -> None:
    one = opened("one")
    one.admin.purge(one.store(FACT).id)
    assert not _follow(one)
    # Of two machines that purge, each cleans up behind the other.
    other = opened("other")
    other.admin.purge(other.store("Another neighbour, Quagmire, has a dog.").id)
    assert [_follow(each) for each in (one, other)] == [True, True]
    assert [_follow(each) for each in (one, other)] == [False, False]


def test_a_store_in_a_folder_has_no_other_machines(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", embedder="none", timers=False) as memory:
        memory.admin.purge(memory.store(FACT).id)
        assert not _follow(memory)
        assert not (tmp_path / "home" / elsewhere.FILE).exists()


def test_a_store_that_was_moved_is_named_and_holds_up_no_certificate(
    server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERDURE_STORE_KEY")  # the store brings its own
    home = tmp_path / "home"
    with Memory.open(home, embedder="none", timers=False) as memory:
        wanted = memory.store(FACT)
    moving.move(home, server.url, Settings.load({"embedder": "none", "timers": False, "store_tenant": tenant}))
    with Memory.open(home, store_url=server.url, store_tenant=tenant, embedder="none", timers=False) as memory:
        done = memory.admin.purge(wanted.id)
    assert (done.state, dict(done.kept)) == (CERTIFIED, {
        "facts.db": "a store that is no longer in use"
    })  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("backup", "restore", "facts.db"), ("backup", "restore", "facts.db", "--dry-run"),
        ("recover",), ("recover", "--apply"), ("recover", "--accept"),
    ],
)  # fmt: skip
def test_what_acts_on_a_folder_is_refused_while_the_memories_are_on_a_server(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Sequence[str]
) -> None:
    home = tmp_path / "home"
    with Memory.open(home, embedder="none", timers=False) as memory:
        memory.store(OTHER)
        backup(memory._engine.store, tmp_path / "facts.db")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERDURE_HOME", str(home))
    monkeypatch.setenv("PERDURE_STORE_URL", server.url)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=r"PostgreSQL.*backup.*perdure move"):
        call(*words)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
