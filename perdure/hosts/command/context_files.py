"""The memory files of a host itself, which its model sees in any case: what stands in them need not be said again.

A repository may bring them along, so nothing is taken over from them, and what is read is bounded: regular files within
the repository or the user's home folder, so many and so large.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from perdure.engine.repository import root_of
from perdure.errors import PerdureError
from perdure.files.safe_open import read_inside
from perdure.hosts.command.dialects import Dialect
from perdure.recent import Recent
from perdure.regex import lazy

MAX_BYTES = 200_000
_FILES, _FOLDERS, _ENTRIES = 40, 12, 200
"""Files that are read, folders between a repository's root and where the session is, entries of a folder of rules."""
_NOTES_LINES, _NOTES_BYTES = 200, 25_000
"""What Claude Code shows of its own notes about a project."""
_IMPORT = lazy(r"(?:^|(?<=\s))@((?:~/)?[\w./-]*[\w-])")
_FRONT = lazy(r"---\n(.*?)\n---", re.DOTALL)
_UNSAID = lazy(
    r"<!--.*?(?:-->|\Z)|^[ \t>*+-]*(```+|~~~+)[^\n]*(?:\n.*?(?:^[ \t>]*\1[^\n]*|\Z)|\Z)", re.DOTALL | re.MULTILINE
)
"""Comments and fences: what stands in them is not said."""
_SIGN = lazy(r"[^A-Za-z0-9]")
_kept: Recent[tuple[str, str], tuple[int, int, str]] = Recent(4 * _FILES)


def in_context(dialect: Dialect, folder: str | None) -> tuple[tuple[str, str, bool], ...]:
    """Return the name and text of each file that a host shows its model in a folder, and whether it is the user's own.

    None is there twice. What a file of the project imports lies in the project.
    """
    home = _home()
    found: dict[Path, tuple[str, Path | None]] = {}
    for top, path in islice(_paths(dialect, folder, home), _FILES):
        _take(found, home, top, path)
    for path, (text, top) in list(found.items()) if dialect.imports else ():
        for named in islice(_IMPORT.findall(text), _FILES):
            _take(found, home, top, home / named[2:] if named.startswith("~/") else path.parent / named)
    return tuple((path.name, text, top is None) for path, (text, top) in islice(found.items(), _FILES))


def users_files(dialect: Dialect) -> list[Path]:
    """Return the memory files of a host that are the user's, wherever they work, and say something."""
    home = _home()
    return [path for path in _ruling(home, dialect.of_user) if _text(home, path).strip()]


def _paths(dialect: Dialect, folder: str | None, home: Path) -> Iterator[tuple[Path | None, Path]]:
    """Yield each file that may be there, behind the project that it must not leave; None: it is the user's own."""
    yield from ((None, path) for path in _ruling(home, dialect.of_user))
    if not folder or not Path(folder).is_absolute():
        return
    inner = _real(Path(folder))
    top = _top(inner)
    if dialect.notes:
        yield None, home / dialect.notes.format(project=_SIGN.sub("-", str(root_of(inner))))
    between = [inner, *inner.parents][: len(inner.parts) - len(top.parts) + 1]
    for each in reversed(between[:_FOLDERS]):
        yield from ((top, path) for path in _ruling(each, dialect.of_project))


def _ruling(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield the files that may be in a folder, without those that an override there takes the place of."""
    for name in names:
        path = folder / name
        if not os.path.lexists(path.with_suffix(f".override{path.suffix}")):
            yield from _listed(path) if "*" in name else (path,)


def _listed(pattern: Path) -> list[Path]:
    try:
        with os.scandir(pattern.parent) as entries:
            names = sorted(each.name for each in islice(entries, _ENTRIES))
    except OSError:
        return []
    return [pattern.parent / name for name in names if name.endswith(pattern.suffix)]


def _take(found: dict[Path, tuple[str, Path | None]], home: Path, top: Path | None, path: Path) -> None:
    text = _text(top or home, path)
    if text:
        found.setdefault(path, (text, top))


def _text(base: Path, path: Path) -> str:
    """Return what a file shows, if it lies in its base; what a link leads to there counts."""
    real = _real(path)
    key = str(base), str(real)
    try:
        inside = real.relative_to(base).as_posix()
        state = real.stat()
        known = _kept.get(key)
        if known is None or known[:2] != (state.st_mtime_ns, state.st_size):
            text = read_inside(base, inside, MAX_BYTES).decode("utf-8", "replace")
            known = state.st_mtime_ns, state.st_size, _shown(path, text)
            _kept.put(key, known)
    except (OSError, ValueError, PerdureError):
        return ""
    return known[2]


def _shown(path: Path, text: str) -> str:
    """Return what of a file its host shows in any case: a rule may be for some files alone."""
    front = _FRONT.match(text)
    told = front[1] if front else ""
    if (path.suffix == ".mdc" and "alwaysApply: true" not in told) or "paths:" in told:
        return ""
    text = text[front.end() :] if front else text
    text = "\n".join(text[:_NOTES_BYTES].split("\n")[:_NOTES_LINES]) if path.name == "MEMORY.md" else text
    return _UNSAID.sub("", text)


def _home() -> Path:
    try:
        return _real(Path.home())
    except RuntimeError:
        return Path("/")  # the user has none


def _top(folder: Path) -> Path:
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
