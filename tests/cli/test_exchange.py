"""Export, import and backup on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.cli.calling import call, call_json


@pytest.fixture
def home(home: Path) -> Path:
    store = Store(home)
    with store.write(Author(Channel.LIBRARY)) as tx:
        tx.add(Fact("I like tea.", channel=Channel.USER))
    store.close()
    return home


def test_an_export_goes_into_another_store(home: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "all.jsonl", tmp_path / "other"
    assert call_json("export", file)["facts"] == 1
    assert call_json("import", file, "--home", other, "--dry-run")["added"] == 1
    assert call_json("import", file, "--home", other)["added"] == 1
    assert call_json("import", file, "--home", other)["skipped"] == 1


def test_people_are_told_how_imports_come_up(home: Path, tmp_path: Path) -> None:
    call("export", tmp_path / "all.jsonl")
    assert "--trust" in call("import", tmp_path / "all.jsonl", "--home", tmp_path / "other").output
    assert "--trust" not in call("import", tmp_path / "all.jsonl", "--home", tmp_path / "other", "--trust").output


def test_a_conflict_is_named_and_ends_with_code_1(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    call("export", file)
    file.write_text(file.read_text().replace("tea", "mate"))
    assert "conflict: " in call("import", file, code=1).output
    assert "mate" not in call("import", file, code=1).output


def test_the_daily_export_is_written_and_named_and_read_again(home: Path, tmp_path: Path) -> None:
    path = Path(call_json("export", "--daily")["path"])
    assert path.parent == home / "exports"
    assert [(file["path"], file["kind"]) for file in call_json("backup", "list")["backups"]] == [(str(path), "export")]
    path.unlink()
    assert call("export", "--daily").output.strip() == str(path), (
        "asked for by hand it is written whether needed or not"
    )
    assert call_json("import", path, "--home", tmp_path / "other")["added"] == 1


@pytest.mark.parametrize("words", [(), ("a.jsonl", "--daily"), ("--daily", "--vectors")])
def test_export_wants_a_file_or_daily(home: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="give a FILE"):
        call("export", *words)


def test_backup_list_and_restore(home: Path) -> None:
    path = Path(call_json("backup")["backup"])
    assert [file["path"] for file in call_json("backup", "list")["backups"]] == [str(path)]
    assert path.name in call("backup", "list").output
    assert call_json("backup", "restore", path.name, "--dry-run") == {
        "dry_run": True, "facts": 1, "purged": 0, "kept": None, "vault": False,
    }  # fmt: skip
    done = call_json("backup", "restore", path.name)
    assert done["facts"] == 1
    assert Path(done["kept"]).is_file()
    assert "Previous store: " in call("backup", "restore", path).output


def test_backup_to_a_file_of_ones_own(home: Path, tmp_path: Path) -> None:
    assert "checked" in call("backup", "--to", tmp_path / "mine.db").output
    assert (tmp_path / "mine.db").is_file()
    assert "No backups yet" in call("backup", "list").output


def test_markdown_pages_go_out_and_come_back(home: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    assert call_json("export", pages, "--format", "markdown")["facts"] == 1
    assert call_json("import", pages)["skipped"] == 1
    page = pages / "other.md"
    page.write_text(page.read_text().replace("tea", "mate"))
    assert call_json("import", pages, "--dry-run")["waiting"] == 1
    assert "perdure review" in call("import", pages).output
    [waiting] = call_json("review")["facts"]
    assert (waiting["text"], waiting["beside"]["text"]) == ("I like mate.", "I like tea.")
    assert "2 memories, 3 pages" in call("export", tmp_path / "more", "--format", "markdown").output


@pytest.mark.parametrize("words", [("--format", "markdown", "--journal"), ("--former",)])
def test_options_of_one_form_do_not_go_with_the_other(home: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="--format markdown"):
        call("export", "out", *words)


def test_an_edit_counts_once_it_is_approved(home: Path, tmp_path: Path) -> None:
    call("store", "I like tea and cake.")
    call("export", tmp_path / "pages", "--format", "markdown")
    [page] = [each for each in (tmp_path / "pages").glob("*.md") if "cake" in each.read_text()]
    page.write_text(page.read_text().replace("tea and cake", "tea and pie"))
    call("import", tmp_path / "pages")
    call("review", "approve", call_json("review")["facts"][0]["id"])
    texts = {fact["text"] for fact in call_json("list", "--state", "present")["facts"]}
    assert texts == {"I like tea and pie.", "I like tea."}
