"""The derived LanceDB table against SQLite: what differs, what it can give back, and beginning it anew."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perdure.errors import StoreUnavailableError
from perdure.hooks.types import Channel
from perdure.lance.files import check_files, compare
from perdure.lance.table import LanceIndex
from perdure.store import outbox
from perdure.store.fact import Fact
from perdure.store.finding import Finding
from perdure.store.folder import LANCE_SUMS
from perdure.store.history import REMOVALS
from perdure.store.outbox import IndexState
from perdure.store.scope import Scope
from perdure.store.spaces import VectorSpace
from perdure.store.sql import Connection, newest, run
from perdure.store.store import Store
from perdure.store.transaction import StoredVector

ASIDE = "lancedb-purged"
"""Where a table goes before it is removed: nobody may find half of one."""
RESCUE = "facts.db has lost it: perdure verify --fix, else perdure recover"
_MISSING = "fact is missing in LanceDB"
_NOT_LIVE = "LanceDB holds a row that is no live fact"
_FIELDS = ("id", "text", "vector", "importance", "category", "scope", "created_at", "expires_at")


def drift(store: Store) -> Iterator[Finding]:
    """Compare the table's files with their checksums, and its rows with SQLite.

    What the outbox names may differ, and what is changed during the look.
    """
    space = store.space()
    if space is None or not _known(store, space).version:
        return
    with store.database.read() as connection:
        since = newest(connection)
    yield from (
        Finding("LanceDB file is damaged", problem, "the table is built anew", "index")
        for problem in check_files(store)
    )
    try:
        found = compare(store)
    except StoreUnavailableError as error:
        cause = type(error.__cause__ or error).__name__
        yield Finding(f"LanceDB cannot be read ({cause})", "lancedb", "the table is built anew", "index")
        return
    with store.database.read() as connection:
        changed = {row[0] for row in run(connection, "SELECT fact_id FROM journal WHERE seq > ?", (since,))}
        removable = {fact_id for fact_id in found.orphaned if _left(connection, fact_id)}
    for what, hint, fact_ids in (
        (_MISSING, "it is indexed again", found.missing),
        (_NOT_LIVE, "it is removed", removable),
        ("LanceDB holds other content", "it is indexed again", found.different),
    ):
        yield from (Finding(what, fact_id, hint, "row") for fact_id in sorted(fact_ids - changed))
    # It may be all that is left of a memory.
    yield from (Finding(_NOT_LIVE, fact_id, RESCUE) for fact_id in sorted(found.orphaned - removable - changed))


def unproved(store: Store) -> int:
    """Return in how many places the table is not what SQLite would make of it anew; what it lacks does not count."""
    return sum(
        finding.what != _MISSING and not (finding.what == _NOT_LIVE and finding.fixable) for finding in drift(store)
    )


def _left(connection: Connection, fact_id: str) -> bool:
    """Return whether a fact that has no place in the table left it by our own doing, not by damage to facts.db."""
    if run(connection, "SELECT 1 FROM facts WHERE id = ?", (fact_id,)):
        return True
    last = run(connection, "SELECT action FROM journal WHERE fact_id = ? ORDER BY seq DESC LIMIT 1", (fact_id,))
    return bool(last) and last[0][0] in REMOVALS


def drop_index(store: Store) -> None:
    """Remove the tables of all spaces with all their versions, and have the present one built anew from SQLite.

    Can be repeated after a kill.
    """
    space = store.space()
    if space is not None and _known(store, space).version:
        with store.database.write() as connection:
            generation = outbox.index_state(connection, space.id).generation + 1
            outbox.queue_all(connection, space.id, store.clock.now())
            outbox.put_index_state(connection, space.id, IndexState(generation))
    aside = store.folder / ASIDE
    shutil.rmtree(aside, ignore_errors=True)
    (store.folder / LANCE_SUMS).unlink(missing_ok=True)
    if store.lance_folder.exists():
        store.lance_folder.replace(aside)
        shutil.rmtree(aside)


def rescued(store: Store, fact_ids: Sequence[str]) -> list[tuple[Fact, StoredVector]]:
    """Return what the table still has of facts that SQLite has lost. Their channel stands in the journal."""
    import numpy as np

    space = store.space()
    if space is None:
        return []
    generation = _known(store, space).generation
    index = LanceIndex(store.lance_folder, space.id, space.dims, create=False, generation=generation)
    wanted = set(fact_ids)
    try:
        rows = [row for chunk in index.chunks(_FIELDS) for row in chunk.to_pylist() if row["id"] in wanted]
    finally:
        index.close()
    vectors = [StoredVector(space.id, np.asarray(row["vector"], dtype="<f4").tobytes()) for row in rows]
    return [(_fact(store, row), vector) for row, vector in zip(rows, vectors, strict=True)]


def _fact(store: Store, row: Mapping[str, Any]) -> Fact:
    sql = "SELECT channel FROM journal WHERE action = 'add' AND fact_id = ? ORDER BY seq LIMIT 1"
    with store.database.read() as connection:
        added = run(connection, sql, (row["id"],))
    scope = Scope.parse(row["scope"])
    return Fact(
        row["text"],
        id=row["id"],
        category=row["category"],
        importance=row["importance"],
        channel=Channel(added[0][0]) if added else Channel.UNKNOWN,
        created_at=row["created_at"],
        expires_at=None if math.isinf(row["expires_at"]) else row["expires_at"],
        scope=scope.kind,
        scope_target=scope.target,
        extraction_method="rescued",
    )


def _known(store: Store, space: VectorSpace) -> IndexState:
    with store.database.read() as connection:
        return outbox.index_state(connection, space.id)
