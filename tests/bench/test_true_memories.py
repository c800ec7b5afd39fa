"""What is lost of what is true, and which changes are recognised."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from bench import changes, true_memories


def folder_of(folder: Path, **texts: list[str]) -> Path:
    for name, memories in texts.items():
        told = {"memories": [{"id": f"m{place}", "text": text} for place, text in enumerate(memories)]}
        (folder / f"{name}.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


def test_what_a_later_memory_hides_or_marks_is_counted(tmp_path: Path) -> None:
    files = true_memories.read(folder_of(
        tmp_path,
        a=["Standup is at 9:30.", "Standup is at 9:15.", "My dog is called Rex."],
        b=["I live in Ghent with two cats.", "I moved to Lisbon.", "I moved to Lisbon."],
    ))  # fmt: skip
    found = true_memories.measure(files, together=False, turns=False, days=0)
    assert (found["memories"], found["hidden"], found["marked"], found["swallowed"]) == (6, 1, 1, 0)
    assert {case["how"]: case["by"] for case in found["cases"]} == {
        "hidden": "Standup is at 9:15.", "marked": "I moved to Lisbon.",
    }  # fmt: skip


def test_what_differs_between_people_is_left_out_in_one_store(tmp_path: Path) -> None:
    files = true_memories.read(folder_of(tmp_path, a=["I live in Ghent."], b=["I live in Lisbon."]))
    found = true_memories.measure(files, together=True, turns=False, days=0)
    assert (found["hidden"], len(found["excluded"])) == (0, 1)
    assert true_memories.growth(files) == {2: 0.0}


def test_what_is_said_in_turns_is_counted_by_its_statements(tmp_path: Path) -> None:
    files = true_memories.read(folder_of(tmp_path, a=["My dog is called Rex. Hello!", "I live in Ghent."]))
    found = true_memories.measure(files, together=False, turns=True, days=0)
    assert (found["memories"], found["hidden"], found["swallowed"]) == (2, 0, 0)


def test_without_stores_it_says_so(tmp_path: Path) -> None:
    done = CliRunner().invoke(true_memories.main, [str(tmp_path / "nowhere"), "--json"])
    assert done.exit_code == 0
    assert "holds no stores" in done.output


def test_a_recognised_change_and_a_false_one_are_told_apart() -> None:
    pairs = [
        {"id": "1", "known": "Standup is at 9:30.", "new": "Standup is at 9:15.", "label": "correction"},
        {"id": "2", "known": "Standup is at 9:30.", "new": "Retro is at 9:15.", "label": "addition"},
        {"id": "3", "known": "I hate coriander.", "new": "I can't stand coriander.", "label": "repetition"},
        {"id": "4", "known": "Bin day is Monday.", "new": "Bin day is Friday.", "label": "addition"},
        {"id": "5", "known": "We bake with gas.", "new": "the kitchen has induction", "label": "correction"},
    ]
    found = changes.measure(pairs, cases=True)
    assert (found["recognised"], found["false_replacements"], found["false_swallowing"]) == (0.5, 1, 0)
    assert found["repetitions_recognised"] == 1.0
    assert [case["id"] for case in found["cases"]] == ["4", "5"]
