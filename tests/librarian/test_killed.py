"""Killed at any point of a batch, a librarian has done all of it or nothing, and the next one goes on from there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BEFORE = {
    "facts": [["My dentist is Dr Kade.", True], ["We have a boat in Turku.", True]],
    "triggers": [], "waiting": 1, "runs": [],
}  # fmt: skip
AFTER = {
    "facts": [["My dentist is Dr Holm now.", True], ["My dentist is Dr Kade.", False],
              ["Never deploy on Fridays.", True], ["We have a boat in Turku.", False]],
    "triggers": ["can you ship this tonight"], "waiting": 0, "runs": ["remember 1, replace 1, withdraw 1"],
}  # fmt: skip


@pytest.mark.timeout(400)
def test_killed_at_any_point_all_or_nothing_is_done(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.librarian.killing", str(tmp_path)], capture_output=True, text=True, check=False,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    points = {kill["point"] for kill in kills}
    assert len(points) >= 7
    assert [kill["before"] for kill in kills if kill["before"] not in (BEFORE, AFTER)] == []
    # A server has no fail point behind its commit.
    seen = {json.dumps(kill["before"]) for kill in kills}
    assert seen == {json.dumps(BEFORE), *([json.dumps(AFTER)] if len(points) > 7 else [])}
    assert [kill["point"] for kill in kills if kill["after"] != AFTER] == []
    assert [
        kill["point"]
        for kill in kills
        if kill["undone"] != {**AFTER, **{name: BEFORE[name] for name in ("facts", "triggers")}}
    ] == []
