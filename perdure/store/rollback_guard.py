"""What a data folder remembers of its store, in a file outside facts.db: it tells a lost truth from an empty one.

The file names the store, a place in its journal, how many facts there were, and holds copies of what would die with
facts.db: the key and the tombstones. It is written behind the commits, so its place lags by seconds and never leads:
the alarm is raised only if that place is not in the journal. Who goes back on purpose says so here before.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from filelock import Timeout

from perdure.clock import Clock
from perdure.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLostError,
    StoreUnavailableError,
)
from perdure.failpoints import fail_point
from perdure.store.access import opened
from perdure.store.folder import file_lock, sync_folder, write_synced
from perdure.store.seals import store_key
from perdure.store.sql import Backend, Connection, run

FILE = "remembered.json"
FORMAT = 1
DO = "`perdure recover` shows what can be recovered"
_REMAINS = ("lancedb/memories_*.lance", "exports/facts-*.jsonl", "backups/facts-*.db")
"""What a store leaves in its folder, and nothing else does."""


class Truth(StrEnum):
    """How facts.db stands to what the folder remembers."""

    NEW = "new"
    """There is none, and never was."""
    SOUND = "sound"
    MISSING = "missing"
    """It is not there, or empty, and there was one."""
    OLDER = "older"
    """It is of this store, and lacks what the folder remembers."""
    FOREIGN = "foreign"
    """It is of another store."""
    REKEYED = "rekeyed"
    """It is the one that was there, with another key: no seal in it can be checked."""
    DAMAGED = "damaged"
    """It, or a part of it, cannot be read."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the journal of a store."""

    store: str  # which store; see `store_id`
    seq: int  # number of the journal's row; 0: before the first
    seal: str  # its seal, which all rows before it went into, as hex digits

    @staticmethod
    def of(connection: Connection) -> Place:
        """Return the newest place of a store."""
        rows = run(connection, "SELECT seq, hex(seal) FROM journal WHERE seal IS NOT NULL ORDER BY seq DESC LIMIT 1")
        seq, seal = rows[0] if rows else (0, "")
        return Place(store_id(store_key(connection)), int(seq), str(seal))

    def is_in(self, connection: Connection) -> bool:
        """Return whether a journal comes through here, whatever its store is called."""
        sql = "SELECT 1 FROM journal WHERE seq = ? AND hex(seal) = ?"
        return not self.seq or bool(run(connection, sql, (self.seq, self.seal)))


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the file holds."""

    key: bytes = b""  # the store's key; empty if the file cannot be read
    places: tuple[Place, ...] = ()  # where the store was. A second one is where it is being brought back to on purpose
    facts: int = 0
    tombstones: frozenset[str] = frozenset()  # keyed hashes of what was purged
    at: float = 0.0  # when this was written, epoch seconds

    @staticmethod
    def read(folder: Path) -> Remembered | None:
        """Return what a data folder remembers; empty if it cannot be read, None if there is no such file."""
        try:
            content: dict[str, Any] = json.loads((folder / FILE).read_bytes())
            if content.pop("sum") != _sum(content) or content["format"] > FORMAT:
                return Remembered()
            key, places = bytes.fromhex(content["key"]), tuple(Place(*place) for place in content["places"])
            tombstones = frozenset(content["tombstones"])
            return Remembered(key, places, int(content["facts"]), tombstones, float(content["at"]))
        except FileNotFoundError:
            return None
        except (OSError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            return Remembered()

    @staticmethod
    def of(connection: Connection, at: float, former: Remembered | None = None) -> Remembered:
        """Return what there is to remember of an open store now; what was purged before stays purged."""
        key = store_key(connection)
        tombstones = frozenset(row[0] for row in run(connection, "SELECT key FROM tombstones"))
        if former is not None and former.key == key:
            tombstones |= former.tombstones
        [(facts,)] = run(connection, "SELECT count(*) FROM facts")
        return Remembered(key, (Place.of(connection),), int(facts), tombstones, at)

    def write(self, folder: Path, *, durable: bool) -> None:
        """Put this in the place of what is there: as a whole or not at all.

        Being `durable`, it waits until a power cut cannot bring the former one back.
        """
        content: dict[str, Any] = {"format": FORMAT, "key": self.key.hex(), "facts": self.facts, "at": self.at}
        content |= {"places": list(map(astuple, self.places)), "tombstones": sorted(self.tombstones)}
        part = folder / f"{FILE}.part"
        write_synced(part, json.dumps(content | {"sum": _sum(content)}).encode())
        fail_point("remembered.written")
        part.replace(folder / FILE)
        fail_point("remembered.replaced")
        if durable:
            sync_folder(folder)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a look at facts.db has told."""

    truth: Truth
    said: str = ""  # that in a sentence; empty if nothing is wrong
    remembered: Remembered | None = None

    @property
    def lost(self) -> bool:
        """Whether it is not what the folder remembers."""
        return self.truth not in (Truth.NEW, Truth.SOUND)


def store_id(key: bytes) -> str:
    """Return the name of the store with this key. It tells nothing of the key."""
    return hashlib.blake2b(b"perdure store", key=key, digest_size=8).hexdigest()


def judge(folder: Path, connection: Connection | None = None, *, thorough: bool = False) -> Verdict:
    """Compare facts.db with what its folder remembers. Nothing is changed; the store may be open.

    `thorough` has SQLite look at every page of it as well.
    """

    def look(remembered: Remembered | None) -> Verdict:
        if connection is not None:
            return _compared(folder, connection, remembered)
        if not holds_something(folder):
            return _without(folder, remembered)
        try:
            with opened(folder / "facts.db", looks=True) as own:
                if thorough and run(own, "PRAGMA integrity_check(1)") != [("ok",)]:
                    raise StoreCorruptError("its pages are damaged")
                return _compared(folder, own, remembered)
        except StoreCorruptError:
            return Verdict(Truth.DAMAGED, f"facts.db in {folder} is damaged; {DO}", remembered)

    # What is remembered is read first: all that it tells of is in the database that is looked at then. Only who
    # goes back changes the database against it, and says so in the file before.
    while True:
        remembered = Remembered.read(folder)
        verdict = look(remembered)
        if not verdict.lost or Remembered.read(folder) == remembered:
            return verdict


def refuse_lost(folder: Path, connection: Connection | None = None) -> None:
    """See that facts.db is the one that the folder remembers; see `judge`. What of a damaged one can be read may be."""
    verdict = judge(folder, connection)
    if verdict.lost and verdict.truth is not Truth.DAMAGED:
        raise StoreLostError(verdict.said, verdict.truth)


def holds_something(folder: Path) -> bool:
    """Return whether there is a facts.db in a data folder that is not empty. Opened, an empty one becomes a store."""
    path = folder / "facts.db"
    return path.is_file() and path.stat().st_size > 0


def _compared(folder: Path, connection: Connection, remembered: Remembered | None) -> Verdict:
    if not run(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'journal'"):
        return _without(folder, remembered)
    if remembered is None or not remembered.places:
        return Verdict(Truth.SOUND, "", remembered)
    through = [place for place in remembered.places if place.is_in(connection)]
    was, key = remembered.places[0], _key(connection)
    store = store_id(key) if key else ""
    if any(place.store == store for place in through):
        return Verdict(Truth.SOUND, "", remembered)
    if any(place.seq for place in through):
        return Verdict(Truth.REKEYED, f"facts.db in {folder} has a different key from before; {DO}", remembered)
    if store != was.store:
        said = f"facts.db in {folder} belongs to another store; {_had(remembered)}; {DO}"
        return Verdict(Truth.FOREIGN, said, remembered)
    if run(connection, "PRAGMA quick_check(journal)") != [("ok",)]:
        # The place may have been in what cannot be read.
        return Verdict(Truth.DAMAGED, f"facts.db in {folder} is damaged; {DO}", remembered)
    [(newest,)] = run(connection, "SELECT coalesce(max(seq), 0) FROM journal")
    ends = f"ends at change {newest}" if newest < was.seq else "continues from an older copy"
    said = f"facts.db in {folder} is older than before: it {ends}; {_had(remembered)}; {DO}"
    return Verdict(Truth.OLDER, said, remembered)


def _without(folder: Path, remembered: Remembered | None) -> Verdict:
    if not folder.is_dir() or (
        remembered is None and not any(next(folder.glob(pattern), None) for pattern in _REMAINS)
    ):
        # Where a file stands in the place of the folder, no store ever was.
        return Verdict(Truth.NEW)
    how = "empty" if (folder / "facts.db").exists() else "missing"
    had = _had(remembered) if remembered is not None else "there used to be one"
    return Verdict(Truth.MISSING, f"facts.db in {folder} is {how}; {had}; {DO}", remembered)


def _had(remembered: Remembered) -> str:
    if not remembered.places:
        return "there used to be one"
    day = datetime.fromtimestamp(remembered.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    noun = "memory" if remembered.facts == 1 else "memories"
    return f"on {day} it had {remembered.facts} {noun}, up to change {remembered.places[0].seq}"


def _key(connection: Connection) -> bytes:
    try:
        return store_key(connection)
    except StoreCorruptError:
        return b""


def _sum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


EVERY = 5.0
"""Seconds between two writes, each of which waits for the disk once."""
PATIENCE = 1.0
"""Seconds for which what must be written now waits for another process that writes."""
_log = logging.getLogger("perdure.store")


class Memo:
    """Keeps the file of an open store up to date. Usable from any thread."""

    def __init__(self, folder: Path, database: Backend, clock: Clock) -> None:
        """Write the file if it does not tell of this store yet."""
        self._folder, self._database, self._clock = folder, database, clock
        self._lock = threading.Lock()
        self._written: tuple[int, int] | None = None
        self._due = 0.0
        self._told = ""
        remembered = Remembered.read(folder)
        if remembered is not None and len(remembered.places) == 1:
            self._written = (remembered.places[0].seq, len(remembered.tombstones))
            return
        if remembered is not None and not remembered.places:
            _log.warning("the store's record in %s cannot be read; writing a new one", folder)
        self.write(at_once=True)

    def write(self, *, at_once: bool = False, durable: bool = False) -> None:
        """Write down how the store is now, if that has changed. What cannot be written is written the next time.

        `at_once` does not wait until `EVERY` seconds have passed; `durable` does not either, and sees that not even a
        power cut brings the former state back.
        """
        with self._lock:
            if not (at_once or durable) and time.monotonic() < self._due:
                return
            try:
                self._database.check_place()
                if self._database.query(_changes) == self._written:
                    return
                self._due = time.monotonic() + EVERY
                with _writing(self._folder, PATIENCE if at_once or durable else 0):
                    self._written = self._write(durable=durable)
            except StoreLostError as error:
                if self._told != str(error):
                    self._told = str(error)
                    _log.error("memory is halted, but turns are kept: %s", error)
            except StoreError as error:
                _log.debug("the store's record in the folder was not written: %s", type(error).__name__)

    def _write(self, *, durable: bool) -> tuple[int, int]:
        # Among all processes one at a time, and each writes what stands in the database then: nothing older ever
        # takes the place of something newer. All that journals waits for the disk before anybody sees it.
        former = Remembered.read(self._folder)
        with self._database.read() as connection, connection:
            refuse_lost(self._folder, connection)
            present, changes = Remembered.of(connection, self._clock.now(), former), _changes(connection)
        present.write(self._folder, durable=durable)
        return changes


def going_to(folder: Path, place: Place) -> None:
    """Note that facts.db is about to be brought to another place on purpose. `arrived` ends this.

    Killed in between, the folder takes the former place for right as well as the new one.
    """
    with _writing(folder, PATIENCE):
        former = Remembered.read(folder)
        if former is not None and former.places:
            replace(former, places=(former.places[0], place)).write(folder, durable=True)


def arrived(folder: Path, connection: Connection, now: float) -> None:
    """Note that facts.db, as it is now, is what it should be."""
    with _writing(folder, PATIENCE):
        Remembered.of(connection, now, Remembered.read(folder)).write(folder, durable=True)


@contextmanager
def _writing(folder: Path, patience: float) -> Iterator[None]:
    try:
        with file_lock(folder / "remembered.lock", patience):
            yield
    except Timeout:
        raise StoreBusyError(f"{FILE} in {folder} is being written by another process; retry") from None
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFullError(f"the disk is full; {FILE} in {folder} is unchanged. Free some space") from error
        raise StoreUnavailableError(f"{FILE} in {folder} cannot be written ({error.strerror})") from error


def _changes(connection: Connection) -> tuple[int, int]:
    sql = "SELECT (SELECT coalesce(max(seq), 0) FROM journal), (SELECT count(*) FROM tombstones)"
    [(newest, tombstones)] = run(connection, sql)
    return newest, tombstones
