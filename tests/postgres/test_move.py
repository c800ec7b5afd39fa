"""Moving a store to a server and back: nothing is lost, nobody opens the former one, and a killed move goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure import Memory, TurnContext
from perdure.api import moving
from perdure.engine.settings import Settings
from perdure.errors import (
    InputError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StorePurgedError,
    StoreUnavailableError,
)
from perdure.files.shared_log import SEEN
from perdure.maintenance import move as rows
from perdure.maintenance.teardown import purge_tenant
from perdure.store import shared_inbox
from perdure.store.access import opened
from perdure.store.folder import vault_file
from perdure.store.sql import Connection, Row, run
from perdure.store.store import Server as Shared
from perdure.store.store import Store
from tests.cli.calling import call
from tests.postgres.server import Server

pytestmark = pytest.mark.postgres
KEY = "ab" * 32
FACTS = ("The staging database is called heron.", "Anna lives in Brno.", "The deploy key expires on 3 March 2027.")


def _settings(tenant: str, **more: object) -> Settings:
    return Settings.load({"embedder": "hash", "timers": False, "store_tenant": tenant, **more})


def _opened(home: Path, server: Server | None = None, tenant: str = "default") -> Memory:
    shared = {} if server is None else {"store_url": server.url, "store_tenant": tenant}
    return Memory.open(home, embedder="hash", timers=False, **shared)  # type: ignore[arg-type]


def _say(memory: Memory, session: str, *texts: str) -> None:
    memory.turns.after([{"role": "user", "content": text} for text in texts], True, TurnContext(session_id=session))
    assert memory.settle()


def _recorded(home: Path) -> str:
    return "".join(path.read_text() for path in sorted((home / "transcripts").glob("*/*.jsonl")))


def _entry(text: str) -> dict[str, object]:
    return {
        "at": 1_700_000_000.0, "session": "s1", "cursor": "global\0s1", "tail": "", "scope": "global",
        "host": "python", "turn": None, "messages": [{"role": "user", "text": text}],
    }  # fmt: skip


def _filled(home: Path) -> list[tuple[str, str]]:
    with Memory.open(home, embedder="hash", timers=False) as memory:
        memory.ready()
        for text in FACTS:
            memory.store(text)
        memory.store("Anna lives in Oslo.", entity="Anna", key="location", value="Oslo")
        memory.store("Anna lives in Graz.", entity="Anna", key="location", value="Graz")
        memory.turns.after(
            [{"role": "user", "content": "My printer is called Otto."}], True, TurnContext(session_id="s")
        )
        assert memory.settle()
        memory.store("The lamp is called Ada.")  # what is undone later
        return sorted((fact.id, fact.text) for fact in memory.admin.list())


@pytest.mark.parametrize("where", ["home", "elsewhere"])
def test_a_store_is_moved_to_a_server_and_back_with_all_it_holds(
    server: Server, tenant: str, tmp_path: Path, where: str
) -> None:
    home = tmp_path / "home"
    before = _filled(home)
    moved = moving.move(home, server.url, _settings(tenant))
    assert moved.rows["facts"] > len(before) > 3
    assert (moved.conversations, moved.same) == (1, moved.asked)
    with pytest.raises(StoreUnavailableError, match="were moved to postgresql://127"):
        Memory.open(home, embedder="hash", timers=False)
    with Memory.open(home, store_url=server.url, store_tenant=tenant, embedder="hash", timers=False) as memory:
        memory.ready()
        assert sorted((fact.id, fact.text) for fact in memory.admin.list()) == before
        assert memory.admin.verify() == []
        assert memory.recall("What is the staging database called?") is not None
        memory.undo()
        memory.store("The cat is called Mia.")
        after = sorted((fact.id, fact.text) for fact in memory.admin.list())
    vault_file(home).touch(0o600)
    with opened(vault_file(home)) as vault:
        run(vault, "CREATE TABLE sealed (box BLOB)")
    back = moving.move(home, str(tmp_path / where), _settings(tenant, store_url=server.url))
    assert back.same == back.asked
    with pytest.raises(StoreUnavailableError, match="were moved to"):
        Memory.open(home, store_url=server.url, store_tenant=tenant, embedder="hash", timers=False)
    with opened(vault_file(tmp_path / where), looks=True) as vault:
        assert run(vault, "SELECT name FROM sqlite_schema") == [("sealed",)]
    with Memory.open(tmp_path / where, embedder="hash", timers=False) as memory:
        assert sorted((fact.id, fact.text) for fact in memory.admin.list()) == after
        assert memory.admin.verify() == []
        assert memory.files.search("printer Otto").results


def test_a_move_that_was_cut_off_goes_on(
    server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = tmp_path / "home", tmp_path / "folder"
    before = _filled(home)
    monkeypatch.setattr(rows, "BATCH", 2)
    for to, settings in (
        (server.url, _settings(tenant)),
        (str(folder), _settings(tenant, store_url=server.url)),
    ):
        told: list[tuple[int, int]] = []

        def cut(done: int, total: int, told: list[tuple[int, int]] = told) -> None:
            told.append((done, total))
            if len(told) % 7 == 0:
                raise KeyboardInterrupt

        for _ in range(100):
            try:
                moving.move(home, to, settings, progress=cut)
                break
            except KeyboardInterrupt:
                continue
        assert len(told) > 14
        assert [done for done, _ in told] == sorted({done for done, _ in told})
        assert told[-1] == (told[0][1],) * 2
        with _opened(*((home, server, tenant) if to == server.url else (folder,))) as memory:
            assert sorted((fact.id, fact.text) for fact in memory.admin.list()) == before
            assert memory.admin.verify() == []


def test_what_is_in_the_way_is_told_and_nothing_is_changed(server: Server, tenant: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = _filled(home)
    with pytest.raises(InputError, match="password"):
        moving.move(home, server.url.replace("perdure@", "perdure:hunter2@"), _settings(tenant))
    with Memory.open(home, embedder="hash", timers=False), pytest.raises(InputError, match="close it"):
        moving.move(home, server.url, _settings(tenant))
    with Memory.open(tmp_path / "other", store_url=server.url, store_tenant=tenant, embedder="none") as other:
        other.store("The printer is called Otto.")
    with pytest.raises(StoreError):  # another key, as another machine's
        moving.move(home, server.url, _settings(tenant))
    (home / "store.key").write_text("ab" * 32)
    with pytest.raises(InputError, match="key of another store"):
        moving.move(home, server.url, _settings(tenant))
    assert moving.move(home, server.url, _settings(tenant), dry_run=True).rows["facts"] > 3
    with Memory.open(home, embedder="hash", timers=False) as memory:
        assert sorted((fact.id, fact.text) for fact in memory.admin.list()) == before


def test_what_another_machine_recorded_goes_along_into_a_folder(
    server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_STORE_KEY", KEY)
    home = tmp_path / "home"
    _opened(home, server, tenant).close()
    with _opened(tmp_path / "other", server, tenant) as other:
        _say(other, "s", "My printer is called Otto.")
    assert moving.move(home, str(tmp_path / "folder"), _settings(tenant, store_url=server.url)).conversations == 1
    with _opened(tmp_path / "folder") as memory:
        assert memory.files.search("printer Otto").results


def test_conversations_are_after_a_way_there_and_back_as_they_were_left_last(
    server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    with _opened(home) as memory:
        _say(memory, "s", "My printer is called Otto.")
        _say(memory, "unchanged", "My kettle is called Mia.")
        _say(memory, "over", "My lamp is called Ida.")
    moving.move(home, server.url, _settings(tenant))
    monkeypatch.setenv("PERDURE_STORE_KEY", (home / "store.key").read_text())
    with _opened(other, server, tenant) as machine:
        machine._engine.files.pull()
    assert all(name in _recorded(other) for name in ("Otto", "Mia", "Ida"))
    moving.move(home, str(home), _settings(tenant, store_url=server.url))
    with _opened(home) as memory:
        [fact] = [fact for fact in memory.admin.list() if "Otto" in fact.text]
        memory.admin.purge(fact.id)
        _say(memory, "s", "My printer is called Otto.", "My bike is called Emil.")
        [gone] = [path for path in (home / "transcripts").glob("*/*.jsonl") if "Ida" in path.read_text()]
        gone.unlink()
    left = _recorded(home)
    assert "Otto" not in left
    assert moving.move(home, server.url, _settings(tenant)).conversations == 2
    with _opened(home, server, tenant) as memory, _opened(other, server, tenant) as machine:
        for each in (memory, machine):
            each._engine.files.pull()
            text = _recorded(each._engine.store.folder)
            assert [name in text for name in ("Otto", "Mia", "Ida", "Emil")] == [False, True, False, True]


def test_a_folder_that_had_the_conversations_before_loses_those_that_are_gone(
    server: Server, tenant: str, tmp_path: Path
) -> None:
    home, folder = tmp_path / "home", tmp_path / "folder"
    with _opened(folder) as memory:
        _say(memory, "s", "My printer is called Otto.")
        _say(memory, "kept", "My kettle is called Mia.")
    moving.move(folder, server.url, _settings(tenant))
    home.mkdir()
    (home / "store.key").write_text((folder / "store.key").read_text())
    with _opened(home, server, tenant) as memory:
        memory._engine.files.pull()
        [file] = [path for path in (home / "transcripts").glob("*/*.jsonl") if "Mia" in path.read_text()]
        memory._engine.files.log.drop_before(4e9)
        _say(memory, "new", "My bike is called Emil.")
    assert not file.exists()
    moving.move(home, str(folder), _settings(tenant, store_url=server.url))
    assert [name in _recorded(folder) for name in ("Otto", "Mia", "Emil")] == [False, False, True]


def test_a_folder_follows_the_database_that_it_was_moved_to(
    server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_STORE_KEY", KEY)
    home, folder, second = tmp_path / "home", tmp_path / "folder", f"{tenant} 2"
    with _opened(home, server, tenant) as memory:
        for number in range(6):
            _say(memory, "s", *(f"Remark {each} on the greenhouse." for each in range(number + 1)))
    moving.move(home, str(folder), _settings(tenant, store_url=server.url))
    assert not (folder / "transcripts" / SEEN).exists()
    (folder / "transcripts" / SEEN).write_text("99")  # as a folder that was moved before may have it
    moving.move(folder, server.url, _settings(second))
    with _opened(folder, server, second) as memory:
        _say(memory, "s", "My bike is called Emil.")
        assert "Emil" in _recorded(folder)


def test_a_store_that_was_moved_to_is_not_taken_for_one_begun(
    server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_STORE_KEY", KEY)
    home, folder = tmp_path / "home", tmp_path / "folder"
    for each, name in ((home, tenant), (tmp_path / "second", f"{tenant} 2")):
        with _opened(each, server, name) as memory:
            memory.store("Anna lives in Brno.")
    moving.move(home, str(folder), _settings(tenant, store_url=server.url))
    with _opened(folder) as memory:
        memory.store("The staging database is called heron.")
    with pytest.raises(InputError, match="already"):
        moving.move(tmp_path / "second", str(folder), _settings(f"{tenant} 2", store_url=server.url))
    with _opened(folder) as memory:
        assert len(memory.admin.list()) == 2


def test_a_copy_that_is_not_complete_is_opened_by_nobody(server: Server, tenant: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    _filled(home)
    before = _recorded(home)
    with pytest.raises(KeyboardInterrupt):
        moving.move(home, server.url, _settings(tenant), progress=_cut_at(lambda done, total: done == total))
    with pytest.raises(StoreUnavailableError, match="were moved to"):
        _opened(home, server, tenant)
    assert _recorded(home) == before
    moving.move(home, server.url, _settings(tenant))
    with _opened(home, server, tenant) as memory:
        memory._engine.files.pull()
    assert _recorded(home) == before


def _cut_at(holds: Callable[[int, int], bool]) -> rows.Progress:
    def cut(done: int, total: int) -> None:
        if holds(done, total):
            raise KeyboardInterrupt

    return cut


@pytest.mark.parametrize("where", ["this machine", "the database"])
def test_turns_that_wait_are_taken_in_first(
    server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setenv("PERDURE_STORE_KEY", KEY)
    home, settings = tmp_path / "home", _settings(tenant, store_url=server.url)
    _opened(home, server, tenant).close()
    waits = Store(
        home if where == "this machine" else tmp_path / "lost",
        server=Shared(server.url, tenant, acknowledges=where == "the database"),
    )
    waits.acknowledge(_entry(FACTS[0]))
    waits.close()
    with pytest.raises(StoreBusyError, match="1 turn in the inbox must be captured first") as refused:
        moving.move(home, str(tmp_path / "folder"), settings)
    assert not (tmp_path / "folder").exists()
    monkeypatch.setattr(shared_inbox, "PATIENCE", -1.0)
    monkeypatch.setenv("PERDURE_STORE_URL", server.url)
    monkeypatch.setenv("PERDURE_STORE_TENANT", tenant)
    [command] = [part for part in ("jobs run files",) if f"perdure {part}" in str(refused.value)]
    call(*command.split(), "--home", home)
    moving.move(home, str(tmp_path / "folder"), settings)
    monkeypatch.delenv("PERDURE_STORE_URL")
    with _opened(tmp_path / "folder") as memory:
        assert [fact.text for fact in memory.admin.list()] == [FACTS[0]]


def test_a_turn_that_comes_meanwhile_is_not_left_behind(
    server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_STORE_KEY", KEY)
    home, settings = tmp_path / "home", _settings(tenant, store_url=server.url)
    with _opened(home, server, tenant) as memory:
        memory.store(FACTS[1])

    def comes(done: int, total: int) -> None:
        if done == total:
            other = Store(tmp_path / "other", server=Shared(server.url, tenant, acknowledges=True))
            other.acknowledge(_entry(FACTS[0]))
            other.close()

    with pytest.raises(StoreBusyError, match="1 turn in the inbox must be captured first"):
        moving.move(home, str(tmp_path / "folder"), settings, progress=comes)
    with _opened(tmp_path / "other", server, tenant) as memory:
        assert memory.settle()
    moving.move(home, str(tmp_path / "folder"), settings)
    with _opened(tmp_path / "folder") as memory:
        assert sorted(fact.text for fact in memory.admin.list()) == sorted(FACTS[:2])


def _unsealed(connection: Connection) -> list[list[Row]]:
    """Return what changes without a row of the journal."""
    return [
        run(connection, f"SELECT {columns} FROM {table} ORDER BY 1")
        for table, columns in (
            ("receipts", "id, at, body"),
            ("cursors", "session, tail"),
            ("embeddings", "id, identity, state"),
            ("facts", "id, recall_count, injected_count"),
        )
    ]


def test_what_is_not_in_the_journal_is_not_stale_after_a_move_was_cut_off(
    server: Server, tenant: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    _filled(home)
    with pytest.raises(KeyboardInterrupt):
        moving.move(home, server.url, _settings(tenant), progress=_cut_at(lambda done, total: done == total))
    with _opened(home) as memory:
        memory.ready()
        for question in ("What is the staging database called?", "Where does Anna live?", "When does the key expire?"):
            assert memory.recall(question) is not None
        _say(memory, "later", "Thanks!")
        memory._engine.store.note("answer", "42")
    moving.move(home, server.url, _settings(tenant))
    with opened(home / "facts.db", looks=True) as connection:
        before = _unsealed(connection)
    with _opened(home, server, tenant) as memory, memory._engine.store.database.read() as shared:
        assert _unsealed(shared) == before
        assert memory._engine.store.meta("answer") == "42"
    assert len(before[0]) >= 3


def test_a_copy_that_does_not_fit_is_begun_anew(server: Server, tenant: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = _filled(home)
    with pytest.raises(KeyboardInterrupt):
        moving.move(home, server.url, _settings(tenant), progress=_cut_at(lambda done, total: done == total))
    target = Store(home, server=Shared(server.url, tenant, moved=True))
    with target.database.write() as connection:
        run(connection, "DELETE FROM journal WHERE seq = 1")
    target.close()
    with pytest.raises(StoreCorruptError, match="run it again"):
        moving.move(home, server.url, _settings(tenant))
    moving.move(home, server.url, _settings(tenant))
    with _opened(home, server, tenant) as memory:
        assert sorted((fact.id, fact.text) for fact in memory.admin.list()) == before
        assert memory.admin.verify() == []


def test_a_tenant_that_was_purged_is_not_moved_into(server: Server, tenant: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = _filled(home)
    with Memory.open(tmp_path / "other", store_url=server.url, store_tenant=tenant, embedder="none") as other:
        other.store("The printer is called Otto.")
        purge_tenant(other._engine.store)
    with pytest.raises(StorePurgedError, match="choose another store_tenant"):
        moving.move(home, server.url, _settings(tenant))
    with Memory.open(home, embedder="hash", timers=False) as memory:
        assert sorted((fact.id, fact.text) for fact in memory.admin.list()) == before


def test_a_copy_is_opened_by_nobody_before_the_store_was_left(
    server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    before = _filled(home)
    leave, finish = rows.leave, rows.finish

    def looked(*given: Any) -> None:
        with pytest.raises(StoreUnavailableError, match="still being moved"):
            Memory.open(tmp_path / "other", store_url=server.url, store_tenant=tenant, embedder="none", timers=False)
        leave(*given)

    def cut(copy: Store) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rows, "leave", looked)
    monkeypatch.setattr(rows, "finish", cut)
    (tmp_path / "other").mkdir()
    with Memory.open(home, embedder="none", timers=False) as memory:
        (tmp_path / "other" / "store.key").write_text(memory._engine.store.key.hex())
    with pytest.raises(KeyboardInterrupt):
        moving.move(home, server.url, _settings(tenant))
    monkeypatch.setattr(rows, "finish", finish)
    again = moving.move(home, server.url, _settings(tenant))
    assert again.rows["facts"] > len(before) > 3
    assert again.conversations == 1
    with Memory.open(home, store_url=server.url, store_tenant=tenant, embedder="hash", timers=False) as memory:
        assert sorted((fact.id, fact.text) for fact in memory.admin.list()) == before
    with pytest.raises(StoreUnavailableError, match="were moved to"):
        moving.move(home, server.url, _settings(tenant))
