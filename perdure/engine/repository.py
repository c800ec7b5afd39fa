"""Which project a folder belongs to: what an agent learns in one client's repository stays out of another's."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from pathlib import Path

NAME = 60
"""Characters of a folder's name that a scope shows."""
DIGITS = 12


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
    link = root / ".git"
    if link.is_dir():
        return root
    try:
        # "gitdir: /path/of/repository/.git/worktrees/name"
        kind, _, target = link.read_text(encoding="utf-8").strip().partition(": ")
        inner = Path(os.path.realpath(root / target))
    except (OSError, ValueError):
        return root
    worktree = kind == "gitdir" and inner.parent.name == "worktrees" and inner.parents[1].name == ".git"
    return inner.parents[2] if worktree else root
