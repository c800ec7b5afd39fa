"""What a path holds that can be imported."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from perdure.errors import InputError
from perdure.importers.agents import is_claude_code, is_codex, load_claude_code, load_codex
from perdure.importers.chats import is_chatgpt, is_claude_ai, load_chatgpt, load_claude_ai
from perdure.importers.conversation_import import Talks
from perdure.importers.notes import is_agent_file, is_basic_memory, is_obsidian, is_openclaw, load_notes
from perdure.importers.systems import (
    is_claude_mem,
    is_hybrid,
    is_lancedb_pro,
    is_mem0,
    load_claude_mem,
    load_hybrid,
    load_lancedb_pro,
    load_mem0,
)
from perdure.maintenance.exchange import ExportFile
from perdure.maintenance.importing import Load
from perdure.maintenance.markdown import is_pages, load_pages


@dataclass(frozen=True, slots=True)
class Format:
    """Something that can be imported."""

    what: str  # it is, in words
    fits: Callable[[Path], bool]  # tells it by what is in it
    load: Callable[[Path, bytes], Load | Talks]  # reads it; takes the path and the key of the store it is for


def _is_export(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        try:
            header = json.loads(file.readline(100_000))
        except ValueError:
            return False
    return isinstance(header, dict) and header.get("type") == "header"


FORMATS: Mapping[str, Format] = {
    "perdure": Format("a perdure export", _is_export, lambda path, key: ExportFile(path).load(key)),
    "markdown": Format("perdure Markdown pages", is_pages, load_pages),
    "hybrid-memory": Format("a hybrid-memory folder", is_hybrid, lambda path, key: load_hybrid(path)),
    "lancedb-pro": Format(
        "a memory-lancedb-pro LanceDB folder or backup", is_lancedb_pro, lambda path, key: load_lancedb_pro(path)
    ),
    "claude-mem": Format("a claude-mem database", is_claude_mem, lambda path, key: load_claude_mem(path)),
    "chatgpt": Format("a ChatGPT export, zip or folder", is_chatgpt, lambda path, key: load_chatgpt(path)),
    "claude-ai": Format("a Claude.ai export, zip or folder", is_claude_ai, lambda path, key: load_claude_ai(path)),
    "codex": Format("Codex transcripts", is_codex, lambda path, key: load_codex(path)),
    "claude-code": Format("Claude Code transcripts", is_claude_code, lambda path, key: load_claude_code(path)),
    "mem0": Format("mem0 JSON", is_mem0, lambda path, key: load_mem0(path)),
    "openclaw": Format(
        "MEMORY.md, or an OpenClaw workspace", is_openclaw, lambda path, key: load_notes(path, "openclaw")
    ),
    "agent-file": Format(
        "CLAUDE.md, AGENTS.md, GEMINI.md", is_agent_file, lambda path, key: load_notes(path, "agent-file")
    ),
    "basic-memory": Format("basic-memory notes", is_basic_memory, lambda path, key: load_notes(path, "basic-memory")),
    "obsidian": Format("Obsidian notes", is_obsidian, lambda path, key: load_notes(path, "obsidian")),
}
"""What can be imported, in the order in which it is looked for."""
KINDS = tuple(FORMATS)


def kind_of(path: Path) -> str:
    """Return which of `KINDS` a path holds, told by what is in it."""
    for kind, form in FORMATS.items():
        if form.fits(path):
            return kind
    known = "; ".join(f"{form.what} ({kind})" for kind, form in FORMATS.items())
    raise InputError(f"{path} is not in a recognised format; specify it with --from. Known formats: {known}")


def load_source(path: Path, key: bytes, kind: str | None = None, *, trust: bool = False) -> Load:
    """Return the memories that a path holds, ready for `bring_in`; arguments as for `open_source`."""
    source = open_source(path, key, kind, trust=trust)
    if isinstance(source, Talks):
        raise InputError(f"{path} holds conversations ({source.kind}); import them with: perdure import")
    return source


def open_source(path: Path, key: bytes, kind: str | None = None, *, trust: bool = False) -> Load | Talks:
    """Return what a path holds: memories, ready for `bring_in`, or conversations, ready for `hear`.

    `kind`: one of `KINDS`; None: told by what is in it.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist; name a file or folder to import")
    kind = kind or kind_of(path)
    if kind not in FORMATS:
        raise InputError(f"kind {kind!r} is unknown; use one of {', '.join(KINDS)}")
    return load_pages(path, key, trust=trust) if kind == "markdown" else FORMATS[kind].load(path, key)
