"""Purging a tenant: folders lose what they have of it, and nothing else; a purge that was cut off is finished."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from perdure import Memory, TurnContext
from perdure.api import moving
from perdure.cli.main import cli
from perdure.engine.settings import Settings
from perdure.engine.store_opening import open_store, open_tenant
from perdure.errors import InputError, StorePurgedError, StoreUnavailableError
from perdure.maintenance.backup import backup
from perdure.maintenance.teardown import purge_tenant
from perdure.store.folder import vault_file
from perdure.store.inbox import waiting_in
from perdure.store.store import Server as Shared
from perdure.store.store import Store
from tests.postgres.server import Server

pytestmark = pytest.mark.postgres
FACT = "The staging database is called heron."
MINE = "Anna lives in Brno."
TURN = {
    "at": 1_700_000_000.0, "session": "s1", "cursor": "global\0s1", "tail": "", "scope": "global",
    "host": "python", "turn": None, "messages": [{"role": "user", "text": FACT}],
}  # fmt: skip
Purge = Callable[..., Result]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting beside those of a test, and no model."""
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    monkeypatch.setenv("PERDURE_TIMERS", "false")
    monkeypatch.setenv("PERDURE_STORE_KEY", "ab" * 32)


@pytest.fixture
def as_tenant(monkeypatch: pytest.MonkeyPatch, server: Server, tenant: str) -> Callable[..., None]:
    """Return what has the environment name the tenant, or another one."""

    def named(suffix: str = "") -> None:
        monkeypatch.setenv("PERDURE_STORE_URL", server.url)
        monkeypatch.setenv("PERDURE_STORE_TENANT", tenant + suffix)

    return named


@pytest.fixture
def run_purge() -> Purge:
    """Return what runs `perdure purge --tenant` over a folder."""

    def run(folder: Path, *options: str) -> Result:
        return CliRunner().invoke(cli, ["purge", "--tenant", "--home", str(folder), *options])

    return run


def _local(folder: Path) -> None:
    """Make a store in a folder, with all that such a folder may hold."""
    with Memory.open(folder) as memory:
        memory.store(MINE)
        memory.turns.after([{"role": "user", "content": "My cat is called Mia."}], True, TurnContext(session_id="s"))
        assert memory.settle()
        backup(memory._engine.store)
    (folder / "exports").mkdir(exist_ok=True)
    (folder / "exports" / "facts-2026-01-01.jsonl").write_text("{}\n")
    vault_file(folder).touch(0o600)


def _talk(folder: Path, session: str = "s1") -> None:
    with Memory.open(folder) as memory:
        memory.turns.after([{"role": "user", "content": FACT}], True, TurnContext(session_id=session))
        assert memory.settle()


def _texts(folder: Path) -> list[str]:
    with Memory.open(folder) as memory:
        return sorted(fact.text for fact in memory.admin.list())


def _files(folder: Path) -> set[str]:
    """Return what lies in a folder, but for locks and what an opening leaves."""
    passing = ("store.key", "machine", "facts.db-wal", "facts.db-shm")
    return {
        path.relative_to(folder).as_posix() for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".lock" and path.name not in passing
    }  # fmt: skip


def _purged(folder: Path) -> None:
    """Purge the tenant from another machine."""
    with Memory.open(folder) as memory:
        purge_tenant(memory._engine.store)


def test_a_store_of_ones_own_loses_nothing_to_a_tenant_that_was_purged(
    as_tenant: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    _local(mine)
    before, texts = _files(mine), _texts(mine)
    assert {"facts.db", "vault.db", "remembered.json"} < before
    as_tenant()
    _purged(tmp_path / "other")
    with pytest.raises(StorePurgedError):
        Memory.open(mine)
    with pytest.raises(StorePurgedError):
        open_store(mine)
    assert _files(mine) == before
    monkeypatch.delenv("PERDURE_STORE_URL")
    assert _texts(mine) == texts


def test_a_mistyped_tenant_costs_a_machine_none_of_its_turns(
    as_tenant: Callable[..., None], server: Server, tenant: str, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    store = Store(mine, server=Shared(server.url, f"{tenant}-mine"))
    store.acknowledge(TURN)
    store.close()
    as_tenant()
    _purged(tmp_path / "other")
    with pytest.raises(StorePurgedError):
        Memory.open(mine)
    assert waiting_in(mine / "inbox") == 1
    as_tenant("-mine")
    with Memory.open(mine) as memory:
        assert memory.settle()
    assert _texts(mine) == [FACT]


def test_who_has_another_key_loses_nothing(
    as_tenant: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    as_tenant()
    _talk(mine)
    before = _files(mine)
    _purged(tmp_path / "other")
    monkeypatch.setenv("PERDURE_STORE_KEY", "cd" * 32)
    with pytest.raises(StorePurgedError):
        Memory.open(mine)
    assert _files(mine) == before


def test_the_folder_of_another_machine_loses_what_comes_from_the_tenant_alone(
    as_tenant: Callable[..., None], server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    monkeypatch.delenv("PERDURE_STORE_KEY")
    _local(mine)
    moving.move(mine, server.url, Settings.load({"store_tenant": tenant}))
    as_tenant()
    _talk(mine)
    waits = Store(mine, server=Shared(server.url, tenant))
    waits.acknowledge(TURN)
    waits.close()
    assert list(mine.glob("transcripts/*/*.jsonl"))
    assert waiting_in(mine / "inbox")
    other = tmp_path / "other"
    other.mkdir()
    (other / "store.key").write_bytes((mine / "store.key").read_bytes())
    _purged(other)
    with pytest.raises(StorePurgedError):
        Memory.open(mine)
    assert not [path for path in _files(mine) if path.startswith(("transcripts", "inbox", "index-"))]
    assert {"facts.db", "vault.db", "exports/facts-2026-01-01.jsonl"} <= _files(mine)
    assert list(mine.glob("backups/facts-*.db"))


def test_the_purge_itself_reaches_what_was_moved_to_the_tenant_and_names_it(
    as_tenant: Callable[..., None], server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    run_purge: Purge,
) -> None:  # fmt: skip
    mine = tmp_path / "mine"
    monkeypatch.delenv("PERDURE_STORE_KEY")
    _local(mine)
    moving.move(mine, server.url, Settings.load({"store_tenant": tenant}))
    as_tenant()
    would = json.loads(run_purge(mine, "--dry-run", "--json").stdout)
    assert {"facts.db", "backups", "exports", "transcripts"} <= set(would["would_remove_files"])
    assert would["would_remove_memories"]
    assert (mine / "facts.db").exists()
    ended = run_purge(mine, "--yes", "--json")
    assert ended.exit_code == 0
    done = json.loads(ended.stdout)
    assert set(done["files"]) == set(would["would_remove_files"])
    assert (done["stays"], done["left"]) == (would["would_stay"], 0) == (["vault.db"], 0)
    assert _files(mine) == {"vault.db"}


def test_a_folder_that_holds_a_store_of_its_own_as_well_keeps_that(
    as_tenant: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    as_tenant()
    _talk(mine, "of the tenant")
    monkeypatch.delenv("PERDURE_STORE_URL")
    _local(mine)
    texts, before = _texts(mine), _files(mine)
    as_tenant()
    with closing(open_tenant(tmp_path / "another")) as store:
        purge_tenant(store)
    with pytest.raises(StorePurgedError):
        Memory.open(mine)
    assert before <= _files(mine)
    monkeypatch.delenv("PERDURE_STORE_URL")
    assert _texts(mine) == texts


@pytest.mark.parametrize("folder", ["mine", "another"])
def test_a_purge_that_was_cut_off_is_finished_and_certified(
    as_tenant: Callable[..., None], tmp_path: Path, run_purge: Purge, folder: str
) -> None:
    as_tenant()
    _talk(tmp_path / "mine")
    _talk(tmp_path / folder)
    with Memory.open(tmp_path / "mine") as memory:
        memory._engine.keeper.close()
        memory._engine.store.database.erase(1_700_000_000.0)  # and then the power went
    home = tmp_path / folder
    for _ in range(2):
        would = run_purge(home, "--dry-run")
        assert (would.exit_code, "Purged on 2023-11-14" in would.output) == (0, True)
    assert list(home.glob("transcripts/*/*.jsonl"))
    ended = run_purge(home, "--yes", "--json")
    assert ended.exit_code == 0
    done = json.loads(ended.stdout)
    assert (done["at"], done["rows"], done["left"], len(done["certificate"])) == (1_700_000_000.0, {}, 0, 32)
    assert "transcripts" in done["files"]
    assert not list(home.glob("transcripts"))
    again = run_purge(home, "--yes")
    assert (again.exit_code, "Certificate: " in again.output) == (0, True)


def test_a_folder_of_another_tenant_purges_none(
    as_tenant: Callable[..., None], tmp_path: Path, run_purge: Purge
) -> None:
    as_tenant("-mine")
    _talk(tmp_path / "mine")
    as_tenant()
    _purged(tmp_path / "other")
    before = _files(tmp_path / "mine")
    assert isinstance(run_purge(tmp_path / "mine", "--yes").exception, StoreUnavailableError)
    assert _files(tmp_path / "mine") == before


def test_a_folder_whose_machine_cannot_be_read_is_nobodys(as_tenant: Callable[..., None], tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    as_tenant()
    _talk(mine)
    (mine / "machine").write_bytes(b"\xff\xfe")
    before = _files(mine)
    with pytest.raises(StoreUnavailableError, match="another tenant"):
        Memory.open(mine)
    _purged(tmp_path / "other")
    with pytest.raises(StorePurgedError):
        Memory.open(mine)
    assert _files(mine) == before


def test_a_store_in_a_folder_has_no_tenant_to_purge(tmp_path: Path, run_purge: Purge) -> None:
    _local(tmp_path / "mine")
    before = _files(tmp_path / "mine")
    assert isinstance(run_purge(tmp_path / "mine", "--yes").exception, InputError)
    assert _files(tmp_path / "mine") == before
