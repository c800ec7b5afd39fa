"""The jobs of the worker process: backups, comparing the stores with each other, and tidying up their files."""

from __future__ import annotations

from contextlib import suppress

from perdure.background.scheduler import Pause
from perdure.store.backup import BackupFile, backup, backups, backups_folder, vault_of
from perdure.store.database import run
from perdure.store.folder import sync_folder
from perdure.store.store import Store
from perdure.store.verify import REPAIRABLE_UNASKED, fix, verify

FREE_SHARE = 0.25
"""The file is written anew when so much of it is free."""
FREE_PAGES = 1_000
MERGE_PAGES = 500
UNFINISHED = 86_400.0
"""Seconds after which a copy that was not finished is what a killed process has left behind."""


def rotate(store: Store, keep: int) -> str:
    """Write a verified backup and remove the oldest ones beyond `keep`, and what was never finished.

    Returns:
        One line about it.

    Raises:
        StoreError: it could not be written; then none is removed either.
    """
    made = backup(store)
    old = [file for file in backups(store.folder) if file.kind == "backup" and file.path != made][keep - 1 :]
    for file in old:
        _remove(file)
    for part in backups_folder(store.folder).glob("*.part*"):
        # Another process may be just about to finish its own.
        with suppress(FileNotFoundError):
            if store.clock.now() - part.stat().st_mtime > UNFINISHED:
                part.unlink()
    sync_folder(made.parent)
    return f"{made.name}" + (f", {len(old)} older removed" if old else "")


def reconcile(store: Store, pause: Pause) -> str:
    """Compare everything with everything, and mend what can be made anew from the facts; return one line about it.

    What only a person can judge, as a fact that was changed behind our back, is named and left as it is.

    Raises:
        StoreError: a repair could not be written.
    """
    found = verify(store, lambda name: pause())
    ours = [finding for finding in found if finding.repair in REPAIRABLE_UNASKED]
    left = fix(store, ours) if ours else found
    names = "; ".join(dict.fromkeys(finding.what for finding in left))
    mended = f"{len(ours)} mended" if ours else "all agree"
    return f"{mended}, {len(left)} left: {names}; see perdure verify" if left else mended


def tidy(store: Store, pause: Pause) -> str:
    """Let SQLite look after its statistics, merge the index of words, and give back much free room.

    Raises:
        StoreError: the database could not be written.
    """
    with store.database.write(durable=False) as connection:
        run(connection, "INSERT INTO facts_fts (facts_fts, rank) VALUES ('merge', ?)", (MERGE_PAGES,))
    pause()
    with store.database.read() as connection:
        run(connection, "PRAGMA optimize")
        pages: int = run(connection, "PRAGMA page_count")[0][0]
        free: int = run(connection, "PRAGMA freelist_count")[0][0]
        if free < max(FREE_PAGES, FREE_SHARE * pages):
            return f"{free} of {pages} pages are free: the file stays as it is"
        pause()
        run(connection, "VACUUM")
    return f"{free} of {pages} pages given back"


def _remove(file: BackupFile) -> None:
    file.path.unlink(missing_ok=True)
    vault_of(file.path).unlink(missing_ok=True)
