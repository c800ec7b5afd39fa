"""A copy of an SQLite database at one moment, taken while others go on writing, and checked."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

from perdure.errors import InputError, StoreCorruptError
from perdure.store.folder import whole
from perdure.store.sql import run

PAGES = 2_000
"""Pages copied in one step: 8 MB, between two of which other threads may run."""


def snapshot(source: apsw.Connection, target: Path) -> Path:
    """Copy a database into a new file that needs no other file beside it; it appears whole or not at all.

    The source has no transaction open; what is committed before the copy begins is in it. Of one that is not intact no
    copy is left behind. The caller puts `apsw.Error` in our terms.
    """
    if target.exists():
        raise InputError(f"{target} already exists; name another file, or move it elsewhere")
    with whole(target) as part, closing(apsw.Connection(str(part))) as copied:
        # The transaction holds one state of the source: neither pages nor counts of a later one are seen.
        with source:
            counts = _row_counts(source)
            copy_pages(source, copied)
        run(copied, "PRAGMA journal_mode = DELETE")
        check_intact(copied, part)
        if _row_counts(copied) != counts:
            raise StoreCorruptError(f"the copy {target.name} differs from its source; copy again")
    return target


def copy_pages(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy a database page by page over another, in one transaction of the other."""
    with target.backup("main", source, "main") as copy:
        while not copy.done:
            copy.step(PAGES)


def check_intact(connection: apsw.Connection, path: Path) -> None:
    """See that SQLite finds no damage."""
    found = run(connection, "PRAGMA integrity_check(1)")
    if found != [("ok",)]:
        raise StoreCorruptError(f"{path} is damaged; it was left untouched. Use another backup")


def _row_counts(connection: apsw.Connection) -> dict[str, int]:
    """Return how many rows each ordinary table holds."""
    # What FTS5 keeps is checked by the integrity check; its tables hold pieces of an index, not rows.
    sql = (
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '*_fts*'"
        " AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    )
    return {name: run(connection, f'SELECT count(*) FROM "{name}"')[0][0] for (name,) in run(connection, sql)}


def unused(folder: Path, stem: str, suffix: str = ".db") -> Path:
    """Return the path of a file that is not there yet: the stem, or the stem and a number."""
    path, number = folder / f"{stem}{suffix}", 2
    while path.exists():
        path, number = folder / f"{stem}-{number}{suffix}", number + 1
    return path
