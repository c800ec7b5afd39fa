"""The commands by which a memory looks after itself, as a person or a script calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from perdure.api.memory import Memory
from perdure.cli.main import cli


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def call(home: Path, *words: str) -> Result:
    result = CliRunner().invoke(cli, [*words, "--home", str(home)], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def told(home: Path, *words: str) -> Any:
    return json.loads(call(home, *words, "--json").stdout)


def open_memory(home: Path, **settings: Any) -> Memory:
    return Memory.open(home, embedder="none", watch=False, **settings)


def test_consolidate_shows_then_merges_and_undo_brings_back(home: Path) -> None:
    with Memory.open(home, watch=False, duplicate_vector=False, classify_before_write=False) as memory:
        assert memory.ready()
        memory.store("The bees in the garden are doing well.")
        memory.store("The bees in the garden are doing well near the pond.")
    dry = told(home, "consolidate", "--cosine", "0.6", "--dry-run")
    assert (len(dry["merges"]), dry["batch"], dry["dry_run"]) == (1, "", True)
    done = told(home, "consolidate", "--cosine", "0.6")
    assert done["merges"][0]["text"] == "The bees in the garden are doing well near the pond."
    call(home, "undo", "--batch", done["batch"])
    assert told(home, "stats")["total"] == 2


def test_reflect_tells_what_it_looked_at(home: Path) -> None:
    with open_memory(home) as memory:
        memory.store("I keep bees in the garden.")
    assert told(home, "reflect", "--days", "3")["examined"] == 1
    assert "1 memories looked at, 0 patterns" in call(home, "reflect", "--dry-run").stdout


def test_distill_captures_a_record(home: Path) -> None:
    with open_memory(home) as memory:
        memory.files.add_transcript([{"role": "user", "content": "My sister lives in Porto."}], "old")
    assert told(home, "distill", "--dry-run")["messages"] == 1
    assert "1 conversations, 1 new messages, 1 new memories" in call(home, "distill").stdout


def test_proposals_are_listed_refused_and_accepted(home: Path, tmp_path: Path) -> None:
    with open_memory(home, workspace=str(tmp_path)) as memory:
        for text in ("I prefer tabs over spaces.", "I like green tea."):
            for _ in range(3):
                memory.store(text)
    found = told(home, "proposals", "list")["proposals"]
    by_text = {each["text"]: each["id"][:8] for each in found}
    assert len(by_text) == 2
    call(home, "proposals", "refuse", by_text["I like green tea."])
    call(home, "proposals", "accept", by_text["I prefer tabs over spaces."], "--dry-run")
    assert not (tmp_path / "MEMORY.md").exists()
    call(home, "proposals", "accept", by_text["I prefer tabs over spaces."])
    assert "- I prefer tabs over spaces.\n" in (tmp_path / "MEMORY.md").read_text()
    assert told(home, "proposals", "list")["proposals"] == []
    assert "2 proposals" in call(home, "proposals", "list", "--all").stdout


def test_a_checkpoint_is_saved_listed_and_restored(home: Path) -> None:
    call(home, "checkpoint", "save", "move the database", "--state", "backup made", "--expected", "no downtime")
    [restored] = told(home, "checkpoint", "restore")["checkpoints"]
    assert (restored["intent"], restored["expected"]) == ("move the database", "no downtime")
    assert "state: backup made" in call(home, "checkpoint", "list").stdout
