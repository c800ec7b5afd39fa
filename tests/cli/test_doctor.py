"""`perdure doctor`: it finds what is wrong, and names the fix."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.engine.paths import record_home
from perdure.maintenance.exports import daily_export
from perdure.store import notices, outbox
from perdure.store.outbox import IndexState
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.telemetry import VARIABLE
from tests.cli.calling import call, call_json

Break = Callable[[Path, pytest.MonkeyPatch], None]
LATE = """
import sys, types

sys.modules["onnxruntime"] = types.ModuleType("onnxruntime")  # a host has imported it
from perdure import Memory

with Memory.open() as memory:
    memory.settle()
"""


@pytest.fixture
def home(home: Path) -> Path:
    """A sound store, which is the usual one."""
    with Memory.open() as memory:
        memory.ready()
        memory.store("The staging database is called heron.")
    return home


def test_a_sound_installation_is_healthy(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Hosts of the person who runs the tests are none of their business.
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    report = call_json("doctor")
    assert report["healthy"]
    assert {check["name"] for check in report["checks"]} == {
        "settings", "host", "store", "model", "sqlite", "permissions", "queues", "telemetry", "index", "drift", "files",
        "jobs", "export", "extensions",
    }  # fmt: skip
    assert all(check["ok"] and check["state"] and not check["fix"] for check in report["checks"])


def test_a_folder_without_a_store_is_no_fault_and_stays_as_it_is(elsewhere: Path) -> None:
    assert call_json("doctor", "--home", elsewhere)["healthy"]
    assert not elsewhere.exists()


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
        outbox.put_index_state(connection, "a space", IndexState())
        run(connection, "INSERT INTO outbox (fact_id, queued_at, parked) VALUES ('x', 0, 'ValueError')")
    store.close()


def missing_host(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_home("openclaw", home / "gone")


def other_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.parent / "other").mkdir()
    record_home("openclaw", home.parent / "other")


def unreadable_record(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_home("openclaw", home).write_text("{")


def reporting_host(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.delenv(VARIABLE)
        done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True, timeout=60)
    assert "set ORT_DISABLE_TELEMETRY=1 where this program is started" in done.stderr


def missing_workspace(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.parent / "notes.txt").write_text("no Markdown")
    monkeypatch.setenv("PERDURE_EXTRA_PATHS", str(home.parent / "notes.txt"))


def changed_export(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(home)
    path = daily_export(store)
    store.close()
    assert path is not None
    path.write_bytes(path.read_bytes().replace(b'"facts": ', b'"facts": 1'))


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
        (changed_export, "export", "perdure export --daily"),
        (failed_index, "queues", "perdure verify --fix"),
        (missing_host, "host", "connect"),
        (other_folder, "host", "PERDURE_HOME"),
        (unreadable_record, "host", "delete"),
        (reporting_host, "telemetry", "ORT_DISABLE_TELEMETRY=1"),
        (missing_workspace, "store", "follow the instructions"),
        (damaged_store, "store", "perdure recover"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch, broken: Break, where: str, fix: str
) -> None:
    broken(home, monkeypatch)
    report = call_json("doctor", code=1)
    assert not report["healthy"]
    wrong = {check["name"]: check["fix"] for check in report["checks"] if not check["ok"]}
    assert fix in wrong[where]
    # An unknown setting keeps the store from opening, and nothing else has a second fault.
    assert wrong.keys() <= {where, "store"}


def test_a_program_that_reported_is_told_of_for_a_day(home: Path) -> None:
    store = Store(home, clock=ManualClock(time.time() - 90_000))
    notices.tell_reporting(store)
    store.close()
    call("doctor")


def test_who_wants_reports_is_told_that_there_are_some(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    report = call_json("doctor")
    [state] = [check["state"] for check in report["checks"] if check["name"] == "telemetry"]
    assert state == "ONNX Runtime sends telemetry, as ORT_DISABLE_TELEMETRY=0 requests"


def test_people_read_a_table_and_what_to_do(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing_host(home, monkeypatch)
    result = call("doctor", code=1)
    assert "PROBLEM\thost" in result.stdout
    assert "host: connect the host again" in result.stdout
    assert "ok\tmodel" in result.stdout


def test_what_no_named_user_sees_is_counted_once_there_are_named_users(home: Path) -> None:
    def users() -> dict[str, Any] | None:
        report = call_json("doctor")
        assert report["healthy"]
        return next((check for check in report["checks"] if check["name"] == "users"), None)

    with Memory.open(agent="main") as memory:
        memory.store("The pier is wet.")
        memory.store("The printer is on the left.", scope="agent:main user:*")
    assert users() is None
    with Memory.open(agent="main", user="eva") as memory:
        memory.store("The harbour is closed.")
        memory.settle()
    found = users()
    assert found is not None
    assert "1 memory in agent:main" in found["state"]
    assert "perdure assign" in found["state"]
    with Memory.open() as memory:
        memory.admin.assign("agent:main", "user:eva")
    assert users() is None


def test_a_named_user_who_only_asked_is_one_too(home: Path) -> None:
    with Memory.open(agent="main") as memory:
        memory.store("The pier is wet.")
    with Memory.open(agent="main", user="eva") as memory:
        memory.recall("Is the pier wet?")
        memory.settle()
    report = call_json("doctor")
    assert any(check["name"] == "users" for check in report["checks"])
