"""Checks of the derived LanceDB files, which have no checksums of their own: ours over each file, and row by row."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.lance.table import LanceIndex, rows_of, table_name
from perdure.regex import lazy
from perdure.store import outbox
from perdure.store.fact import live_sql
from perdure.store.folder import FILE_MODE, LANCE_SUMS
from perdure.store.sql import run
from perdure.store.store import Store

"""Beside the folder; `sha256sum -c` can read it too."""
BEHIND_LIMIT = 10**9
_LINE = lazy(r"([0-9a-f]{64})  (\S.*)")
_MUTABLE = lazy(r"latest_version_hint|#|\.tmp|tmp_")


@dataclass(frozen=True, slots=True)
class IndexDrift:
    """In which facts LanceDB and SQLite disagree; what still waits in the outbox is left out."""

    missing: frozenset[str]  # live facts with a vector that LanceDB lacks
    orphaned: frozenset[str]  # rows of LanceDB that are no current fact
    different: frozenset[str]  # rows that say something else than SQLite, or are there twice

    def __bool__(self) -> bool:
        """Whether they disagree in anything."""
        return bool(self.missing or self.orphaned or self.different)


def record_files(store: Store, *, pruned: bool = False) -> None:
    """Note the checksums of files that are new. For the worker, after each write."""
    known = _recorded(store)
    present = set(_immutable(store))
    fresh = {name: _digest(store.folder / name) for name in sorted(present - known.keys())}
    if pruned and known.keys() - present:
        kept = {name: digest for name, digest in known.items() if name in present} | fresh
        temporary = store.folder / f"{LANCE_SUMS}.tmp"
        temporary.unlink(missing_ok=True)
        _append(temporary, kept)
        temporary.replace(store.folder / LANCE_SUMS)
    elif fresh:
        _append(store.folder / LANCE_SUMS, fresh)


def missing_files(store: Store) -> list[str]:
    """Return the noted files of the store's table that are not there. Cheap: nothing is read."""
    return sorted(name for name in _noted(store) if not (store.folder / name).exists())


def check_files(store: Store) -> list[str]:
    """Read every file of the store's table that has been noted and compare its checksum.

    A worker may clean up meanwhile, so what looks wrong is looked at twice.

    Returns a line for each file that differs or is missing; none if all is well.
    """
    suspects = _wrong(store, _noted(store))
    again = {name: digest for name, digest in _noted(store).items() if name in suspects} if suspects else {}
    return [f"{name}: {problem}" for name, problem in sorted(_wrong(store, again).items())]


def compare(store: Store) -> IndexDrift:
    """Compare each row of LanceDB with what SQLite says about its fact."""
    space = store.space()
    if space is None:
        return IndexDrift(frozenset(), frozenset(), frozenset())
    # The outbox first: what the worker finishes after this look is in the table already.
    with store.database.read() as connection:
        behind = outbox.pending(connection, BEHIND_LIMIT) or set()
        known = outbox.index_state(connection, space.id)
    index = LanceIndex(store.lance_folder, space.id, space.dims, create=False, generation=known.generation)
    seen: set[str] = set()
    orphaned: set[str] = set()
    different: set[str] = set()
    try:
        for chunk in index.chunks(_FIELDS):
            ids = chunk["id"].to_pylist()
            # Rows that have expired since they were written may stay: the search leaves them out.
            truth = {row["id"]: _hash(row) for row in rows_of(store.database, ids, space.id, -math.inf)}
            for row in chunk.to_pylist():
                fact_id = row["id"]
                if fact_id not in truth:
                    orphaned.add(fact_id)
                elif fact_id in seen or _hash(row) != truth[fact_id]:
                    different.add(fact_id)
                seen.add(fact_id)
    finally:
        index.close()
    missing = _required(store, space.id) - seen
    return IndexDrift(frozenset(missing - behind), frozenset(orphaned - behind), frozenset(different - behind))


_FIELDS = ("id", "text", "vector", "importance", "category", "scope", "created_at", "expires_at")


def _hash(row: Mapping[str, Any]) -> bytes:
    import numpy as np

    vector = row["vector"]
    digest = hashlib.sha256(vector if isinstance(vector, bytes) else np.asarray(vector, dtype="<f4").tobytes())
    values = [row[name] for name in _FIELDS if name not in ("vector", "importance")]
    digest.update(repr((*values, float(np.float32(row["importance"])))).encode())
    return digest.digest()


def _required(store: Store, space_id: str) -> set[str]:
    condition, values = live_sql(store.clock.now())
    sql = f"SELECT facts.id FROM facts JOIN vectors v ON v.fact_id = facts.id AND v.embedding_id = ? WHERE {condition}"
    with store.database.read() as connection:
        return {row[0] for row in run(connection, sql, (space_id, *values))}


def _noted(store: Store) -> dict[str, str]:
    # Tables of spaces and generations that were left may go at any time.
    space = store.space()
    if space is None:
        return {}
    with store.database.read() as connection:
        known = outbox.index_state(connection, space.id)
    folder = f"{store.lance_folder.name}/{table_name(space.id, known.generation)}.lance/"
    return {name: digest for name, digest in _recorded(store).items() if name.startswith(folder)}


def _wrong(store: Store, noted: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, digest in noted.items():
        try:
            if _digest(store.folder / name) != digest:
                found[name] = "altered"
        except FileNotFoundError:
            found[name] = "missing"
        except OSError as error:
            found[name] = f"unreadable ({type(error).__name__})"
    return found


def _recorded(store: Store) -> dict[str, str]:
    try:
        text = (store.folder / LANCE_SUMS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    # A line that a kill has cut off is no line; its file is noted again.
    lines = text.split("\n")[:-1]
    return {found[2]: found[1] for line in lines if (found := _LINE.fullmatch(line))}


def _append(path: Path, sums: Mapping[str, str]) -> None:
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE), "r+b") as file:
        file.seek(file.read().rfind(b"\n") + 1)
        file.write("".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode())
        file.truncate()


def _immutable(store: Store) -> Iterator[str]:
    """Yield the files that LanceDB never changes once they are there, relative to the data folder."""
    for folder, _, names in os.walk(store.lance_folder):
        for name in names:
            if not _MUTABLE.search(name):
                yield (Path(folder) / name).relative_to(store.folder).as_posix()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
