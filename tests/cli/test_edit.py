"""A memory in an editor."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from perdure.errors import InputError
from tests.cli.calling import call, call_json


@pytest.fixture(autouse=True)
def stored(home: Path) -> str:
    """The id of a memory."""
    return str(call_json("store", "The staging database is called heron.")["facts"][0]["id"])


def use_editor(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    editor = folder / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(editor))


def texts() -> dict[str, str]:
    return {fact["id"]: fact["text"] for fact in call_json("list", "--state", "present")["facts"]}


@pytest.mark.parametrize("which", ["id", "heron"])
def test_new_words_take_the_place_of_the_old(
    stored: str, which: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_editor(monkeypatch, tmp_path, 'sed -i s/heron/egret/ "$1"; touch -d "+5 seconds" "$1"')
    done = call_json("edit", stored if which == "id" else which)
    assert (done["outcome"], done["facts"][0]["text"]) == ("replaced", "The staging database is called egret.")
    assert done["facts"][0]["supersedes_id"] == stored
    assert list(texts().values()) == ["The staging database is called egret."]


@pytest.mark.parametrize("script", ["true", 'touch -d "+5 seconds" "$1"', ': > "$1"; touch -d "+5 seconds" "$1"'])
def test_a_text_that_comes_back_as_it_was_or_empty_changes_nothing(
    stored: str, script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_editor(monkeypatch, tmp_path, script)
    assert "Nothing changed." in call("edit", stored).output
    assert call_json("edit", stored)["outcome"] == "unchanged"
    assert list(texts()) == [stored]


def test_an_editor_that_fails_changes_nothing(stored: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_editor(monkeypatch, tmp_path, 'echo x > "$1"; exit 3')
    with pytest.raises(InputError, match="nothing was changed"):
        call("edit", stored)
    assert list(texts()) == [stored]


def test_without_a_terminal_no_editor_is_guessed(stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    with pytest.raises(InputError, match="set EDITOR"):
        call("edit", stored)


def test_several_are_listed_where_nobody_can_be_asked(
    stored: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_editor(monkeypatch, tmp_path, 'echo changed > "$1"')
    other = call_json("store", "The production database is called stork.")["facts"][0]["id"]
    assert {fact["id"] for fact in call_json("edit", "database", code=1)["facts"]} == {stored, other}
    assert "stork" in call("edit", "database", code=1).output
    assert call_json("edit", "volcano", code=1)["facts"] == []
    assert set(texts()) == {stored, other}


def test_in_a_terminal_one_is_chosen(stored: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    call("store", "The production database is called stork.")
    use_editor(monkeypatch, tmp_path, 'sed -i s/called/named/ "$1"; touch -d "+5 seconds" "$1"')
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    assert "named" in call("edit", "database", stdin="2\n").output
    assert sum("named" in text for text in texts().values()) == 1
