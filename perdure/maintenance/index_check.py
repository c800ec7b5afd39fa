"""What `verify` looks at in the index of files and conversations, which is derived: it is built anew from the files."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.errors import StoreError
from perdure.files.generation import Generations
from perdure.files.rows import SUMMED, body_of, checksum
from perdure.maintenance.fts_check import WordIndex, differing
from perdure.store.finding import Finding
from perdure.store.sql import Connection, run
from perdure.store.store import Store

HINT = "it is removed; the next search builds it anew from the files"
REPAIR = "files"
PATIENCE = 10.0
CHUNKS = WordIndex("chunks_fts", "chunks_terms", ("body", "context"), ("body",))
"""The words around a passage are those of others, cut: of them the counts alone are checked."""
FILES = WordIndex("files_fts", "files_terms", ("body",), ("body",))
_WHAT = {
    "files": "file is changed since it was indexed",
    "chunks": "passage is changed since it was indexed",
    "embedding_cache": "vector of a passage is changed",
}


def index_of_files(store: Store) -> Iterator[Finding]:
    """Look at the structure of the live index file, and at what is in it: every passage, and every word of it."""
    generations = Generations(store)
    number = generations.number
    if not number:
        return
    name = generations.path(number).name
    try:
        live = generations.live()
        if live is None:
            yield Finding("index of files is lost or cannot be used", name, HINT, REPAIR)
            return
        with live.database.read() as connection:
            run(connection, "BEGIN")
            try:
                yield from _structure(connection, name)
                yield from _rows(connection, name)
                yield from _words(connection, name)
            finally:
                run(connection, "ROLLBACK")
    except (StoreError, LookupError, TypeError, ValueError) as error:
        # A damaged file may bring anything.
        yield Finding(f"index of files cannot be read ({type(error).__name__})", name, HINT, REPAIR)
    finally:
        generations.close()


def drop(store: Store) -> None:
    """Remove the index, if nobody is writing to it; the next search builds it anew.

    Raises:
        StoreError: it could not be noted.
    """
    generations = Generations(store)
    with generations.writing(PATIENCE) as free:
        if free:
            generations.forget()


def _structure(connection: Connection, name: str) -> Iterator[Finding]:
    for (message,) in run(connection, "PRAGMA integrity_check"):
        if message != "ok":
            yield Finding("index of files is damaged", f"{name}: {str(message)[:120]}", HINT, REPAIR)
    for table, row, *_ in run(connection, "PRAGMA foreign_key_check"):
        yield Finding("index of files is damaged", f"{name}: {table} row {row}", HINT, REPAIR)


def _rows(connection: Connection, name: str) -> Iterator[Finding]:
    for table, columns in SUMMED.items():
        for row, stored, *values in connection.execute(f"SELECT rowid, sum, {columns} FROM {table}"):
            if stored != checksum(values):
                yield Finding(_WHAT[table], f"{name}: {table} row {row}", HINT, REPAIR)


def _words(connection: Connection, name: str) -> Iterator[Finding]:
    bodies: dict[int, str] = {}
    whole: dict[int, list[str]] = {file: [] for (file,) in run(connection, "SELECT id FROM files")}
    sql = (
        "SELECT c.id, f.id, f.path, c.section, c.speaker, c.at, c.text FROM chunks c JOIN files f ON f.id = c.file_id"
        " ORDER BY f.id, c.place"
    )
    for chunk, file, *of in connection.execute(sql):
        bodies[chunk] = body_of(*of)
        whole[file].append(bodies[chunk])
    for index, rows in (
        (CHUNKS, ((chunk, [body]) for chunk, body in bodies.items())),
        (FILES, ((file, ["\n".join(of)]) for file, of in whole.items())),
    ):
        for what in differing(connection, index, rows):
            yield Finding("words of a passage differ from it", f"{name}: {index.table} {what}", HINT, REPAIR)
