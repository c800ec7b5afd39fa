"""`perdure doctor`: it finds what is wrong, and names the fix."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from perdure.cli.doctor import doctor
from perdure.plugin.memory import Memory
from perdure.plugin.paths import record_home
from perdure.store.database import run
from perdure.store.store import Store

Break = Callable[[Path, pytest.MonkeyPatch], None]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sound store, which is the usual one."""
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PERDURE_EMBEDDER", "hash")
    with Memory.open() as memory:
        memory.ready()
        memory.store("The staging database is called heron.")
    return tmp_path / "home"


def examined(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the command; return its exit code and what it printed."""
    result = CliRunner().invoke(doctor, [*arguments, "--json"], standalone_mode=False, catch_exceptions=False)
    return int(result.return_value), json.loads(result.stdout)


def test_a_sound_installation_is_healthy(home: Path) -> None:
    code, report = examined()
    assert (code, report["healthy"]) == (0, True)
    assert {check["name"] for check in report["checks"]} == {
        "settings", "host", "store", "model", "sqlite", "permissions", "queues", "index", "drift", "files",
        "jobs", "extensions",
    }  # fmt: skip
    assert all(check["ok"] and check["state"] and not check["fix"] for check in report["checks"])


def test_a_folder_without_a_store_is_no_fault_and_stays_as_it_is(tmp_path: Path) -> None:
    code, report = examined("--home", str(tmp_path / "none"))
    assert (code, report["healthy"]) == (0, True)
    assert not (tmp_path / "none").exists()


def unknown_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_AUTO_RECAL", "true")


def missing_model(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_EMBEDDER", "auto")
    monkeypatch.setenv("PERDURE_MODEL_PATH", str(home / "no.onnx"))


def open_to_others(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "backups").mkdir(exist_ok=True)
    (home / "backups" / "old.db").write_text("")
    (home / "backups" / "old.db").chmod(0o644)


def failed_index(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(home)
    with store.database.write() as connection:
        run(connection, "UPDATE outbox SET parked = 'ValueError'")
    store.close()


def missing_host(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_home("openclaw", home / "gone")


def other_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.parent / "other").mkdir()
    record_home("openclaw", home.parent / "other")


def unreadable_record(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_home("openclaw", home).write_text("{")


def missing_workspace(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.parent / "notes.txt").write_text("no Markdown")
    monkeypatch.setenv("PERDURE_EXTRA_PATHS", str(home.parent / "notes.txt"))


def damaged_store(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "facts.db").write_bytes(b"no database" * 1000)
    for log in ("facts.db-wal", "facts.db-shm"):
        (home / log).unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("broken", "where", "fix"),
    [
        (unknown_setting, "settings", "docs/settings.md"),
        (missing_model, "model", "perdure model"),
        pytest.param(
            open_to_others, "permissions", "verify --fix", marks=pytest.mark.skipif(os.name != "posix", reason="modes")
        ),
        (failed_index, "queues", "perdure verify --fix"),
        (missing_host, "host", "install"),
        (other_folder, "host", "PERDURE_HOME"),
        (unreadable_record, "host", "delete"),
        (missing_workspace, "store", "message"),
        (damaged_store, "store", "verify"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch, broken: Break, where: str, fix: str
) -> None:
    broken(home, monkeypatch)
    code, report = examined()
    assert (code, report["healthy"]) == (1, False)
    wrong = {check["name"]: check["fix"] for check in report["checks"] if not check["ok"]}
    assert fix in wrong[where]
    # An unknown setting keeps the store from opening, and nothing else has a second fault.
    assert wrong.keys() <= {where, "store"}


def test_people_read_a_table_and_what_to_do(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing_host(home, monkeypatch)
    result = CliRunner().invoke(doctor, [], standalone_mode=False, catch_exceptions=False)
    assert result.return_value == 1
    assert "WRONG\thost" in result.stdout
    assert "host: install into the host again" in result.stdout
    assert "ok\tmodel" in result.stdout
