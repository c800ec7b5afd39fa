"""Looking at everything in a data folder, and repairing what can be repaired from what is sound.

The truth is never repaired by guessing: a damaged facts.db is reported and left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from perdure.errors import StoreError, StoreUnavailableError
from perdure.hooks.types import Channel
from perdure.store import checks
from perdure.store.checks import Finding
from perdure.store.database import run
from perdure.store.drift import drift, drop_index, queue_rows, rescued
from perdure.store.folder import FILE_MODE, FOLDER_MODE
from perdure.store.seals import seal, seal_fact
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.store.words import rebuild_words
from perdure.text.normalise import NORMALISER_VERSION

AUTHOR = Author(Channel.CLI, "verify")
Check = Callable[[Store], Iterator[Finding]]
CHECKS: dict[str, Check] = {
    "permissions": checks.permissions,
    "pages": checks.pages,
    "schema": checks.schema,
    "content": checks.content,
    "words": checks.words,
    "index": drift,
    "queues": checks.queues,
    "sqlite": checks.sqlite_version,
}
"""In the order in which they are done."""
DERIVED = frozenset({"permissions", "row", "index"})
"""Repairs that write no row of a fact: done also while facts.db itself is damaged."""
REPAIRABLE_UNASKED = DERIVED | {"words", "vectors", "outbox", "orphans"}
"""Repairs that only make anew what is derived from the facts; all others accept or note something."""


def verify(store: Store, done: Callable[[str], None] = lambda name: None) -> list[Finding]:
    """Look at everything and return what is not as it should be; nothing is changed.

    Args:
        store: an open store.
        done: called with the name of each check when it is done.
    """
    found: list[Finding] = []
    for name, check in CHECKS.items():
        try:
            found.extend(check(store))
        except (StoreError, AttributeError, LookupError, TypeError, ValueError) as error:
            # A damaged file may bring anything: a row that is not there, a text where a number was.
            # The full-text index can be built anew from the facts, whatever is wrong with it.
            repair = "words" if name == "words" else ""
            what = f"check of {name} broke off ({type(error).__name__})"
            found.append(Finding(what, "facts.db", checks.BACKUP, repair))
        done(name)
    return list(dict.fromkeys(found))


def fix(store: Store, findings: Iterable[Finding]) -> list[Finding]:
    """Repair what can be repaired, then look again.

    Rows of facts are touched only if facts.db is sound as a file.

    Returns:
        What is left.

    Raises:
        StoreError: a repair could not be written.
    """
    found = list(findings)
    damaged = any(not finding.fixable and finding.hint == checks.BACKUP for finding in found)
    wanted: dict[str, list[str]] = {}
    for finding in found:
        if finding.fixable and (not damaged or finding.repair in DERIVED):
            wanted.setdefault(finding.repair, []).append(finding.where)
    for name, repair in REPAIRS.items():
        if name in wanted:
            repair(store, wanted[name])
    return verify(store)


def _orphans(store: Store, places: list[str]) -> None:
    # Looked up again: a fact that has just been brought back has its vector and links again.
    del places
    with store.database.write() as connection:
        for table, row, *_ in run(connection, "PRAGMA foreign_key_check"):
            column = {"vectors": "fact_id", "memory_links": "source_fact_id"}.get(table)
            if column is not None:
                sql = f"DELETE FROM {table} WHERE rowid = ? RETURNING {column}"
                for (fact_id,) in run(connection, sql, (row,)):
                    seal_fact(connection, fact_id)


def _lost(store: Store, places: list[str]) -> None:
    try:
        found = rescued(store, places)
    except StoreUnavailableError:
        found = []  # LanceDB is damaged as well
    with store.write(AUTHOR) as tx:
        for fact_id in places:
            tx.journal("lost", fact_id)
            tx.queue(fact_id)
        for fact, vector in found:
            tx.add(fact, vector)
        seal(tx.connection)


def _vectors(store: Store, places: list[str]) -> None:
    # Facts without a vector get one from the worker.
    with store.write(AUTHOR) as tx:
        for place in places:
            fact_id = place.partition(" ")[0]
            run(tx.connection, "DELETE FROM vectors WHERE fact_id = ?", (fact_id,))
            tx.queue(fact_id)
            seal_fact(tx.connection, fact_id)


def _seals(store: Store, places: list[str]) -> None:
    with store.write(AUTHOR) as tx:
        for fact_id in dict.fromkeys(place.partition(" ")[0] for place in places):
            tx.journal("accept", fact_id)
        seal(tx.connection)


def _words(store: Store, places: list[str]) -> None:
    del places
    with store.database.write() as connection:
        rebuild_words(connection)
        run(connection, "UPDATE meta SET value = ? WHERE key = 'normaliser'", (str(NORMALISER_VERSION),))


def _outbox(store: Store, places: list[str]) -> None:
    del places
    with store.database.write() as connection:
        run(connection, "UPDATE outbox SET parked = NULL, attempts = 0 WHERE parked IS NOT NULL")


def _index(store: Store, places: list[str]) -> None:
    del places
    drop_index(store)


def _permissions(store: Store, places: list[str]) -> None:
    for place in places:
        path = store.folder / place
        path.chmod(FOLDER_MODE if path.is_dir() else FILE_MODE)


REPAIRS: dict[str, Callable[[Store, list[str]], None]] = {
    "permissions": _permissions,
    "lost": _lost,
    "orphans": _orphans,
    "vectors": _vectors,
    "seals": _seals,
    "words": _words,
    "outbox": _outbox,
    "row": queue_rows,
    "index": _index,
}
"""In the order in which they are done."""
