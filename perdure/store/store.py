"""The store of one data folder: everything else here, put together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from pathlib import Path
from typing import Literal

from perdure.clock import Clock, SystemClock
from perdure.errors import StoreError, StoreFullError, StoreUnavailableError
from perdure.parts import part
from perdure.store import outbox, shared_inbox, spaces
from perdure.store.access import refusal
from perdure.store.database import Database
from perdure.store.fact import USUAL, Summaries
from perdure.store.folder import Presence, machine_of, prepare_folder
from perdure.store.inbox import Inbox
from perdure.store.inbox_lines import Entry
from perdure.store.migrations import check, migrate
from perdure.store.moved import refuse_moved, refuse_own
from perdure.store.rollback_guard import Memo, holds_something, refuse_lost, store_id
from perdure.store.seals import seal, store_key
from perdure.store.spaces import VectorSpace as VectorSpace
from perdure.store.sql import Backend, Connection, get_meta, put, put_meta, run
from perdure.store.transaction import Author, Transaction

KEPT, OWN_KEPT = 90 * 86_400.0, 86_400.0
"""Seconds for which it is known which turns of another machine, and of this one, were dealt with."""
Absent = Literal["create", "refuse", "empty"]


@dataclass(frozen=True, slots=True)
class Server:
    """A database that several machines share."""

    url: str = field(repr=False)  # its address, `postgresql://...`
    tenant: str = "default"  # whose memories in it
    direct: str | None = field(default=None, repr=False)  # its address past a pooler; None: the same
    acknowledges: bool = False  # a turn is acknowledged when the database has it; else when this machine's disk has
    moved: bool = False  # open it even if its memories were moved elsewhere: to be copied into


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Where LanceDB tables are that are in no folder."""

    url: str  # `s3://BUCKET/FOLDER`
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # by LanceDB's names; they hold its keys


class Store:
    """One data folder. Several processes may have it open; each sees what the others wrote.

    `refusal` says why it can only be read; None: it can be written. Days are counted in `zone`; None: the machine's.
    From the `key` all its hashes are made. `server` is the database that holds the truth; None: facts.db. `objects` is
    where the derived LanceDB table is; None: in the folder.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock | None = None,
        zone: tzinfo | None = None,
        summaries: Summaries = USUAL,
        absent: Absent = "create",
        server: Server | None = None,
        objects: ObjectStore | None = None,
    ) -> None:
        """Open the folder, creating what is missing.

        A store in a folder that cannot be written, or on a full disk, is opened to be read: see `refusal`. What is
        `absent` is created, refused, or an "empty" store that is nowhere stands in for it, to be read. Whatever fails,
        nothing that was there has been changed.
        """
        self.folder = folder
        self.clock, self.zone = clock or SystemClock(), zone
        self.summaries = summaries
        self.server, self._machine = server, ""
        self._objects = objects
        if server is not None:
            self._stands_in, self.refusal = False, None
            self._open_shared(server)
            return
        if not holds_something(folder):
            refuse_lost(folder)
        there = (folder / "facts.db").is_file()
        if not there and absent == "refuse":
            raise StoreUnavailableError(f"{_none(folder)}, or give another folder with --home or PERDURE_HOME")
        self._stands_in = not there and absent == "empty"
        # Who only looks in need not find out that what is written does not fit.
        self.refusal = _none(folder) if self._stands_in else refusal(folder, full=absent != "create")
        try:
            self._open()
        except StoreFullError:
            if not there or self.refusal is not None:
                raise
            self.refusal = refusal(folder, full=True)
            self._open()

    def _open(self) -> None:
        path = self.folder / "facts.db"

        def look(connection: Connection) -> None:
            check(connection, path)
            refuse_lost(self.folder, connection)
            if run(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'meta'"):
                refuse_moved(connection)

        with ExitStack() as opened:
            if self.refusal is None:
                prepare_folder(self.folder)
            refusal = None if self._stands_in else self.refusal
            self.database: Backend = Database(
                path, check=look, stays=not self._stands_in, refusal=refusal, memory=self._stands_in
            )
            opened.callback(self.database.close)
            self._presence = None if self.refusal is not None else Presence(self.folder)
            if self._presence is not None:
                opened.callback(self._presence.close)
            migrate(self.database)
            self.database.refusal = self.refusal
            self.key = self.database.query(store_key)
            self._memo = Memo(self.folder, self.database, self.clock) if self.refusal is None else None
            self.inbox = Inbox(self.folder / "inbox", self.refusal)
            opened.pop_all()

    def _open_shared(self, server: Server) -> None:
        """Open a database that other machines have open as well; this folder holds the inbox and what is derived."""
        prepare_folder(self.folder)
        with ExitStack() as opened:
            self.database = part("postgres.database").PostgresDatabase(
                server.url, server.tenant, self.folder, server.direct, moved=server.moved
            )
            opened.callback(self.database.close)
            self._presence = Presence(self.folder)
            opened.callback(self._presence.close)
            with self.database.read() as connection:
                if not server.moved:
                    refuse_moved(connection)
                self.key = store_key(connection)
            if not server.moved:
                refuse_own(self.folder, self.key)
            self._memo = None
            self._machine = machine_prefix(self.folder, server.tenant, self.key)
            self.inbox = Inbox(self.folder / "inbox", machine=self._machine)
            opened.pop_all()

    @property
    def machine(self) -> str:
        """The name of this machine among those that share the store; empty: it is not shared."""
        return self._machine.removesuffix("-")

    @property
    def lance_folder(self) -> Path:
        """Where the derived LanceDB table lies, unless that is elsewhere."""
        return self.folder / "lancedb"

    @property
    def objects(self) -> ObjectStore | None:
        """Where the derived LanceDB table is elsewhere, below a name of this store's own; None: in the folder."""
        if self._objects is None:
            return None
        return replace(self._objects, url=f"{self._objects.url.rstrip('/')}/{store_id(self.key)}")

    @contextmanager
    def write(self, author: Author, *, durable: bool = True, keep: bool = True) -> Iterator[Transaction]:
        """Change facts: all of the block is kept, or nothing of it; see `Backend.write`."""
        with self.database.write(durable=durable, keep=keep) as connection:
            yield Transaction(connection, self.clock.now(), author, self.summaries)
            seal(connection)

    def meta(self, key: str) -> str | None:
        """Return a value that belongs to the store as a whole."""
        return self.database.query(get_meta, key)

    def note(self, key: str, value: str | None) -> None:
        """Keep a value that belongs to the store as a whole, or drop it; a power cut may undo it."""
        self.database.jot(put_meta, key, value)

    def acknowledge(self, entry: Entry) -> Entry:
        """Put a turn into the inbox, and into the database's if the store acknowledges there; return it with its id.

        While the database is away the turn stands in this machine's inbox alone, as it does else.
        """
        entry = self.inbox.append(entry)
        if self.server is not None and self.server.acknowledges:
            # Whatever keeps the database from it, the turn is kept here, and must not be taken in again.
            with suppress(StoreError), self.database.beside() as connection:
                shared_inbox.put(connection, entry, self._machine, self.clock.now())
        return entry

    def release(self, entry_id: str) -> None:
        """Drop a turn from the database's inbox that has been dealt with."""
        if self.server is not None and self.server.acknowledges:
            with suppress(StoreError), self.database.beside() as connection:
                shared_inbox.drop(connection, entry_id)

    def orphans(self) -> list[Entry]:
        """Return turns that the database acknowledged, and that their machine has not dealt with for a while.

        Also this one's, if its inbox does not have them any more.
        """
        if not self.database.shared:
            return []
        left = self.database.query(shared_inbox.waiting, self.clock.now())
        mine = any(machine == self._machine for machine, _ in left)
        here = {entry.get("id") for entry in self.inbox.entries()} if mine else set()
        return [entry for machine, entry in left if machine != self._machine or entry["id"] not in here]

    def check_purged(self) -> None:
        """See that no other machine has purged all of a store that is shared."""
        if self.server is not None:
            self.database.query(refuse_moved)

    def inbox_only(self) -> int:
        """Return how many turns of this machine the database does not have yet, in any form."""
        left = {str(entry["id"]) for entry in self.waiting()}
        if left and self.server is not None:
            left -= self.database.query(shared_inbox.held)
        return len(left)

    def waiting(self) -> list[Entry]:
        """Return the acknowledged turns of all processes that are not captured yet, oldest first."""
        entries = {str(entry["id"]): entry for entry in self.inbox.entries() if "id" in entry}
        sql = "SELECT entry_id FROM inbox_done WHERE entry_id IN (SELECT value FROM json_each(?))"
        done = {row[0] for row in self.database.query(run, sql, (json.dumps(list(entries)),))}
        left = [entry for entry_id, entry in entries.items() if entry_id not in done]
        return sorted(left, key=lambda entry: float(entry.get("at") or 0.0))

    def cursor(self, session: str) -> str:
        """Return up to which message a session has been read, as `Transaction.move_cursor` wrote it."""
        try:
            rows = self.database.query(run, "SELECT tail FROM cursors WHERE session = ?", (session,))
        except StoreUnavailableError:
            if not self.database.shared:
                raise
            # A turn is taken in while the server is away. What of it was read before is known again when it is back.
            return ""
        return rows[0][0] if rows else ""

    def is_finished(self, entry_id: str) -> bool:
        """Return whether an inbox entry has been dealt with."""
        return bool(self.database.query(run, "SELECT 1 FROM inbox_done WHERE entry_id = ?", (entry_id,)))

    def park(self, entry_id: str, error: str, entry: str) -> None:
        """Put an inbox entry aside that cannot be dealt with: kept and reported, never dropped."""
        with self.database.write() as connection:
            now = self.clock.now()
            put(connection, "inbox_parked", entry_id=entry_id, at=now, error=error, entry=entry)
            run(connection, "INSERT INTO inbox_done VALUES (?, ?) ON CONFLICT DO NOTHING", (entry_id, now))

    def prune_finished(self) -> None:
        """Drop the notes on inbox entries whose file is gone: they can never come back.

        Where a store is shared, another machine may be about to take in what stood in the database: own notes stay
        for a while.
        """
        files, mine = self.inbox.files(), self._machine
        with self.database.write(durable=False) as connection:
            if self._machine:
                # Before the notes by which it is known what has been dealt with.
                shared_inbox.prune(connection)
                # Another machine's file cannot be seen from here: what is old enough is taken to be gone.
                old = self.clock.now() - KEPT
                run(connection, "DELETE FROM inbox_done WHERE instr(entry_id, ?) <> 1 AND at < ?", (mine, old))
            until = self.clock.now() - OWN_KEPT if self._machine else float("inf")
            done = run(
                connection, "SELECT entry_id FROM inbox_done WHERE instr(entry_id, ?) = 1 AND at < ?", (mine, until)
            )
            gone = [row for row in done if row[0].partition(":")[0] not in files]
            connection.executemany("DELETE FROM inbox_done WHERE entry_id = ?", gone)

    def adopt_space(self, space: VectorSpace) -> bool:
        """Bind the store to a vector space if it has none yet; return whether this is the store's space.

        Vectors of another space cannot be compared with those of the store, so such an embedder must not be used.
        """
        present = self.space()
        if self.refusal is not None or (present is not None and spaces.is_told(present, space)):
            # Without the lock of writers: a model that fits need not wait for any of them.
            return present is not None and present.id == space.id
        return self.database.apply(spaces.adopt, space)

    def space(self) -> VectorSpace | None:
        """Return the vector space of the store, or None while it has none."""
        return self.database.query(spaces.active)

    def outbox_state(self) -> outbox.OutboxState:
        """Return how far the derived index is behind."""
        return self.database.query(outbox.state)

    def remember(self, *, at_once: bool = False, durable: bool = False) -> None:
        """Write down outside facts.db where the store is, if that has changed and it is time to; see `Memo.write`."""
        if self._memo is not None:
            self._memo.write(at_once=at_once, durable=durable)

    def close(self) -> None:
        """Close all files."""
        self.inbox.close()
        self.remember(at_once=True)
        self.database.close()
        if self._presence is not None:
            self._presence.close()


def machine_prefix(folder: Path, tenant: str, key: bytes) -> str:
    """Return how the names of turns begin that a machine takes in for a tenant."""
    of = hashlib.blake2b(tenant.encode(), key=key, digest_size=8).hexdigest()
    return f"{machine_of(folder, of)}-"


def _none(folder: Path) -> str:
    return f"there is no store in {folder} yet; the first memory creates it: perdure store TEXT"
