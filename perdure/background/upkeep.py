"""The jobs that look after a store: expiry, backups, exports, comparing stores with each other, tidying up files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from perdure.background.scheduler import Pause
from perdure.maintenance.backup import BackupFile, backup, backups, vault_of
from perdure.maintenance.exports import daily_export, newest_export
from perdure.maintenance.verify import REPAIRABLE_UNASKED, fix, verify
from perdure.store.folder import sync_folder
from perdure.store.store import Store

UNFINISHED = 86_400.0
"""Seconds after which a copy that was not finished is what a killed process has left behind."""


def rotate(store: Store, keep: int) -> str:
    """Write a verified backup, remove the oldest beyond `keep` and what was unfinished; return one line about it."""
    if store.database.shared:
        return "PostgreSQL has its own backups"
    made = backup(store)
    old = [file for file in backups(store.folder) if file.kind == "backup" and file.path != made][keep - 1 :]
    for file in old:
        _remove(file)
    _drop_unfinished(made.parent, store.clock.now())
    sync_folder(made.parent)
    return f"{made.name}" + (f", {len(old)} older removed" if old else "")


def export_day(store: Store, keep: int, pause: Pause) -> str:
    """Write the day's export if anything has changed since the last one; return one line about it."""
    made = daily_export(store, keep, pause=pause)
    if made is None:
        last = newest_export(store)
        return f"no changes since {last.path.name}" if last else "no changes"
    _drop_unfinished(made.parent, store.clock.now())
    return made.name


def reconcile(store: Store, pause: Pause) -> str:
    """Compare everything with everything, and mend what can be made anew from the facts; return one line about it.

    What only a person can judge, as a fact that was changed behind our back, is named and left as it is.
    """
    found = verify(store, lambda name: pause())
    ours = [finding for finding in found if finding.repair in REPAIRABLE_UNASKED]
    left = fix(store, found, REPAIRABLE_UNASKED) if ours else found
    names = "; ".join(dict.fromkeys(finding.what for finding in left))
    mended = len([finding for finding in ours if finding not in left])
    said = f"{mended} repaired" if mended else "all agree"
    return f"{said}, {len(left)} left: {names}; see perdure verify" if left else said


def _drop_unfinished(folder: Path, now: float) -> None:
    for part in folder.glob("*.part*"):
        # Another process may be just about to finish its own.
        with suppress(FileNotFoundError):
            if now - part.stat().st_mtime > UNFINISHED:
                part.unlink()


def _remove(file: BackupFile) -> None:
    file.path.unlink(missing_ok=True)
    vault_of(file.path).unlink(missing_ok=True)
