"""What a purge does to conversations and to the index of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perdure.files import registry, rows
from perdure.files.index import FileIndex
from perdure.files.options import FilesOptions
from perdure.files.transcript_log import TranscriptLog
from perdure.store.database import run
from perdure.store.store import Store


def cleaner(store: Store, options: FilesOptions) -> Callable[[Sequence[str]], None]:
    """Return what takes texts out of the recorded conversations and of the index of a store.

    What stands in the owner's own files, or in those that a host keeps, stays there and in the index: a purge
    names it instead.
    """

    def clean(texts: Sequence[str]) -> None:
        log = TranscriptLog(store.folder)
        index = FileIndex(store, options)
        try:
            scrubbed = log.scrub(texts) if texts else 0
            if scrubbed or _holds(index, texts):
                # From nothing, so that no free page and no vector of what is gone stays behind.
                index.sync(registry.roots(store, log), force=True, patience=-1)
                _drop_unused(index)
        finally:
            index.close()

    return clean


def _holds(index: FileIndex, texts: Sequence[str]) -> bool:
    generation = index.generations.live()
    if generation is None:
        return False
    with generation.database.read() as connection:
        return any(run(connection, "SELECT 1 FROM chunks WHERE instr(text, ?) LIMIT 1", (text,)) for text in texts)


def _drop_unused(index: FileIndex) -> None:
    generation = index.generations.live()
    if generation is None:
        return
    with generation.database.write() as connection:
        rows.trim_cache(connection, 0)
    with generation.database.read() as connection:
        run(connection, "VACUUM")
        run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
