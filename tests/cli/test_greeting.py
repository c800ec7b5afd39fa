"""What `perdure` alone prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from tests.cli.calling import call, call_json
from tests.hosts.machine import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path / "user", monkeypatch)
    monkeypatch.setenv("PERDURE_HOME", str(made.home / "memories"))
    return made


def nexts() -> list[str]:
    return [each["command"] for each in call_json()["next"]]


def tree(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def test_it_tells_hosts_memories_and_what_to_do_next(machine: Machine) -> None:
    before = tree(machine.home)
    told = call_json()
    assert (told["memories"], told["importable"]) == (0, [])
    assert told["hosts"] == [{"name": "claude-code", "connected": False}, {"name": "codex", "connected": False}]
    assert nexts() == ["perdure connect", "perdure demo"]
    assert tree(machine.home) == before
    call("connect", "claude-code")
    assert call_json()["hosts"][0]["connected"] is True
    call("store", "The staging database is called heron.")
    before = tree(machine.home)
    shown = call().stdout
    assert "memories\t1\n" in shown
    assert "connected\tclaude-code\n" in shown
    assert "perdure ui\t" in shown
    assert tree(machine.home) == before
    with Memory.open(embedder="none", timers=False):
        assert call_json()["memories"] == 1


def test_what_other_tools_keep_is_found_in_its_usual_places(machine: Machine) -> None:
    home = machine.home
    found = {
        "claude-code": home / ".claude" / "projects" / "-site" / "1.jsonl",
        "agent-file": home / ".claude" / "CLAUDE.md",
        "openclaw": home / ".openclaw" / "workspace" / "MEMORY.md",
        "obsidian": home / "Documents" / "Notes" / ".obsidian" / "app.json",
    }
    for path in found.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    (home / "Downloads").mkdir()
    for name, inside in (("chatgpt.zip", ("conversations.json", "chat.html")), ("photos.zip", ("a.jpg",))):
        with zipfile.ZipFile(home / "Downloads" / name, "w") as file:
            for each in inside:
                file.writestr(each, "[]")
    (home / "Downloads" / "broken.zip").write_text("no zip")
    told = {each["kind"]: Path(each["path"]).relative_to(home).as_posix() for each in call_json()["importable"]}
    assert told == {
        "claude-code": ".claude/projects", "agent-file": ".claude/CLAUDE.md", "openclaw": ".openclaw/workspace",
        "obsidian": "Documents/Notes", "chatgpt": "Downloads/chatgpt.zip",
    }  # fmt: skip
    assert nexts() == ["perdure connect", f"perdure import {home}/.claude/projects --dry-run"]


def test_it_loads_little_and_obeys_no_name(machine: Machine) -> None:
    (machine.home / "Downloads").mkdir()
    with zipfile.ZipFile(machine.home / "Downloads" / "x\x1b[35m.zip", "w") as file:
        file.writestr("conversations.json", "[]")
        file.writestr("chat.html", "")
    code = (
        "import sys; from perdure.cli.main import cli; cli.main([], standalone_mode=False)\n"
        "print(sorted({'pydantic', 'numpy', 'rich', 'asyncio', 'perdure.api.memory'} & set(sys.modules)))"
    )
    child = subprocess.run([sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True)
    assert child.stdout.endswith("\n[]\n"), child.stdout + child.stderr
    assert "x\\x1b[35m.zip" in child.stdout
    assert "\x1b" not in child.stdout


def test_json_belongs_behind_a_command(machine: Machine) -> None:
    child = subprocess.run([sys.executable, "-m", "perdure", "--json", "list"], capture_output=True, text=True)
    assert child.returncode == 2
    assert "perdure list --json" in json.loads(child.stdout)["error"]["message"]
