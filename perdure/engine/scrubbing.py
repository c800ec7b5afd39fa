"""A whole data folder passed through the present redactor: facts, receipts, conversations, exports, the index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perdure.background.worker_process import WorkerProcess
from perdure.engine.file_purge import cleaner, redact_again
from perdure.files.options import FilesOptions
from perdure.maintenance import exports
from perdure.maintenance.purge import CERTIFIED, certify
from perdure.maintenance.scrub import done, find, is_due, scrub
from perdure.store.inbox_lines import redact_again as redact_damaged
from perdure.store.store import Store
from perdure.store.transaction import Author


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """What a scrub has changed, or would change.

    Attributes:
        facts: ids of memories.
        receipts: how many receipts.
        parked: how many turns that were put aside.
        conversations: how many recorded conversations; a dry run does not look at them.
        exports: how many exports in exports/; a dry run does not look at them.
        state: "certified" if a byte search finds no old text any more, "pending" while another process has the
            store open, else "nothing" or "dry run".
        waiting: what a pending one waits for.
    """

    facts: tuple[str, ...]
    receipts: int
    parked: int
    conversations: int = 0
    state: str = "nothing"
    waiting: str | None = None
    exports: int = 0


def scrub_folder(
    store: Store,
    options: FilesOptions,
    author: Author,
    dry_run: bool = False,
    pause: Callable[[], object] = lambda: None,
    worker: WorkerProcess | None = None,
) -> Scrubbed:
    """Pass everything in a data folder through the present redactor. Can be repeated after a kill.

    Args:
        store: the truth.
        options: of the index of files.
        author: who stands in the journal.
        dry_run: only say what would be changed.
        pause: called now and then, to let turns go first.
        worker: is stopped before the byte search, for which it would count as another process.

    Raises:
        StoreError: something could not be written.
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
