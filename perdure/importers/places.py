"""Where other tools keep memories and people save exports. It imports little: `perdure` alone waits for it."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

ENTRIES = 200
"""Directory entries that one pattern may match."""
USUAL = (
    ("claude-code", "CLAUDE_CONFIG_DIR", ".claude", "projects", "*/*.jsonl"),
    ("codex", "CODEX_HOME", ".codex", "sessions", "*/*/*/rollout-*"),
    ("agent-file", "CLAUDE_CONFIG_DIR", ".claude", "CLAUDE.md", ""),
    ("agent-file", "CODEX_HOME", ".codex", "AGENTS.md", ""),
    ("agent-file", "", ".gemini", "GEMINI.md", ""),
    ("openclaw", "OPENCLAW_STATE_DIR", ".openclaw", "workspace", "MEMORY.md"),
    ("hybrid-memory", "OPENCLAW_STATE_DIR", ".openclaw", "memory", "facts.db"),
    ("lancedb-pro", "OPENCLAW_STATE_DIR", ".openclaw", "memory/lancedb-pro", "*.lance"),
    ("basic-memory", "", "", "basic-memory", "**/*.md"),
    ("obsidian", "", "", "Documents", "*/.obsidian"),
    ("obsidian", "", "", "Obsidian", "*/.obsidian"),
)
"""Kind, variable that moves the folder, folder in the user's home, what to import in it, and what that must hold."""
EXPORTS = {"chatgpt": "chat.html", "claude-ai": "projects.json"}
"""Kinds of exported conversations, and a file in the zip that identifies them."""


def importable(home: Path, environ: Mapping[str, str] = os.environ) -> Iterator[tuple[str, Path]]:
    """Yield kind and path of what `perdure import` can read in the usual places, judged by names alone."""
    for kind, variable, folder, name, within in USUAL:
        path = Path(environ.get(variable) or home / folder) / name
        hit = next(path.glob(within), None) if within else path if path.is_file() else None
        if hit is not None:
            yield kind, hit.parent if kind == "obsidian" else path
    for path in islice((home / "Downloads").glob("*.zip"), ENTRIES):
        try:
            with zipfile.ZipFile(path) as file:
                names = {name.rpartition("/")[2] for name in file.namelist()}
        except (OSError, zipfile.BadZipFile):
            continue
        if any(name.startswith("conversations") and name.endswith(".json") for name in names):
            yield from ((kind, path) for kind, mark in EXPORTS.items() if mark in names)
