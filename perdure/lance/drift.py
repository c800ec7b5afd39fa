"""The derived LanceDB table against SQLite: what differs, what it can give back, and beginning it anew."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.embed.load import sha256_of
from perdure.errors import StoreUnavailableError
from perdure.hooks.types import Channel
from perdure.lance.table import LanceIndex, Place, drop_at, fact_of, place_of, rows_of, table_name, url_of
from perdure.regex import lazy
from perdure.store import outbox
from perdure.store.fact import Fact, live_sql
from perdure.store.finding import Finding
from perdure.store.folder import FILE_MODE, LANCE_SUMS
from perdure.store.history import REMOVALS
from perdure.store.outbox import IndexState
from perdure.store.spaces import VectorSpace
from perdure.store.sql import Connection, newest, run
from perdure.store.store import ObjectStore, Store
from perdure.store.transaction import StoredVector

ASIDE = "lancedb-purged"
"""Where a table goes before it is removed: nobody may find half of one."""
RESCUE = "facts.db has lost it: perdure verify --fix, else perdure recover"
_MISSING = "memory is missing from LanceDB"
_NOT_LIVE = "LanceDB has a row without a live memory"
_FIELDS = ("id", "text", "vector", "importance", "category", "scope", "created_at", "expires_at")
_BEHIND_LIMIT = 10**9
_LINE = lazy(r"([0-9a-f]{64})  (\S.*)")
_MUTABLE = lazy(r"latest_version_hint|#|\.tmp|tmp_")


def drift(store: Store) -> Iterator[Finding]:
    """Compare the table's files with their checksums, and its rows with SQLite.

    What the outbox names may differ, and what is changed during the look.
    """
    space = store.space()
    if space is None:
        return
    known = index_state(store, space)
    # One that is yet to move is compared by who moves it.
    if known.version and known.url == url_of(place_of(store)):
        yield from _drift(store, place_of(store))


def _drift(store: Store, place: Place) -> Iterator[Finding]:
    since = store.database.query(newest)
    yield from (
        Finding("LanceDB file is damaged", problem, "the table is rebuilt", "index") for problem in check_files(store)
    )
    try:
        found = compare(store, place)
    except StoreUnavailableError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            # Nothing is known of it, and a fix would remove what may be all that is left of a memory.
            yield Finding("LanceDB table was not compared", "lancedb", str(error))
            return
        cause = type(error.__cause__ or error).__name__
        yield Finding(f"LanceDB cannot be read ({cause})", "lancedb", "the table is rebuilt", "index")
        return
    with store.database.read() as connection:
        changed = {row[0] for row in run(connection, "SELECT fact_id FROM journal WHERE seq > ?", (since,))}
        removable = {fact_id for fact_id in found.orphaned if _left(connection, fact_id)}
    for what, hint, fact_ids in (
        (_MISSING, "it is reindexed", found.missing),
        (_NOT_LIVE, "it is removed", removable),
        ("LanceDB has different content", "it is reindexed", found.different),
    ):
        yield from (Finding(what, fact_id, hint, "row") for fact_id in sorted(fact_ids - changed))
    # It may be all that is left of a memory.
    yield from (Finding(_NOT_LIVE, fact_id, RESCUE) for fact_id in sorted(found.orphaned - removable - changed))


def unproved(store: Store) -> int:
    """Return in how many places the table is not what SQLite would make of it anew; what it lacks does not count.

    It is looked at where it is, wherever it is to be.
    """
    space = store.space()
    known = index_state(store, space) if space is not None else IndexState()
    found = _drift(store, former_place(store, known)) if known.version else ()
    return sum(each.what != _MISSING and not (each.what == _NOT_LIVE and each.fixable) for each in found)


def former_place(store: Store, known: IndexState) -> Place:
    """Return where a table is that may have to move."""
    options = store.objects.options if store.objects else {}
    return ObjectStore(known.url, options) if known.url else store.lance_folder


def _left(connection: Connection, fact_id: str) -> bool:
    """Return whether a fact that has no place in the table left it by our own doing, not by damage to facts.db."""
    if run(connection, "SELECT 1 FROM facts WHERE id = ?", (fact_id,)):
        return True
    last = run(connection, "SELECT action FROM journal WHERE fact_id = ? ORDER BY seq DESC LIMIT 1", (fact_id,))
    return bool(last) and last[0][0] in REMOVALS


def drop_index(store: Store) -> None:
    """Remove the tables of all spaces with all their versions, and have the present one built anew from SQLite.

    Can be repeated after a kill. Where tables elsewhere cannot be reached, StoreUnavailableError.
    """
    space = store.space()
    drop_elsewhere(store)
    if space is not None and index_state(store, space).version:
        with store.database.write() as connection:
            generation = outbox.index_state(connection, space.id).generation + 1
            outbox.queue_all(connection, space.id, store.clock.now())
            outbox.put_index_state(connection, space.id, IndexState(generation))
    drop_folder(store)


def drop_folder(store: Store) -> None:
    """Remove the tables in the data folder with all their versions."""
    aside = store.folder / ASIDE
    shutil.rmtree(aside, ignore_errors=True)
    (store.folder / LANCE_SUMS).unlink(missing_ok=True)
    if store.lance_folder.exists():
        store.lance_folder.replace(aside)
        shutil.rmtree(aside)


def drop_elsewhere(store: Store, of: Iterable[str] | None = None) -> None:
    """Remove the tables of a store that are in no folder, or those of some vector spaces, with all their versions."""
    space, objects = store.space(), store.objects
    # Where they are, and where they are to be.
    known = index_state(store, space).url if space else ""
    for url in sorted({known, objects.url if objects else ""} - {""}):
        drop_at(ObjectStore(url, objects.options if objects else {}), of)


def rescued(store: Store, fact_ids: Sequence[str]) -> list[tuple[Fact, StoredVector]]:
    """Return what the table still has of facts that SQLite has lost. Their channel stands in the journal."""
    import numpy as np

    space = store.space()
    if space is None:
        return []
    known = index_state(store, space)
    if not known.version:
        return []
    wanted = set(fact_ids)
    with closing(_opened(store, space, known.generation)) as index:
        rows = [row for chunk in index.chunks(_FIELDS) for row in chunk.to_pylist() if row["id"] in wanted]
    vectors = [StoredVector(space.id, np.asarray(row["vector"], dtype="<f4").tobytes()) for row in rows]
    return [(_fact(store, row), vector) for row, vector in zip(rows, vectors, strict=True)]


def _fact(store: Store, row: Mapping[str, Any]) -> Fact:
    sql = "SELECT channel FROM journal WHERE action = 'add' AND fact_id = ? ORDER BY seq LIMIT 1"
    added = store.database.query(run, sql, (row["id"],))
    return fact_of(dict(row), Channel(added[0][0]) if added else Channel.UNKNOWN)


def _opened(store: Store, space: VectorSpace, generation: int, place: Place | None = None) -> LanceIndex:
    return LanceIndex(place or place_of(store), space.id, space.dims, create=False, generation=generation)


def index_state(store: Store, space: VectorSpace) -> IndexState:
    """Return what SQLite knows of the table of a space."""
    return store.database.query(outbox.index_state, space.id)


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
    fresh = {name: sha256_of(store.folder / name) for name in sorted(present - known.keys())}
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


def compare(store: Store, place: Place | None = None) -> IndexDrift:
    """Compare each row of LanceDB with what SQLite says about its fact; `place`: where the table is, if elsewhere."""
    space = store.space()
    if space is None:
        return IndexDrift(frozenset(), frozenset(), frozenset())
    # The outbox first: what the worker finishes after this look is in the table already.
    with store.database.read() as connection:
        behind = outbox.pending(connection, _BEHIND_LIMIT) or set()
        generation = outbox.index_state(connection, space.id).generation
    seen: set[str] = set()
    orphaned: set[str] = set()
    different: set[str] = set()
    with closing(_opened(store, space, generation, place)) as index:
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
    missing = _required(store, space.id) - seen
    return IndexDrift(frozenset(missing - behind), frozenset(orphaned - behind), frozenset(different - behind))


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
    return {row[0] for row in store.database.query(run, sql, (space_id, *values))}


def _noted(store: Store) -> dict[str, str]:
    # Tables of spaces and generations that were left may go at any time.
    space = store.space()
    if space is None:
        return {}
    known = index_state(store, space)
    folder = f"{store.lance_folder.name}/{table_name(space.id, known.generation)}.lance/"
    return {name: digest for name, digest in _recorded(store).items() if name.startswith(folder)}


def _wrong(store: Store, noted: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, digest in noted.items():
        try:
            if sha256_of(store.folder / name) != digest:
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
    return {found[2]: found[1] for line in text.split("\n")[:-1] if (found := _LINE.fullmatch(line))}


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
