"""A lost truth on the command line: every command names it, and `perdure recover` brings back what is left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.errors import InputError, StoreLostError
from tests.cli.calling import call, call_json
from tests.kit import deleted

FACT = "The staging database is called heron."


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with two memories and an export of them, which is the usual one."""
    os.umask(0o077)
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    with Memory.open() as memory:
        memory.store(FACT)
        memory.store("My cat is called Tom.")
        (home / "exports").mkdir()
        memory.admin.export(home / "exports" / "facts-2026-05-01.jsonl")
    return home


def truncated(home: Path) -> None:
    deleted(home)
    (home / "facts.db").touch()


def older(home: Path) -> None:
    copy = shutil.copy(home / "facts.db", home.parent / "copy.db")
    with Memory.open() as memory:
        memory.store("I live in Graz.")
    deleted(home)
    shutil.move(copy, home / "facts.db")


@pytest.mark.parametrize(("damage", "truth"), [(deleted, "missing"), (truncated, "missing"), (older, "older")])
def test_every_command_names_it(home: Path, damage: Callable[[Path], None], truth: str) -> None:
    damage(home)
    [finding] = call_json("verify", "--fix", code=1)["findings"]
    assert "facts.db is" in finding["what"]
    assert "perdure recover" in finding["hint"]
    assert "perdure recover" in call("verify", code=1).stdout
    wrong = [check for check in call_json("doctor", code=1)["checks"] if not check["ok"]]
    assert [check["name"] for check in wrong] == ["store"]
    assert "perdure recover" in wrong[0]["fix"]
    state = call_json("status", code=1)
    assert (state["truth"], state["inbox"]) == (truth, 0)
    for words in (["list"], ["recall", "Where is staging?"], ["anchor"]):
        with pytest.raises(StoreLostError, match="perdure recover"):
            call(*words)


def test_a_sound_store_says_so(home: Path) -> None:
    assert call_json("status")["truth"] == "sound"
    found = call_json("recover", code=1)
    assert (found["truth"], found["applied"], found["facts"]) == ("sound", False, 2)
    assert "Nothing is missing" in call("recover", code=1).stdout


def test_it_is_shown_and_brought_back(home: Path) -> None:
    deleted(home)
    shown = call("recover").stdout
    assert "exports/facts-2026-05-01.jsonl" in shown
    assert "perdure recover --apply" in shown
    assert not (home / "facts.db").exists()
    done = call_json("recover", "--apply")
    assert (done["applied"], done["total"], done["brought"][0]["brings"]) == (True, 2, 2)
    assert call_json("verify")["sound"]
    with Memory.open() as memory:
        found = memory.recall("Which database is staging?")
        assert found is not None
        assert [item.text for item in found.items] == [FACT]


def test_it_may_be_left_behind(home: Path) -> None:
    deleted(home)
    assert "perdure recover --accept" in call("recover").stdout
    assert call_json("recover", "--accept")["total"] == 0
    assert call_json("verify")["sound"]
    with pytest.raises(InputError, match="--apply"):
        call("recover", "--accept", "--apply")


def test_what_nothing_vouches_for_is_recalled_when_it_is_approved(home: Path) -> None:
    path = home / "exports" / "facts-2026-05-01.jsonl"
    path.write_text(path.read_text().replace('"tags"', '"tags" '))  # no byte of it counts any more
    deleted(home)
    assert "perdure review" in call("recover", "--apply").stdout
    with Memory.open() as memory:
        assert memory.recall("Which database is staging?") is None
        [waiting] = [fact for fact in memory.admin.review() if fact.text == FACT]
        assert waiting.metadata["recovered_from"] == "exports/facts-2026-05-01.jsonl"
        memory.admin.approve(waiting.id)
        assert memory.recall("Which database is staging?") is not None
        memory.undo()
        assert memory.get(waiting.id).channel == "import"
        assert memory.recall("Which database is staging?") is None
    assert "heron" in call("review").stdout


class TestAnchor:
    def test_a_folder_that_went_back_as_a_whole_is_told_by_it(self, home: Path, tmp_path: Path) -> None:
        copy = shutil.copytree(home, tmp_path / "copy")
        kept = tmp_path / "anchors"
        kept.write_text("notes of mine\n" + call("anchor").stdout)
        assert call_json("verify", "--anchor", kept)["sound"]
        with Memory.open() as memory:
            memory.store("I live in Graz.")
        with kept.open("a") as file:
            file.write(call_json("anchor")["anchor"] + "\n")
        assert call_json("verify", "--anchor", kept)["sound"]
        shutil.rmtree(home)
        shutil.move(copy, home)
        assert call_json("verify")["sound"]  # nothing in the folder can tell
        [finding] = call_json("verify", "--fix", "--anchor", kept, code=1)["findings"]
        assert finding["what"] == "facts.db is older than an anchor"

    def test_of_another_store_is_told(self, home: Path, tmp_path: Path) -> None:
        with Memory.open(tmp_path / "other") as memory:
            memory.store("Something else.")
        kept = tmp_path / "anchors"
        kept.write_text(call("anchor", "--home", tmp_path / "other").stdout)
        [finding] = call_json("verify", "--anchor", kept, code=1)["findings"]
        assert finding["what"] == "anchor is from another store"

    def test_a_file_without_one_is_refused(self, home: Path, tmp_path: Path) -> None:
        (tmp_path / "notes").write_text("nothing of the kind")
        with pytest.raises(InputError, match="perdure anchor"):
            call("verify", "--anchor", tmp_path / "notes")
