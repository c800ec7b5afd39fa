"""What the measure of agents' work counts before tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.coding import bench


def _ran(command: str, ended: int = 0, output: str = "") -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command}, "output": output, "exit": ended}


def _script(name: str, *events: dict[str, Any]) -> dict[str, Any]:
    where = {"branch": "main", "files": ["sum.py"], "failed": ["make test"], "passed": ["make test"], "open": ""}
    return {"coding": name, "project": "/home/me/shop", "branch": "main", "events": events, "where": where,
            "never": [], "again": [], "other": []}  # fmt: skip


def test_a_mended_command_and_its_file_are_due_and_nothing_else_is(tmp_path: Path) -> None:
    edit = {"tool": "Edit", "output": "done", "input": {
        "file_path": "/home/me/shop/sum.py", "old_string": "return 3", "new_string": "return 4"}}  # fmt: skip
    failed = _ran("make test", 1, "E   AssertionError: 3 != 4")
    mended = _script("a", failed, _ran("git status"), edit, _ran("make test"), _ran("make docs"))
    open_yet = _script("b", failed, edit, _ran("make docs"))
    # Every third is played by Codex.
    for name, script in (("a", mended), ("b", open_yet), ("c", {**mended, "coding": "c"})):
        (tmp_path / f"{name}.json").write_text(json.dumps(script), encoding="utf-8")
    measured = bench(tmp_path, detail=True)
    assert (measured["before_tool"], measured["needless"]) == (1.0, 0.0)
    assert not [each for each in measured["wrong"] if "before" in each]
