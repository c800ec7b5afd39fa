"""The store of one data folder: everything else here, put together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from perdure.clock import Clock, SystemClock
from perdure.store import outbox, spaces
from perdure.store.database import Database, run
from perdure.store.folder import prepare_folder
from perdure.store.inbox import Inbox
from perdure.store.migrations import check, migrate
from perdure.store.presence import Presence
from perdure.store.seals import seal
from perdure.store.spaces import VectorSpace as VectorSpace
from perdure.store.tombstones import store_key
from perdure.store.transaction import Author, Transaction


class Store:
    """One data folder. Several processes may have it open; each sees what the others wrote."""

    def __init__(self, folder: Path, *, clock: Clock | None = None) -> None:
        """Open the folder, creating what is missing.

        Raises:
            StoreError: one of its kinds; nothing that was there has been changed.
        """
        self.folder = prepare_folder(folder)
        self.clock = clock or SystemClock()
        path = folder / "facts.db"
        with ExitStack() as opened:
            self.database = Database(path, check=lambda connection: check(connection, path))
            opened.callback(self.database.close)
            self._presence = Presence(self.folder)
            opened.callback(self._presence.close)
            migrate(self.database)
            with self.database.read() as connection:
                self.key = store_key(connection)
            self.inbox = Inbox(folder / "inbox")
            opened.pop_all()

    @property
    def lance_folder(self) -> Path:
        """Where the derived LanceDB table lies."""
        return self.folder / "lancedb"

    @contextmanager
    def write(self, author: Author, *, durable: bool = True, keep: bool = True) -> Iterator[Transaction]:
        """Change facts: all of the block is kept, or nothing of it.

        Args:
            author: who stands in the journal.
            durable: see `Database.write`, as for the next one.
            keep: False only tries.

        Raises:
            StoreError: one of its kinds.
        """
        with self.database.write(durable=durable, keep=keep) as connection:
            yield Transaction(connection, self.clock.now(), author)
            seal(connection)

    def meta(self, key: str) -> str | None:
        """Return a value that belongs to the store as a whole."""
        with self.database.read() as connection:
            rows = run(connection, "SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def cursor(self, session: str) -> str:
        """Return up to which message a session has been read, as `Transaction.move_cursor` wrote it."""
        with self.database.read() as connection:
            rows = run(connection, "SELECT tail FROM cursors WHERE session = ?", (session,))
        return rows[0][0] if rows else ""

    def is_finished(self, entry_id: str) -> bool:
        """Return whether an inbox entry has been dealt with."""
        with self.database.read() as connection:
            return bool(run(connection, "SELECT 1 FROM inbox_done WHERE entry_id = ?", (entry_id,)))

    def park(self, entry_id: str, error: str, entry: str) -> None:
        """Put an inbox entry aside that cannot be dealt with: kept and reported, never dropped."""
        with self.database.write() as connection:
            run(
                connection,
                "INSERT OR REPLACE INTO inbox_parked VALUES (?, ?, ?, ?)",
                (entry_id, self.clock.now(), error, entry),
            )
            run(connection, "INSERT OR IGNORE INTO inbox_done VALUES (?, ?)", (entry_id, self.clock.now()))

    def prune_finished(self) -> None:
        """Drop the notes on inbox entries whose file is gone: they can never come back."""
        files = self.inbox.files()
        with self.database.write(durable=False) as connection:
            done = run(connection, "SELECT entry_id FROM inbox_done")
            gone = [row for row in done if row[0].partition(":")[0] not in files]
            connection.executemany("DELETE FROM inbox_done WHERE entry_id = ?", gone)

    def adopt_space(self, space: VectorSpace) -> bool:
        """Bind the store to a vector space if it has none yet; return whether this is the store's space.

        Vectors of another space cannot be compared with those of the store, so such an embedder must not be used.
        """
        with self.database.write() as connection:
            return spaces.adopt(connection, space)

    def space(self) -> VectorSpace | None:
        """Return the vector space of the store, or None while it has none."""
        with self.database.read() as connection:
            return spaces.active(connection)

    def outbox_state(self) -> outbox.OutboxState:
        """Return how far the derived index is behind."""
        with self.database.read() as connection:
            return outbox.state(connection)

    def close(self) -> None:
        """Close all files."""
        self.inbox.close()
        self.database.close()
        self._presence.close()
