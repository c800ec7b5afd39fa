"""Removing a data folder: what perdure made in it, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perdure.errors import InputError, StoreBusyError, StoreUnavailableError
from perdure.store.folder import MACHINE, STAGES, was_opened
from perdure.store.presence import FOLDER, alone
from perdure.store.remembered import FILE, Truth, judge

MADE = (
    "facts.db*", "index-*.db*", "vault.db*", "lancedb", "lancedb-purged", "lancedb.sha256*", "inbox", "transcripts",
    "backups", "exports", *STAGES, "remembered.json*", "*.lock", "store.key*", f"{MACHINE}*", FOLDER,
)  # fmt: skip
"""What perdure makes in a data folder. The folder may hold other files: it is the user's choice."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a data folder.

    Attributes:
        made: what perdure made, sorted.
        others: what it did not; it stays.
        size: of what perdure made, in bytes.
    """

    made: Sequence[Path]
    others: Sequence[Path]
    size: int


def contents(folder: Path) -> Contents:
    """Return what is in a data folder.

    Raises:
        InputError: it holds no store.
    """
    if not was_opened(folder) and judge(folder).truth is Truth.NEW:
        raise InputError(f"{folder} holds no store; name its folder with --home")
    made = sorted({path for pattern in MADE for path in folder.glob(pattern)})
    files = [file for path in made for file in ([path] if path.is_file() else path.rglob("*"))]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return Contents(made, sorted(set(folder.iterdir()) - set(made)), size)


def remove(folder: Path) -> Contents:
    """Remove what perdure made in a data folder, and the folder if nothing else is in it. There is no way back.

    Raises:
        InputError: it holds no store.
        StoreBusyError: somebody has the store open.
        StoreUnavailableError: something could not be removed.
    """
    found = contents(folder)
    try:
        with alone(folder) as free:
            if not free:
                raise StoreBusyError(f"{folder} is in use; end the programs that have it open, and do it again")
            # First what tells that there was a store, then the truth: what is left after a kill is none any more.
            first = {FILE: 0, "facts.db": 1}
            for path in sorted(found.made, key=lambda path: (first.get(path.name, 2), path.name)):
                if path.name != FOLDER:
                    _remove(path)
        # Here lies the lock that was just held.
        _remove(folder / FOLDER)
        if not found.others:
            folder.rmdir()
    except OSError as error:
        raise StoreUnavailableError(f"{folder} could not be removed ({error.strerror}); look into it") from error
    return found


def clear(folder: Path) -> list[Path]:
    """Remove what a folder has of a store whose memories were purged as a whole; return that. The key stays."""
    kept = {FOLDER, MACHINE, "store.key"}
    made = {path for pattern in MADE for path in folder.glob(pattern) if path.suffix != ".lock"}
    gone = sorted(path for path in made if path.name not in kept)
    for path in gone:
        _remove(path)
    return gone


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
