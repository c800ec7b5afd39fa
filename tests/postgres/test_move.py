"""Moving a store to a server and back: nothing is lost, nobody opens the former one, and a killed move goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import Memory, TurnContext
from perdure.api import moving
from perdure.care import move as rows
from perdure.engine.settings import Settings
from perdure.errors import InputError, StoreError, StoreUnavailableError
from perdure.store.access import opened
from perdure.store.sql import run
from perdure.vault.vault import vault_file
from tests.postgres.server import Server

pytestmark = pytest.mark.postgres
FACTS = ("The staging database is called heron.", "Anna lives in Brno.", "The deploy key expires on 3 March 2027.")


def _settings(tenant: str, **more: object) -> Settings:
    return Settings.load({"embedder": "hash", "timers": False, "store_tenant": tenant, **more})


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
    home = tmp_path / "home"
    before = _filled(home)
    monkeypatch.setattr(rows, "BATCH", 2)
    told = []

    def cut(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) % 7 == 0:
            raise KeyboardInterrupt

    for _ in range(100):
        try:
            moving.move(home, server.url, _settings(tenant), progress=cut)
            break
        except KeyboardInterrupt:
            continue
    assert len(told) > 14
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[-1] == (told[0][1],) * 2
    with Memory.open(home, store_url=server.url, store_tenant=tenant, embedder="hash", timers=False) as memory:
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
