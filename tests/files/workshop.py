"""A store with files around it, for the tests of the index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from perdure.clock import ManualClock
from perdure.files.index import FileIndex
from perdure.files.options import FilesOptions
from perdure.files.roots import Root, root_of
from perdure.store.scope import Scope
from perdure.store.sql import Row, run
from perdure.store.store import Store

MINE = Scope("user", "owner")
LONG_AGO = 1_700_000_000


class Workshop:
    """A store, its index of files, and a workspace with conversations beside it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        """Open the store in a folder; what another one has left there is still there."""
        self.folder = folder
        self.store = Store(folder / "home", clock=ManualClock())
        self.index = FileIndex(self.store, FilesOptions(**options))
        self.workspace = root_of(MINE, folder / "workspace", "workspace")
        self.sessions = root_of(MINE, folder / "sessions", "sessions")
        self.roots: list[Root] = [self.workspace, self.sessions]
        for root in self.roots:
            root.path.mkdir(exist_ok=True)

    def write(self, name: str, text: str, *, old: bool = True) -> Path:
        """Write a file below the folder of the test; an old one was written long ago."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        if old:
            os.utime(path, (LONG_AGO, LONG_AGO))
        return path

    def note(self, name: str, text: str, *, old: bool = True) -> Path:
        """Write a memory file."""
        return self.write(f"workspace/memory/{name}.md", text, old=old)

    def select(self, sql: str) -> list[Row]:
        """Return rows of the live index."""
        live = self.index.generations.live()
        assert live is not None
        with live.database.read() as connection:
            return run(connection, sql)

    def texts(self) -> list[str]:
        """Return the texts of all chunks, in order."""
        return sorted(text.strip() for (text,) in self.select("SELECT text FROM chunks"))

    def files(self) -> list[str]:
        """Return the names of all files of the index in the data folder."""
        return sorted(path.name for path in self.store.folder.glob("index-*"))

    def close(self) -> None:
        """Close everything."""
        self.index.close()
        self.store.close()
