"""The index file of one generation, and which one is live.

A rebuild writes the next file and then changes one row of facts.db, so that it happens as a whole or not at all.
Whoever has the former file open goes on reading it until it asks again which one is live.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import Timeout

from perdure.errors import StoreBusyError, StoreCorruptError, StoreError, StoreUnavailableError
from perdure.regex import lazy
from perdure.store.database import Database
from perdure.store.folder import file_lock, sync_folder
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.text.normalise import NORMALISER_VERSION

APPLICATION_ID = 0x70726978  # "prix"
VERSION = 2
BUSY_MS = 1_000
"""`index.lock` keeps writers apart, so nothing holds an index for long but another program; a search does not wait."""
_LIVE = "index_generation"
_NAME = lazy(r"index-([0-9]+)\.db(?:-wal|-shm|-journal)?")

_SCHEMA = Path(__file__).with_name("data") / "index.sql"
_MARK = f"""
INSERT INTO meta VALUES ('normaliser', '{NORMALISER_VERSION}');
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
"""


@dataclass(frozen=True, slots=True)
class Generation:
    """An open index file."""

    number: int
    database: Database


class Generations:
    """The index files of a store. One writer at a time among all processes: the one that holds `writing`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Where several machines share the store, each has an index of its own.
        self._row = f"{_LIVE}@{store.machine}" if store.machine else _LIVE
        self._open: Generation | None = None

    def live(self) -> Generation | None:
        """Return the live generation, or None if there is none: never built, lost, or written by another version.

        An absent file is no empty index: the caller must say that nothing was searched.
        """
        while True:
            number = self.number
            opened = self._open
            if opened is not None and opened.number == number and opened.database.path.exists():
                return opened
            # The former one is not closed: another thread may be in the middle of a search. Who lets go of it
            # last closes it.
            self._open = opened = self._opened(number) if number else None
            # A file is removed after the row has changed: if it has not, what was opened was whole.
            if self.number == number:
                return opened

    @contextmanager
    def writing(self, patience: float = 0.0) -> Iterator[bool]:
        """Lend the right to write to the index, or False if another process has it.

        `patience`: seconds to wait for it; negative: for as long as it takes.
        """
        if self._store.refusal is not None:
            raise StoreUnavailableError(self._store.refusal)
        try:
            held = file_lock(self._store.folder / "index.lock").acquire(patience)
        except Timeout:
            yield False
            return
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StoreUnavailableError(f"{self._store.folder} cannot be written ({reason})") from error
        with held:
            yield True

    def begin(self) -> Generation:
        """Make the file of the next generation. To be called by the writer."""
        number = max([self.number, *self._files().values()]) + 1
        database = Database(self.path(number), busy_ms=BUSY_MS)
        with database.write() as connection:
            run(connection, _SCHEMA.read_text(encoding="utf-8") + _MARK)
        return Generation(number, database)

    def publish(self, generation: Generation) -> None:
        """Make a finished generation the live one. To be called by the writer."""
        with generation.database.read() as connection:
            run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
        sync_folder(self._store.folder)
        with self._store.database.write() as connection:
            run(connection, "INSERT OR REPLACE INTO meta VALUES (?, ?)", (self._row, str(generation.number)))
        self._open = generation

    def tidy(self) -> None:
        """Remove the files of other generations than the live one. To be called by the writer."""
        live = self.number
        # The database before what lies beside it: without the latter it may lack what was written last.
        for path, number in sorted(self._files().items()):
            if number != live:
                # Some systems keep a file that is open elsewhere: it goes next time.
                with suppress(OSError):
                    path.unlink()

    def forget(self) -> None:
        """Remove the files of all generations: none is live then, and the next search makes one. For the writer."""
        with self._store.database.write() as connection:
            run(connection, "DELETE FROM meta WHERE key = ?", (self._row,))
        self.close()
        self.tidy()

    def close(self) -> None:
        """Close the open file."""
        if self._open is not None:
            self._open.database.close()
            self._open = None

    def path(self, number: int) -> Path:
        """Return where the file of a generation is."""
        return self._store.folder / f"index-{number}.db"

    @property
    def number(self) -> int:
        """The number of the live generation; 0: none was ever built."""
        return int(self._store.meta(self._row) or 0)

    def _opened(self, number: int) -> Generation | None:
        path = self.path(number)
        if not path.exists():
            return None
        try:
            opened = Database(
                path, busy_ms=BUSY_MS, check=lambda connection: _check(connection, path), refusal=self._store.refusal
            )
        except StoreError as error:
            if isinstance(error, StoreBusyError):
                raise
            return None
        return Generation(number, opened)

    def _files(self) -> dict[Path, int]:
        """Return the files of all generations, also what a kill left beside one, with their numbers."""
        return {path: int(name[1]) for path in self._store.folder.iterdir() if (name := _NAME.fullmatch(path.name))}


def _check(connection: Connection, path: Path) -> None:
    found = (int(run(connection, f"PRAGMA {name}")[0][0]) for name in ("application_id", "user_version"))
    if tuple(found) != (APPLICATION_ID, VERSION):
        raise StoreCorruptError(f"{path} is no index of this version; it is built anew: perdure index --force")
    if run(connection, "SELECT value FROM meta WHERE key = 'normaliser'") != [(str(NORMALISER_VERSION),)]:
        raise StoreCorruptError(f"the words of {path} were cut by other rules; it is built anew: perdure index --force")
