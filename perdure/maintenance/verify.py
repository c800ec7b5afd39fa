"""Looking at everything in a data folder, and repairing what can be repaired from what is sound.

The truth is never repaired by guessing: a damaged facts.db is reported and left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime

from perdure.errors import InputError, StoreError, StoreUnavailableError
from perdure.files.shared_log import log_of
from perdure.hooks.types import Channel
from perdure.maintenance import checks
from perdure.parts import part
from perdure.regex import lazy
from perdure.store import outbox, triggers
from perdure.store.finding import Finding
from perdure.store.folder import FILE_MODE, FOLDER_MODE
from perdure.store.rollback_guard import Place, Remembered
from perdure.store.seals import drop_parts, seal, seal_fact
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.normalise import NORMALISER_VERSION

AUTHOR = Author(Channel.CLI, "verify")
Check = Callable[[Store], Iterator[Finding]]
CHECKS: dict[str, Check] = {
    "truth": checks.truth,
    "permissions": checks.permissions,
    "pages": checks.pages,
    "schema": checks.schema,
    "content": checks.content,
    "words": checks.words,
    "index": lambda store: part("lance.drift").drift(store),
    "queues": checks.queues,
    "files": checks.index_of_files,
    "conversations": checks.conversations,
    "sqlite": checks.sqlite_version,
}
"""In the order in which they are done."""
OF_A_FILE = frozenset({"truth", "pages", "schema", "words", "sqlite"})
"""Checks of facts.db as a file; a server looks after its own."""
HARMLESS = frozenset({"permissions"})
"""Repairs that are done also while facts.db is damaged: then what is derived from it may be all that is left."""
REPAIRABLE_UNASKED = HARMLESS | {"row", "index", "words", "vectors", "outbox", "orphans", "tombstones", "files"}
"""Repairs that only make anew what is derived; all others accept or note something."""
_LINE = lazy(r"perdure-anchor 1 ([0-9a-f]{16}) (\d+) ([0-9A-F]{32}|-) (\S+)")


def verify(store: Store, done: Callable[[str], None] = lambda name: None) -> list[Finding]:
    """Look at everything and return what is not as it should be; nothing is changed."""
    found: list[Finding] = []
    for name, check in CHECKS.items():
        if store.database.shared and name in OF_A_FILE:
            continue
        try:
            found.extend(check(store))
        except (StoreError, AttributeError, LookupError, TypeError, ValueError) as error:
            # A damaged file may bring anything: a row that is not there, a text where a number was.
            # The full-text index can be built anew from the facts, whatever is wrong with it.
            repair = "words" if name == "words" else ""
            what = f"check of {name} failed ({type(error).__name__})"
            found.append(Finding(what, "facts.db", checks.MEND, repair))
        done(name)
    return list(dict.fromkeys(found))


def fix(store: Store, findings: Iterable[Finding], only: Collection[str] | None = None) -> list[Finding]:
    """Repair what can be repaired, then look again.

    If facts.db is damaged, or not what the folder remembers, nothing in it or derived from it is touched. `only` names
    the repairs that may be done. Return what is left.
    """
    found = list(findings)
    damaged = any(not finding.fixable and finding.hint in checks.UNSOUND for finding in found)
    wanted: dict[str, list[str]] = {}
    for finding in found:
        allowed = finding.repair in HARMLESS or (not damaged and (only is None or finding.repair in only))
        if finding.fixable and allowed:
            wanted.setdefault(finding.repair, []).append(finding.where)
    for name, repair in REPAIRS.items():
        if name in wanted:
            repair(store, wanted[name])
    return verify(store)


def _orphans(store: Store, _: list[str]) -> None:
    # Looked up again: a fact that has just been brought back has its vector and links again.
    with store.database.write() as connection:
        for table, row, *_ in run(connection, "PRAGMA foreign_key_check"):
            columns = {"vectors": "fact_id", "memory_links": "source_fact_id", "triggers": "fact_id"}
            column = (columns | {"trigger_vectors": "trigger_id"}).get(table)
            if column is not None:
                sql = f"DELETE FROM {table} WHERE rowid = ? RETURNING {column}"
                for (fact_id,) in run(connection, sql, (row,)):
                    there = run(connection, "SELECT 1 FROM facts WHERE id = ?", (fact_id,))
                    (seal_fact if there else drop_parts)(connection, fact_id)


def _lost(store: Store, places: list[str]) -> None:
    try:
        found = part("lance.drift").rescued(store, places)
    except StoreUnavailableError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            raise  # the table may have them
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
            triggers.drop_vectors(tx.connection, fact_id)
            tx.queue(fact_id)
            seal_fact(tx.connection, fact_id)


def _seals(store: Store, places: list[str]) -> None:
    with store.write(AUTHOR) as tx:
        for fact_id in dict.fromkeys(place.partition(" ")[0] for place in places):
            tx.journal("accept", fact_id)
        seal(tx.connection)


def _words(store: Store, _: list[str]) -> None:
    with store.database.write() as connection:
        checks.rebuild_words(connection)
        run(connection, "UPDATE meta SET value = ? WHERE key = 'normaliser'", (str(NORMALISER_VERSION),))


def _tombstones(store: Store, _: list[str]) -> None:
    remembered = Remembered.read(store.folder)
    with store.database.write() as connection:
        rows = [(tombstone,) for tombstone in remembered.tombstones] if remembered else []
        connection.executemany("INSERT INTO tombstones VALUES (?) ON CONFLICT DO NOTHING", rows)


def _outbox(store: Store, _: list[str]) -> None:
    store.database.apply(run, "UPDATE outbox SET parked = NULL, attempts = 0 WHERE parked IS NOT NULL")


def _rows(store: Store, places: list[str]) -> None:
    with store.database.write() as connection:
        for fact_id in places:
            outbox.queue(connection, fact_id, store.clock.now())


def _permissions(store: Store, places: list[str]) -> None:
    for place in places:
        path = store.folder / place
        path.chmod(FOLDER_MODE if path.is_dir() else FILE_MODE)


REPAIRS: dict[str, Callable[[Store, list[str]], object]] = {
    "permissions": _permissions,
    "lost": _lost,
    "orphans": _orphans,
    "vectors": _vectors,
    "seals": _seals,
    "words": _words,
    "outbox": _outbox,
    "tombstones": _tombstones,
    "row": _rows,
    "index": lambda store, _: part("lance.drift").drop_index(store),
    "files": lambda store, _: checks.drop_index_of_files(store),
    "conversations": lambda store, _: log_of(store).accept(),
}
"""In the order in which they are done."""


# An anchor says where a store was, for its owner to keep elsewhere: who puts a whole data folder back as it was puts
# back what it remembers, too. Only what lies outside tells.


def anchor(store: Store) -> str:
    """Return the anchor of a store as it is now: a line of its name, the change it is at, that change's seal, the time.

    Nobody can tell from it what is stored, and it need not be kept secret.
    """
    place = store.database.query(Place.of)
    at = datetime.fromtimestamp(store.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"perdure-anchor 1 {place.store} {place.seq} {place.seal or '-'} {at}"


def unanchored(store: Store, text: str) -> Iterator[Finding]:
    """Yield every anchor in a text, one a line, that the store does not come through; InputError if there is none."""
    found = _LINE.findall(text)
    if not found:
        raise InputError("it has no anchor; `perdure anchor` prints one")
    with store.database.read() as connection:
        own = Place.of(connection).store
        for name, seq, sealed, at in found:
            where = f"anchor of {at}, change {seq}"
            if name != own:
                yield Finding("anchor is from another store", where, "check that this is the right folder")
            elif not Place(name, int(seq), sealed.strip("-")).is_in(connection):
                shared = store.database.shared
                todo = "restore a later backup of the server" if shared else checks.RECOVER
                hint = f"{todo}; if you rolled back on purpose, keep a new anchor"
                yield Finding(f"{'the database' if shared else 'facts.db'} is older than an anchor", where, hint)
