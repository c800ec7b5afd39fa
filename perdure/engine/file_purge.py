"""What a purge does to conversations and to the index of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perdure.capture.sentences import clauses, sentences
from perdure.files import registry
from perdure.files.index import FileIndex
from perdure.files.options import FilesOptions
from perdure.files.shared_log import log_of
from perdure.maintenance.remote_purges import drop_unused
from perdure.secrets.redact import redact
from perdure.store.seals import is_purged
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.text.fence import strip_fenced


def cleaner(store: Store, options: FilesOptions) -> Callable[[Sequence[str]], None]:
    """Return what takes texts out of the recorded conversations and of the index of a store.

    What stands in the owner's own files, or in those that a host keeps, stays there and in the index: a purge
    names it instead.
    """

    def clean(texts: Sequence[str]) -> None:
        log = log_of(store)
        index = FileIndex(store, options)
        try:
            scrubbed = log.scrub(texts) if texts else 0
            if scrubbed or _holds(index, texts):
                # From nothing, so that no free page and no vector of what is gone stays behind.
                index.sync(registry.roots(store, log), force=True, patience=-1)
                drop_unused(index)
        finally:
            index.close()

    return clean


def redact_again(store: Store, options: FilesOptions) -> int:
    """Pass the recorded conversations and the index of files through the present redactor.

    Returns:
        How many conversations changed.

    Raises:
        StoreError: something could not be written; what was live before is live.
    """
    log = log_of(store)
    index = FileIndex(store, options)
    try:
        changed = log.redact_again()
        if changed or _holds_secrets(index):
            index.sync(registry.roots(store, log), force=True, patience=-1)
            drop_unused(index)
        return changed
    finally:
        index.close()


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
