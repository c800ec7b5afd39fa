"""What a purge does to conversations and to the index of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from perdure.background.worker_process import WorkerProcess
from perdure.capture.sentences import clauses, sentences
from perdure.files import registry
from perdure.files.index import FileIndex
from perdure.files.options import FilesOptions
from perdure.files.shared_log import log_of
from perdure.maintenance import exports
from perdure.maintenance.purge import CERTIFIED, certify
from perdure.maintenance.remote_purges import drop_unused
from perdure.maintenance.scrub import done, find, is_due, scrub
from perdure.secrets.redact import redact
from perdure.store.inbox_lines import redact_again as redact_damaged
from perdure.store.seals import is_purged
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.fence import strip_fenced


def cleaner(store: Store, options: FilesOptions) -> Callable[[Sequence[str]], None]:
    """Return what takes texts out of the recorded conversations and of the index of a store.

    What stands in the owner's own files, or in those that a host keeps, stays there and in the index: a purge
    names it instead.
    """

    def clean(texts: Sequence[str]) -> None:
        log = log_of(store)
        with closing(FileIndex(store, options)) as index:
            scrubbed = log.scrub(texts) if texts else 0
            if scrubbed or _holds(index, texts):
                # From nothing, so that no free page and no vector of what is gone stays behind.
                index.sync(registry.roots(store, log), force=True, patience=-1)
                drop_unused(index)

    return clean


def redact_again(store: Store, options: FilesOptions) -> int:
    """Pass the recorded conversations and the index of files through the present redactor.

    Returns:
        How many conversations changed.
    """
    log = log_of(store)
    with closing(FileIndex(store, options)) as index:
        changed = log.redact_again()
        if changed or _holds_secrets(index):
            index.sync(registry.roots(store, log), force=True, patience=-1)
            drop_unused(index)
        return changed


def recordable(store: Store) -> Callable[[str, str], str]:
    """Return what takes out of a text of a session what is not to be recorded: our own blocks, and what was purged."""

    def strip(text: str, session: str) -> str:
        text = strip_fenced(text, store.key, session)
        with store.database.read() as connection:
            if not run(connection, "SELECT 1 FROM tombstones LIMIT 1"):
                return text
            said = sentences(text)
            kept = [
                sentence
                for sentence in said
                if not any(is_purged(connection, store.key, part) for part in (sentence, *clauses(sentence)))
            ]
        return text if len(kept) == len(said) else " ".join(kept)

    return strip


def _holds(index: FileIndex, texts: Sequence[str]) -> bool:
    generation = index.generations.live()
    if generation is None:
        return False
    with generation.database.read() as connection:
        return any(run(connection, "SELECT 1 FROM chunks WHERE instr(text, ?) LIMIT 1", (text,)) for text in texts)


def _holds_secrets(index: FileIndex) -> bool:
    generation = index.generations.live()
    if generation is None:
        return False
    with generation.database.read() as connection:
        return any(redact(text).kinds for (text,) in run(connection, "SELECT text FROM chunks"))


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
