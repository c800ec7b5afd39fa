"""A machine with command-line agents on it, for the tests of connecting them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure.hosts.connect.connection import Connection
from perdure.hosts.connect.hook_hosts import ClaudeCode, Codex
from perdure.hosts.connect.parts import Wiring

PYTHON = sys.executable


class Machine:
    """A user's home folder; the environment of this process names it."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.records = home / ".config" / "perdure" / "connected"
        self.settings = home / ".claude" / "settings.json"
        self.servers = home / ".claude.json"
        self.codex = home / ".codex"
        for folder in (self.settings.parent, self.codex):
            folder.mkdir(parents=True)
        # git alone: programs of the person who runs the tests are none of their business.
        (home / "bin").mkdir()
        (home / "bin" / "git").symlink_to(str(shutil.which("git")))
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PERDURE_HOME", "OPENCLAW_CONFIG_PATH", "OPENCLAW_STATE_DIR"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"HOME": home, "PATH": home / "bin", "XDG_CONFIG_HOME": home / ".config"}.items():
            monkeypatch.setenv(name, str(value))

    def claude_code(self, **environ: str) -> ClaudeCode:
        return ClaudeCode({**os.environ, **environ})

    def for_claude_code(self) -> Connection:
        return self.claude_code().for_user(Wiring("claude-code"))

    def for_codex(self) -> Connection:
        return Codex().for_user(Wiring("codex"))


def values(path: Path) -> Any:
    return json.loads(path.read_text())


def commands(path: Path) -> dict[str, list[str]]:
    """Return the commands of each event in a file with hooks."""
    hooks = values(path).get("hooks", {})
    return {event: [hook["command"] for group in groups for hook in group["hooks"]] for event, groups in hooks.items()}


def git(folder: Path, *arguments: str) -> None:
    """Run git in a folder, as somebody."""
    known = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", str(folder), *known, *arguments], check=True, capture_output=True)
