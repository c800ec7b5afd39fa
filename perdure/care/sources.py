"""What a path holds that can be imported."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from perdure.care.exchange_file import ExportFile
from perdure.care.foreign_hybrid import is_hybrid, load_hybrid
from perdure.care.foreign_lancedb import is_lancedb_pro, load_lancedb_pro
from perdure.care.importing import Load
from perdure.care.markdown_import import is_pages, load_pages
from perdure.errors import InputError

KINDS = ("perdure", "markdown", "hybrid-memory", "lancedb-pro")
_FOLDERS = ("lancedb-pro", "lancedb")
"""Where memory-lancedb-pro keeps its table below the folder that its user knows."""


def kind_of(path: Path) -> str:
    """Return which of `KINDS` a path holds, told by what is in it.

    Raises:
        InputError: none of them.
    """
    if _is_export(path):
        return "perdure"
    if is_pages(path):
        return "markdown"
    if (database := _database(path)).is_file() and is_hybrid(database):
        return "hybrid-memory"
    if is_lancedb_pro(_lance(path)):
        return "lancedb-pro"
    raise InputError(
        f"{path} is no export of perdure, no folder of hybrid-memory and no LanceDB folder of lancedb-pro; "
        "check the path, or say with --from what it is"
    )


def load_source(path: Path, key: bytes, kind: str | None = None, *, trust: bool = False) -> Load:
    """Return what a path holds, ready for `bring_in`.

    Args:
        path: a file or folder.
        key: the key of the store it is for: `Store.key`.
        kind: one of `KINDS`; None: told by what is in it.
        trust: as for `bring_in`: vouch for what is in it.

    Raises:
        InputError: it is not there, or not what it should be.
    """
    if not path.exists():
        raise InputError(f"{path} is not there; name a file or folder to import")
    loaders: Mapping[str, Callable[[], Load]] = {
        "perdure": lambda: ExportFile(path).load(key),
        "markdown": lambda: load_pages(path, key, trust=trust),
        "hybrid-memory": lambda: load_hybrid(_database(path)),
        "lancedb-pro": lambda: load_lancedb_pro(_lance(path)),
    }
    kind = kind or kind_of(path)
    if kind not in loaders:
        raise InputError(f"kind {kind!r} is unknown; use one of {', '.join(KINDS)}")
    return loaders[kind]()


def _database(path: Path) -> Path:
    return path / "facts.db" if path.is_dir() else path


def _lance(path: Path) -> Path:
    places = (path, *(path / name for name in _FOLDERS))
    return next((place for place in places if is_lancedb_pro(place)), path)


def _is_export(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        try:
            header = json.loads(file.readline(100_000))
        except ValueError:
            return False
    return isinstance(header, dict) and header.get("type") == "header"
