"""What purges and scrubs do to conversations and to the index of files, and the scrub of a whole data folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from perdure.background.worker_process import WorkerProcess
from perdure.files import registry
from perdure.files.index import FileIndex
from perdure.files.options import FilesOptions
from perdure.files.shared_log import log_of
from perdure.files.transcript_log import TranscriptLog
from perdure.maintenance import exports
from perdure.maintenance.purge import CERTIFIED, certify
from perdure.maintenance.remote_purges import drop_unused
from perdure.maintenance.scrub import done, find, is_due, scrub
from perdure.secrets.redact import redact
from perdure.store.inbox_lines import redact_again as redact_damaged
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.store.transaction import Author


def cleaner(store: Store, options: FilesOptions) -> Callable[[Sequence[str]], None]:
    """Return what takes texts out of the recorded conversations and of the index of a store.

    What stands in the owner's own files, or in those that a host keeps, stays there and in the index: a purge
    names it instead.
    """

    def clean(texts: Sequence[str]) -> None:
        log = log_of(store)
        with closing(FileIndex(store, options)) as index:
            scrubbed = log.scrub(texts) if texts else 0
            sql = "SELECT 1 FROM chunks WHERE instr(text, ?) LIMIT 1"
            if scrubbed or _any(index, lambda connection: any(run(connection, sql, (text,)) for text in texts)):
                _build_anew(index, store, log)

    return clean


def redact_again(store: Store, options: FilesOptions) -> int:
    """Redact the recorded conversations and the index of files again; return how many conversations changed."""
    log = log_of(store)
    with closing(FileIndex(store, options)) as index:
        changed = log.redact_again()
        sql = "SELECT text FROM chunks"
        if changed or _any(index, lambda connection: any(redact(text).kinds for (text,) in run(connection, sql))):
            _build_anew(index, store, log)
        return changed


def _any(index: FileIndex, holds: Callable[[Connection], bool]) -> bool:
    """Return whether the live generation of the index, if there is one, holds something."""
    generation = index.generations.live()
    return generation is not None and generation.database.query(holds)


def _build_anew(index: FileIndex, store: Store, log: TranscriptLog) -> None:
    # From nothing, so that no free page and no vector of what is gone stays behind.
    index.sync(registry.roots(store, log), force=True, patience=-1)
    drop_unused(index)


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """The result of a scrub, or of its dry run, which checks no conversations and no exports."""

    facts: tuple[str, ...]  # ids of memories
    receipts: int
    parked: int  # turns that were set aside
    conversations: int = 0
    # "certified" if a byte search finds no old text, "pending" while another process has the store open, else
    # "nothing" or "dry run".
    state: str = "nothing"
    waiting: str | None = None  # what a pending scrub waits for
    exports: int = 0


def scrub_folder(
    store: Store, options: FilesOptions, author: Author, dry_run: bool = False,
    pause: Callable[[], object] = lambda: None, worker: WorkerProcess | None = None,
) -> Scrubbed:  # fmt: skip
    """Pass everything in a data folder through the present redactor. Can be repeated after a kill.

    The worker is stopped before the byte search, for which it would count as another process.
    """
    found = find(store, pause)
    damaged = redact_damaged(store.folder / "inbox", dry_run=dry_run)
    counts = found.facts, len(found.receipts), len(found.parked) + damaged
    if dry_run:
        return Scrubbed(*counts, state="dry run")
    name = scrub(store, found, author)
    conversations = redact_again(store, options)
    exported = exports.redact_again(store, pause)
    done(store)
    if name is None:
        state = CERTIFIED if conversations or exported or damaged else "nothing"
        return Scrubbed(*counts, conversations, state, exports=exported)
    if worker is not None:
        worker.stop()
    [ended] = [purge for purge in certify(store, cleaner(store, options)) if purge.id == name]
    return Scrubbed(*counts, conversations, ended.state, ended.waiting, exported)


def scrub_if_due(store: Store, run: Callable[[], object]) -> None:
    """Scrub once after the redactor has learned more."""
    if is_due(store):
        run()
