"""Health: what is wrong, what runs when, how large it is, and a copy to take along."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from perdure.api.doctor import examine
from perdure.maintenance.backup import backups
from perdure.ui.page import Call, change, show


def health(call: Call) -> Response:
    """Show how the store is."""
    status = call.memory.status()
    folder = Path(status.home)
    checkups = examine(folder) if call.asked("look") else None
    shown: dict[str, Any] = {"sizes": sizes(folder), "backup": next(iter(backups(folder)), None), "checkups": checkups}
    return call.render("health.html", status=status, jobs=call.memory.admin.jobs(), **shown)


def sizes(folder: Path) -> list[tuple[str, int]]:
    """Return the parts of a data folder with their bytes, the largest first."""
    found: dict[str, int] = {}
    for file in folder.rglob("*"):
        try:
            state = file.lstat()
        except FileNotFoundError:
            continue
        if file.is_file():
            name = file.relative_to(folder).parts[0]
            found[name] = found.get(name, 0) + state.st_size
    return sorted(found.items(), key=lambda each: -each[1])


def export(call: Call) -> Response:
    """Ask whether all memories are to leave the data folder; asked already, hand them over."""
    if call.given("sure") != "yes":
        text = "A JSONL file with every memory of all scopes, redacted, as perdure export writes it."
        return call.render("sure.html", title="Export all memories?", text=text, action="export", values={},
                           back="health")  # fmt: skip
    made = tempfile.TemporaryDirectory(prefix="perdure-")
    path = Path(made.name) / "memories.jsonl"
    call.memory.admin.export(path)
    return FileResponse(path, filename=path.name, background=BackgroundTask(made.cleanup))


ROUTES = [show("/health", health), change("/export", export)]
