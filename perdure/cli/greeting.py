"""What `perdure` alone prints. It reads some names and one number, writes nothing, and takes a moment."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from perdure.cli.output import Output
from perdure.engine.paths import data_folder
from perdure.errors import PerdureError
from perdure.extras import absent
from perdure.parts import part
from perdure.store.access import opened
from perdure.store.folder import was_opened

ABOUT = "perdure: long-term memory for AI agents, kept on this machine"
SHOWN = 5
"""Importable sources that are listed."""
LIVE = "SELECT count(*) FROM facts WHERE forgotten_at IS NULL AND superseded_at IS NULL"


def greeting(output: Output) -> None:
    """Print what perdure is, what it finds on this machine, and the two commands that matter next."""
    hosts: dict[str, bool] = {}
    sources: list[tuple[str, Path]] = []
    with suppress(PerdureError, OSError, RuntimeError):
        hosts = dict(part("hosts.connect.glance").glance())
        sources = list(part("importers.places").importable(Path.home()))
    memories = _memories()
    nexts = list(islice(_next(hosts, memories, sources), 2))
    output.json({
        "about": ABOUT, "memories": memories,
        "hosts": [{"name": name, "connected": connected} for name, connected in hosts.items()],
        "importable": [{"kind": kind, "path": path} for kind, path in sources],
        "next": [{"command": command, "does": does} for command, does in nexts],
    })  # fmt: skip
    output.title(ABOUT)
    output.line("")
    more = len(sources) - SHOWN
    rows = [
        ("memories", "unknown: see perdure status" if memories is None else memories or "none yet"),
        ("connected", [name for name, connected in hosts.items() if connected]),
        ("not connected", [name for name, connected in hosts.items() if not connected]),
        *(("importable", f"{path} ({kind})") for kind, path in sources[:SHOWN]),
        ("", f"{more} more" if more > 0 else ""),
    ]
    output.table(("", ""), [row for row in rows if row[1]])
    output.line("")
    output.table(("", ""), nexts)
    output.line("")
    output.line("All commands: perdure --help")


def _memories() -> int | None:
    """Count the memories; None: not possible without opening the store."""
    try:
        folder = data_folder()
        if not (folder / "facts.db").exists():
            return None if was_opened(folder) else 0
        with opened(folder / "facts.db", looks=True, leaves_nothing=True) as connection:
            rows: Any = connection.execute(LIVE).fetchall()
            return int(rows[0][0])
    except PerdureError:
        return None


def _next(hosts: dict[str, bool], memories: int | None, sources: list[tuple[str, Path]]) -> Iterator[tuple[str, str]]:
    if hosts and not any(hosts.values()):
        yield "perdure connect", "connect the agents on this machine"
    if not memories:
        if sources:
            yield f"perdure import {shlex.quote(str(sources[0][1]))} --dry-run", "see what would be imported"
        yield "perdure demo", "watch an agent remember (takes a minute)"
    if not absent("starlette"):
        yield "perdure ui", "see your memories in the browser"
    yield 'perdure recall "..."', "see what a prompt recalls"
