"""Purges of other machines, where several share a store: each machine takes what is gone out of its own folder.

The texts are known to nobody any more by then. So everything in the folder that is of a fact which the store no longer
has goes: what an export says of it, and what the files of conversations and their index held of it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from perdure.files import registry, rows
from perdure.files.index import FileIndex
from perdure.files.options import FilesOptions
from perdure.files.shared_log import log_of
from perdure.maintenance.exports import exports_folder, take_out
from perdure.store.folder import alone, prepare_folder, private_file
from perdure.store.history import REMOVALS
from perdure.store.inbox_lines import drop as drop_damaged
from perdure.store.sql import Connection, marks, run
from perdure.store.store import Store

FILE = Path("transcripts", "purges")
"""The file that says for which state of the purges the folder was cleaned, beside the one of what it has read."""
PATIENCE = 60.0
"""Seconds that a purge waits while another thread cleans a folder."""
_turn = threading.Lock()


class State(NamedTuple):
    """How many purges there were, how many of them were not certified yet, and when the last one was asked for."""

    purges: int
    pending: int
    last: float


def follow(store: Store, options: FilesOptions) -> bool:
    """Clean the folder after purges that other machines have made; cheap while there are none.

    It waits until nobody else has the folder open: who does may be about to write what was read before the purge.
    Return whether there was something to do, and it is done; repeat it later after an error.
    """
    if not store.database.shared:
        return False
    now = store.database.query(state)
    if now == followed(store.folder):
        return False
    with turn(0.0) as mine, alone(store.folder) as free:
        if not mine or not free or store.inbox.waiting:
            return False
        _clean(store, options)
        note(store.folder, now)
    return True


@contextmanager
def turn(patience: float = PATIENCE) -> Iterator[bool]:
    """Keep two threads of this process from taking each other for another process that works alone in a folder."""
    mine = _turn.acquire(timeout=patience)
    try:
        yield mine
    finally:
        if mine:
            _turn.release()


def state(connection: Connection, *, certified: bool = False) -> State:
    """Return the state of the purges, or of those that are certified alone."""
    # No number of the last one would do: clocks differ, and a server may be taken back to a former time.
    only = "WHERE state = 'certified'" if certified else ""
    sql = f"SELECT count(*), count(needles), coalesce(max(asked_at), 0.0) FROM purges {only}"
    return State(*run(connection, sql)[0])


def followed(folder: Path) -> State:
    """Return for which state of the purges a folder was cleaned."""
    try:
        purges, pending, last = (folder / FILE).read_text(encoding="ascii").split()
        return State(int(purges), int(pending), float(last))
    except (OSError, ValueError):
        return State(0, 0, 0.0)


def note(folder: Path, cleaned: State) -> None:
    """Note for which state of the purges a folder is clean now."""
    prepare_folder((folder / FILE).parent)
    private_file(folder / FILE).write_text(" ".join(map(repr, cleaned)), encoding="ascii")


def _clean(store: Store, options: FilesOptions) -> None:
    # No search finds a text in them.
    drop_damaged(store.folder / "inbox")
    store.inbox.empty()
    log = log_of(store)
    log.pull()
    with closing(FileIndex(store, options)) as index:
        if index.generations.live() is not None:
            index.sync(registry.roots(store, log), patience=-1)
            drop_unused(index)
    if exports_folder(store.folder).is_dir():
        take_out(store, *_changed(store))


def _changed(store: Store) -> tuple[frozenset[str], frozenset[str]]:
    """Return the ids of facts that a scrub has rewritten, and of those that are gone."""
    gone = (
        f"SELECT DISTINCT j.fact_id FROM journal j WHERE j.action IN ({marks(REMOVALS)})"
        " AND NOT EXISTS (SELECT 1 FROM facts f WHERE f.id = j.fact_id)"
    )
    with store.database.read() as connection:
        details = [json.loads(detail) for (detail,) in run(connection, "SELECT detail FROM purges")]
        left = frozenset(fact_id for (fact_id,) in run(connection, gone, REMOVALS))
    return frozenset(fact_id for each in details if each.get("scrub") for fact_id in each["facts"]), left


def drop_unused(index: FileIndex) -> None:
    """Leave nothing in an index, or in its log, of what is not in it any more."""
    generation = index.generations.live()
    if generation is None:
        return
    with generation.database.write() as connection:
        rows.trim_cache(connection, 0)
        # What is deleted from an index of words stays in it until its parts are merged.
        for name in ("chunks_fts", "files_fts"):
            run(connection, f"INSERT INTO {name} ({name}) VALUES ('optimize')")
    with generation.database.read() as connection:
        run(connection, "VACUUM")
        run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
