"""The commands by which a memory looks after itself, as a person or a script calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perdure.api.memory import Memory
from tests.cli.calling import call, call_json


def open_memory(home: Path, **settings: Any) -> Memory:
    return Memory.open(home, embedder="none", watch=False, **settings)


def test_consolidate_shows_then_merges_and_undo_brings_back(home: Path) -> None:
    with Memory.open(home, watch=False, compare={"vector": 0, "classify": False}) as memory:
        assert memory.ready()
        memory.store("The bees in the garden are doing well.")
        memory.store("The bees in the garden are doing well near the pond.")
    dry = call_json("consolidate", "--cosine", "0.6", "--dry-run")
    assert (len(dry["merges"]), dry["batch"], dry["dry_run"]) == (1, "", True)
    done = call_json("consolidate", "--cosine", "0.6")
    assert done["merges"][0]["text"] == "The bees in the garden are doing well near the pond."
    call("undo", "--batch", done["batch"])
    assert call_json("stats")["total"] == 2


def test_reflect_tells_what_it_looked_at(home: Path) -> None:
    with open_memory(home) as memory:
        memory.store("I keep bees in the garden.")
    assert call_json("reflect", "--days", "3")["examined"] == 1
    assert "Examined 1 memory, found 0 patterns." in call("reflect", "--dry-run").stdout


def test_distill_captures_a_record(home: Path) -> None:
    with open_memory(home) as memory:
        memory.files.add_transcript([{"role": "user", "content": "My sister lives in Porto."}], "old")
    assert call_json("distill", "--dry-run")["messages"] == 1
    assert "1 conversation, 1 new message, 1 new memory" in call("distill").stdout


def test_proposals_are_listed_refused_and_accepted(home: Path, tmp_path: Path) -> None:
    with open_memory(home, workspace=str(tmp_path)) as memory:
        for text in ("I prefer tabs over spaces.", "I like green tea."):
            for _ in range(3):
                memory.store(text)
    found = call_json("review", "propose")["proposals"]
    assert call_json("review")["proposals"] == found
    by_text = {each["text"]: each["id"][:8] for each in found}
    assert len(by_text) == 2
    call("review", "reject", by_text["I like green tea."])
    call("review", "approve", by_text["I prefer tabs over spaces."], "--dry-run")
    assert not (tmp_path / "MEMORY.md").exists()
    call("review", "approve", by_text["I prefer tabs over spaces."])
    assert "- I prefer tabs over spaces.\n" in (tmp_path / "MEMORY.md").read_text()
    assert call_json("review")["proposals"] == []
    assert call("review", "propose").stdout == "Nothing new to propose.\n"


def test_a_checkpoint_is_saved_listed_and_restored(home: Path) -> None:
    call("checkpoint", "save", "move the database", "--state", "backup made", "--expected", "no downtime")
    [restored] = call_json("checkpoint", "restore")["checkpoints"]
    assert (restored["intent"], restored["expected"]) == ("move the database", "no downtime")
    assert "state: backup made" in call("checkpoint", "list").stdout
