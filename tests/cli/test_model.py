"""`perdure model`: seen from the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import pytest

from perdure.api.memory import Memory
from perdure.cli.model import model
from perdure.errors import ModelError, NotFoundError, SettingsError
from perdure.index import shadow
from perdure.store.store import Store
from tests.cli import calling

BROKEN_WORKER = """
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import ModelError
from perdure.engine.worker import main

class Broken(HashEmbedder):
    def embed(self, texts, *, query=False):
        raise ModelError("out of order")

HashEmbedder.embed = Broken.embed
main()
"""


@pytest.fixture
def home(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of three facts with vectors of 32 dimensions, as the settings say."""
    monkeypatch.setenv("PERDURE_EMBEDDER", "hash")
    monkeypatch.setenv("PERDURE_EMBEDDER_MODEL", "32")
    with Memory.open(elsewhere) as memory:
        assert memory.ready()
        for bird in ("heron", "kestrel", "plover"):
            memory.store(f"The {bird} database is staging")
    return elsewhere


def call(home: Path, *words: str) -> str:
    return calling.call("model", *words, "--home", home).stdout


def figures(home: Path, *words: str) -> Any:
    return calling.call_json("model", *words, "--home", home)


def by_dims(found: dict[str, Any]) -> dict[int, tuple[str, int]]:
    return {item["dims"]: (item["state"], item["vectors"]) for item in found["spaces"]}


def test_there_and_back_and_tidied_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = figures(home, "status")
    assert (before["setting"], before["advice"], before["switching"]) == ("hash (32 dimensions)", None, False)
    assert (by_dims(before), before["facts"]) == ({32: ("active", 3)}, 3)

    before = figures(home, "status")
    dry = figures(home, "switch", "--model", "48", "--dry-run")
    assert (dry["model"], dry["facts"], dry["vectors"]) == ("hash (48 dimensions)", 3, 0)
    assert figures(home, "status") == before
    switched = figures(home, "switch", "--model", "48")
    assert switched["former"] == "hash (32 dimensions)"
    assert switched["model"] == "hash (48 dimensions)"
    assert (switched["switched"], switched["facts"], switched["vectors"]) == (True, 3, 3)
    assert switched["shadow"]["against"] == before["spaces"][0]["id"]
    after = figures(home, "status")
    assert [item["shadow"] for item in after["spaces"]] == [None, switched["shadow"]]
    assert by_dims(after) == {32: ("retired", 3), 48: ("active", 3)}
    assert "perdure model switch" in after["advice"], "the settings name the former model still"

    assert figures(home, "switch", "--model", "48")["switched"] is False
    back = {"model": "hash (32 dimensions)", "facts": 3, "vectors": 3}
    assert figures(home, "rollback", "--dry-run") == {**back, "dry_run": True}
    assert figures(home, "status") == after
    assert figures(home, "rollback") == {**back, "dry_run": False}
    assert [item["vectors"] for item in figures(home, "prune", "--dry-run")["pruned"]] == [3]
    assert by_dims(figures(home, "status"))[48] == ("retired", 3)
    assert [item["vectors"] for item in figures(home, "prune")["pruned"]] == [3]
    assert by_dims(figures(home, "status")) == {32: ("active", 3), 48: ("pruned", 0)}
    with pytest.raises(NotFoundError, match="perdure model switch"):
        call(home, "rollback")


def test_what_it_says_to_people(home: Path) -> None:
    assert "nothing to switch" in call(home, "switch")
    said = call(home, "switch", "--model", "48")
    assert "Now using hash (48 dimensions); vectors for 3 of 3 memories" in said
    status = call(home, "status")
    compared = shadow.told(figures(home, "status")["spaces"][1]["shadow"])
    assert compared in said
    assert compared in status
    assert "3 memories; model in the settings: hash (32 dimensions)" in status
    assert "to switch it, run perdure model switch" in status
    assert "Would be deleted." in call(home, "prune", "--dry-run")
    assert "Now using hash (32 dimensions)" in call(home, "rollback")
    assert "Deleted." in call(home, "prune")


def test_what_cannot_be_switched_to_changes_nothing(home: Path) -> None:
    before = figures(home, "status")
    with pytest.raises(SettingsError, match="many"):
        call(home, "switch", "--model", "many")
    with pytest.raises(SettingsError, match="no model to switch to"):
        call(home, "switch", "--embedder", "none")
    assert figures(home, "status") == before


def test_a_switch_to_a_model_that_fails_ends_with_the_reason(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model loads, and fails at the first text: only a worker that runs it can know."""
    (tmp_path / "broken_worker.py").write_text(BROKEN_WORKER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
    monkeypatch.setattr("perdure.cli.model.WORKER", "broken_worker")
    with pytest.raises(ModelError, match="out of order"):
        call(home, "switch", "--model", "48")
    stalled = figures(home, "status")
    assert by_dims(stalled) == {32: ("active", 3), 48: ("building", 0)}
    assert stalled["switching"] is True
    assert "out of order" in stalled["problem"]
    assert "out of order" in call(home, "status")
    assert figures(home, "rollback")["model"] == "hash (32 dimensions)"
    assert by_dims(figures(home, "status")) == {32: ("active", 3), 48: ("abandoned", 0)}


def test_settings_that_name_no_usable_model_are_reported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_EMBEDDER_MODEL", "many")
    assert "many" in figures(home, "status")["setting"]
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    assert figures(home, "status")["setting"] == "none"


def test_a_store_without_a_model_takes_it_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_EMBEDDER", "hash")
    assert figures(tmp_path, "switch") == {
        "former": None, "model": "hash (64 dimensions)", "switched": False, "facts": 0, "vectors": 0,
        "shadow": None, "dry_run": False, "seconds": pytest.approx(0, abs=60),
    }  # fmt: skip
    store = Store(tmp_path)
    assert store.space() is not None
    store.close()


@pytest.mark.parametrize("name", ["status", "switch", "rollback", "prune"])
def test_each_command_has_an_example(name: str) -> None:
    assert f"Example: perdure model {name}" in calling.call("model", name, "--help").stdout
    assert isinstance(model, click.Group)
