"""Which project a folder belongs to: what an agent learns in one client's repository stays out of another's."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from pathlib import Path

from perdure.errors import PerdureError
from perdure.files.safe_open import read_inside

NAME = 60
"""Characters of a folder's name that a scope shows."""
DIGITS = 12
_MAX_BYTES = 4_096


def project_of(folder: str | Path | None, home: str | Path | None = None) -> str | None:
    """Return the scope of the repository around a folder, or of the folder itself where there is none.

    All worktrees of a repository are one project. The home folder, and what lies above it, is no project: what is said
    there is about the user.

    `folder`: where the agent works; `home`: the user's home folder, if it is not the one of this process. A scope is
    such as "project:perdure-3f2a9c41d0be": the folder's name and a hash of its path.
    """
    if not folder or not Path(folder).is_absolute():
        return None
    root = root_of(folder)
    try:
        home = Path(os.path.realpath(home or Path.home()))
    except RuntimeError:
        home = Path("/")  # the user has none
    if root == home or root in home.parents:
        return None
    shown = "".join(" " if unicodedata.category(char).startswith(("C", "Z")) else char for char in root.name)
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:DIGITS]
    return f"project:{unicodedata.normalize('NFC', '_'.join(shown.split()))[:NAME]}-{digest}"


def root_of(folder: str | Path) -> Path:
    """Return the folder of the repository around a folder, for a worktree that of the repository it belongs to.

    Where there is no repository it is the folder itself.
    """
    inner = Path(os.path.realpath(folder))
    return next((_main(each) for each in (inner, *inner.parents) if (each / ".git").exists()), inner)


def _main(root: Path) -> Path:
    """Return the folder of the repository that a worktree belongs to; any other repository's own."""
    if (root / ".git").is_dir():
        return root
    # "gitdir: /path/of/repository/.git/worktrees/name", which names the worktree in turn: who packs an archive
    # can write the one, but not the other.
    kind, _, target = _line(root, ".git").partition(": ")
    inner = Path(os.path.realpath(root / target))
    worktree = kind == "gitdir" and inner.parent.name == "worktrees" and inner.parents[1].name == ".git"
    back = _line(inner, "gitdir") if worktree else ""
    return inner.parents[2] if back and os.path.realpath(inner / back) == str(root / ".git") else root


def _line(folder: Path, name: str) -> str:
    """Return what git has written into a small file of a folder; empty: nothing that can be read."""
    try:
        return read_inside(folder, name, _MAX_BYTES).decode("utf-8").strip()
    except (OSError, ValueError, PerdureError):
        return ""
