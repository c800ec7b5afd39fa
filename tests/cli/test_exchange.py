"""Export, import and backup on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from perdure.cli.backup import backup
from perdure.cli.exchange import export, import_
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.store import Store
from perdure.store.transaction import Author


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    store = Store(folder)
    with store.write(Author(Channel.LIBRARY)) as tx:
        tx.add(Fact("I like tea.", channel=Channel.USER))
    store.close()
    monkeypatch.setenv("PERDURE_HOME", str(folder))
    return folder


def call(command: Any, *words: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(command, [str(word) for word in words], standalone_mode=False, catch_exceptions=False)
    assert result.return_value == code
    return result.output


def as_json(command: Any, *words: str | Path, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call(command, *words, "--json", code=code))
    return found


def test_an_export_goes_into_another_store(home: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "all.jsonl", tmp_path / "other"
    assert as_json(export, file)["facts"] == 1
    assert as_json(import_, file, "--home", other, "--dry-run")["added"] == 1
    assert as_json(import_, file, "--home", other)["added"] == 1
    assert as_json(import_, file, "--home", other)["skipped"] == 1


def test_people_are_told_how_imports_come_up(home: Path, tmp_path: Path) -> None:
    call(export, tmp_path / "all.jsonl")
    assert "--trust" in call(import_, tmp_path / "all.jsonl", "--home", tmp_path / "other")
    assert "--trust" not in call(import_, tmp_path / "all.jsonl", "--home", tmp_path / "other", "--trust")


def test_a_conflict_is_named_and_ends_with_code_1(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    call(export, file)
    file.write_text(file.read_text().replace("tea", "mate"))
    assert "in conflict: " in call(import_, file, code=1)
    assert "mate" not in call(import_, file, code=1)


def test_the_daily_export_is_written_and_named_and_read_again(home: Path, tmp_path: Path) -> None:
    path = Path(as_json(export, "--daily")["path"])
    assert path.parent == home / "exports"
    assert [(file["path"], file["kind"]) for file in as_json(backup, "list")["backups"]] == [(str(path), "export")]
    path.unlink()
    assert call(export, "--daily").strip() == str(path), "asked for by hand it is written whether needed or not"
    assert as_json(import_, path, "--home", tmp_path / "other")["added"] == 1


@pytest.mark.parametrize("words", [(), ("a.jsonl", "--daily"), ("--daily", "--vectors")])
def test_export_wants_a_file_or_daily(home: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="give a FILE"):
        CliRunner().invoke(export, words, standalone_mode=False, catch_exceptions=False)


def test_backup_list_and_restore(home: Path) -> None:
    path = Path(as_json(backup)["backup"])
    assert [file["path"] for file in as_json(backup, "list")["backups"]] == [str(path)]
    assert path.name in call(backup, "list")
    assert as_json(backup, "restore", path.name, "--dry-run") == {
        "dry_run": True, "facts": 1, "purged": 0, "kept": None, "vault": False,
    }  # fmt: skip
    done = as_json(backup, "restore", path.name)
    assert done["facts"] == 1
    assert Path(done["kept"]).is_file()
    assert "kept" in call(backup, "restore", path)


def test_backup_to_a_file_of_ones_own(home: Path, tmp_path: Path) -> None:
    assert "checked" in call(backup, "--to", tmp_path / "mine.db")
    assert (tmp_path / "mine.db").is_file()
    assert "no backups yet" in call(backup, "list")
