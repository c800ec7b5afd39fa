"""The vault: secrets under AES-256-GCM in a file of their own. A memory only points to them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Self

from perdure.clock import Clock, SystemClock
from perdure.errors import AmbiguousIdError, InputError, NotFoundError, StoreCorruptError, StoreUnavailableError
from perdure.store.access import refusal
from perdure.store.database import Database
from perdure.store.folder import prepare_folder, vault_file
from perdure.store.migrations import check
from perdure.store.sql import Connection, run
from perdure.vault.keys import Ask, Key, KeyringKeys, KeyRow, PassphraseKeys, keys_for, keys_for_new
from perdure.vault.record import MIN_PREFIX, Secret, VaultRecord, checked

APPLICATION_ID = 0x70727661  # "prva"
VERSION = 1


@dataclass(frozen=True, slots=True)
class VaultState:
    """The state of the vault."""

    records: int  # how many there are
    expired: int  # how many of them are past their time
    generation: int  # of the key; 0 while there is none
    source: str  # where the key comes from: "keyring", "passphrase", or "none" while there is none
    old_keys: int  # that seal nothing any more and that a broken-off rotation could not remove; rotate again


_RECORD = ", ".join(f"records.{column.name}" for column in fields(VaultRecord))
_KEY = ", ".join(f"keys.{column.name}" for column in fields(KeyRow))


class Vault:
    """The secrets of one data folder. Usable from any thread; several processes may have it open.

    Example:
        with Vault(folder, passphrase="correct horse battery staple") as vault:
            record = vault.store("GitHub", "s3cret", kind="password")
            print(vault.get(record.id).value)
    """

    def __init__(
        self, folder: Path, *, passphrase: str | None = None, ask: Ask | None = None, clock: Clock | None = None
    ) -> None:
        """Open vault.db in the folder, creating it if need be. The key is not needed yet.

        The first secret decides where the key comes from: a passphrase (argument or PERDURE_VAULT_PASSPHRASE), else
        the keyring of the operating system, else a passphrase asked for. From then on the vault knows.

        Args:
            folder: the data folder.
            passphrase: used where the vault needs one.
            ask: asks a person for the passphrase; its argument says whether it is a new one.
            clock: the source of the current time.

        Raises:
            StoreError: one of its kinds; nothing that was there has been changed.
        """
        why_not = refusal(folder)
        path = vault_file(folder if why_not is not None else prepare_folder(folder))
        self._phrase = PassphraseKeys(passphrase, ask)
        self._clock = clock or SystemClock()
        self._keys: dict[KeyRow, Key] = {}
        self._database = Database(
            path, check=lambda connection: check(connection, path, APPLICATION_ID, VERSION), refusal=why_not
        )
        try:
            _create(self._database)
        except BaseException:
            self._database.close()
            raise

    def unlock(self) -> None:
        """Load the key now instead of at its first use, so that a wrong one is noticed before a secret is typed.

        Raises:
            StoreUnavailableError: the key is missing or wrong.
        """
        row = self._database.query(_current)
        if row is not None:
            self._key(row)

    def store(
        self,
        service: str,
        value: str,
        *,
        kind: str = "other",
        name: str = "",
        expires_at: float | None = None,
        replace_value: bool = False,
    ) -> VaultRecord:
        """Store a secret; it is on disk when this returns.

        Args:
            service: what it is for.
            value: the secret, at most 65,536 bytes of UTF-8.
            kind: one of `KINDS`.
            name: distinguishes several of one service and kind.
            expires_at: when it expires, epoch seconds.
            replace_value: overwrite the value stored before, which is then gone; the id stays.

        Raises:
            InputError: a value is invalid, or there already is such a record.
            StoreUnavailableError: the key is missing or wrong; nothing was stored.
            StoreError: it could not be written.
        """
        plain = checked(value, service, kind, name, expires_at)
        until = None if expires_at is None else float(expires_at)
        record = VaultRecord(str(uuid.uuid4()), service, kind, name, float(self._clock.now()), until)
        with self._database.write() as connection:
            key = self._current_key(connection)
            where = (service, kind, name)
            same = run(connection, "SELECT id FROM records WHERE service = ? AND kind = ? AND name = ?", where)
            if same and not replace_value:
                raise InputError(
                    f"the vault already has such a {kind} (id {same[0][0]}); "
                    "give this one another name, or replace the old one"
                )
            if same:
                record = replace(record, id=same[0][0])
                run(connection, "DELETE FROM records WHERE id = ?", (record.id,))
            sealed = (key.generation, *key.seal(plain, astuple(record)))
            run(connection, "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*astuple(record), *sealed))
        return record

    def get(self, record_id: str) -> Secret:
        """Return a secret by its id, or the first 8 or more digits of it.

        Raises:
            InputError, NotFoundError, AmbiguousIdError: as `find`.
            StoreUnavailableError: the key is missing or wrong.
            StoreCorruptError: the record is not what was stored.
        """
        record = self.find(record_id)
        while True:
            record, nonce, sealed, row = self._sealed(record.id)
            try:
                key = self._key(row)
            except StoreUnavailableError:
                if self._sealed(record.id)[3] == row:
                    raise
                continue  # another process has rotated the key since
            return Secret(record, _opened(key, record, nonce, sealed).decode())

    def records(self) -> list[VaultRecord]:
        """Return all records, by service, kind and name. No key is needed."""
        rows = self._database.query(run, f"SELECT {_RECORD} FROM records ORDER BY service, kind, name")
        return [VaultRecord(*row) for row in rows]

    def find(self, record_id: str) -> VaultRecord:
        """Return a record by its id, or the first 8 or more digits of it. No key is needed.

        Raises:
            InputError: the id is malformed.
            NotFoundError: there is none.
            AmbiguousIdError: there are several.
        """
        prefix = record_id.strip().lower()
        if len(prefix) < MIN_PREFIX or not set(prefix) <= set("0123456789abcdef-"):
            raise InputError(f"the id has {len(prefix)} characters; give at least {MIN_PREFIX} hex digits of it")
        where = "WHERE id >= ? AND id < ? LIMIT 2"
        rows = self._database.query(run, f"SELECT {_RECORD} FROM records {where}", (prefix, prefix + "g"))
        if not rows:
            raise NotFoundError(f"the vault has no record {prefix}; `perdure vault list` shows its records")
        if len(rows) > 1:
            raise AmbiguousIdError(f"several records have an id that begins with {prefix}; give more digits")
        return VaultRecord(*rows[0])

    def forget(self, record_id: str) -> VaultRecord:
        """Permanently remove a secret and return its record. No key is needed, so a damaged one can be removed too.

        Raises:
            InputError, NotFoundError, AmbiguousIdError: as `find`.
        """
        record = self.find(record_id)
        self._database.apply(run, "DELETE FROM records WHERE id = ?", (record.id,))
        return record

    def rotate(
        self, *, passphrase: str | None = None, keyring: bool = False, on_record: Callable[[], None] = lambda: None
    ) -> int:
        """Re-encrypt all secrets with a new key, in one transaction; return the new key's generation.

        If killed at any moment, the vault is in its former or its new state, with its key available: the new key is
        stored before the transaction ends, and the old one is dropped only afterwards.

        Args:
            passphrase: derive the key from this passphrase from now on.
            keyring: keep the key in the OS keyring from now on. With neither, its source stays the same.
            on_record: called after each record.

        Raises:
            InputError: both are given, or the passphrase is too short.
            StoreUnavailableError: the key is missing or wrong.
            StoreCorruptError: a record is damaged; none was changed.
        """
        if passphrase is not None and keyring:
            raise InputError("the key comes from either a passphrase or the OS keyring; choose one")
        phrase = self._phrase if passphrase is None else PassphraseKeys(passphrase, None)
        with self._database.write() as connection:
            old = self._current_key(connection)
            row = _current(connection)
            keys = KeyringKeys() if keyring or (row and row.source == "keyring" and passphrase is None) else phrase
            new_row, new = keys.create(old.generation + 1)
            try:
                run(connection, "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(new_row))
                _reseal(connection, old, new, on_record)
            except BaseException:
                keys.discard(new_row)
                raise
        self._phrase = phrase
        self._keys = {new_row: new}
        # The rotation is done. A keyring that is locked just now does not undo it; the next rotation tries again.
        with suppress(StoreUnavailableError):
            self._retire()
        return new.generation

    def state(self) -> VaultState:
        """Return the state of the vault. No key is needed."""
        with self._database.read() as connection:
            row = _current(connection)
            sql = "SELECT count(*), count(*) FILTER (WHERE expires_at <= ?), (SELECT count(*) FROM keys) FROM records"
            records, expired, keys = run(connection, sql, (self._clock.now(),))[0]
        if row is None:
            return VaultState(records, expired, 0, "none", 0)
        return VaultState(records, expired, row.generation, row.source, keys - 1)

    def close(self) -> None:
        """Drop the key and close the file. Closing twice is not an error."""
        self._keys = {}
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _sealed(self, record_id: str) -> tuple[VaultRecord, bytes, bytes, KeyRow]:
        # One statement is one snapshot: no rotation can come between a record and its key.
        rows = self._database.query(
            run,
            f"SELECT records.nonce, ciphertext, {_RECORD}, {_KEY} FROM records JOIN keys USING (generation)"
            " WHERE id = ?",
            (record_id,),
        )
        if not rows:
            raise NotFoundError(f"record {record_id} is no longer in the vault, or its key is missing")
        nonce, sealed, *rest = rows[0]
        width = len(fields(VaultRecord))
        return VaultRecord(*rest[:width]), nonce, sealed, KeyRow(*rest[width:])

    def _key(self, row: KeyRow) -> Key:
        if row not in self._keys:
            self._keys[row] = keys_for(row, self._phrase).unlock(row)
        return self._keys[row]

    def _current_key(self, connection: Connection) -> Key:
        # Called in a write transaction, so two processes cannot both make the first key.
        row = _current(connection)
        if row is not None:
            return self._key(row)
        row, key = keys_for_new(self._phrase).create(1)
        run(connection, "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(row))
        self._keys[row] = key
        return key

    def _retire(self) -> None:
        with self._database.write() as connection:
            rows = [KeyRow(*row) for row in run(connection, f"SELECT {_KEY} FROM keys ORDER BY generation DESC")]
            for row in rows[1:]:
                keys_for(row, self._phrase).discard(row)
                run(connection, "DELETE FROM keys WHERE generation = ?", (row.generation,))


def _opened(key: Key, record: VaultRecord, nonce: bytes, sealed: bytes) -> bytes:
    plain = key.open(nonce, sealed, astuple(record))
    if plain is None:
        raise StoreCorruptError(
            f"record {record.id} of the vault is damaged or altered; "
            "restore vault.db from a backup, or forget the record"
        )
    return plain


def _reseal(connection: Connection, old: Key, new: Key, on_record: Callable[[], None]) -> None:
    for nonce, sealed, *columns in run(connection, f"SELECT nonce, ciphertext, {_RECORD} FROM records"):
        record = VaultRecord(*columns)
        fresh = new.seal(_opened(old, record, nonce, sealed), astuple(record))
        sql = "UPDATE records SET generation = ?, nonce = ?, ciphertext = ? WHERE id = ?"
        run(connection, sql, (new.generation, *fresh, record.id))
        on_record()


def _current(connection: Connection) -> KeyRow | None:
    rows = run(connection, f"SELECT {_KEY} FROM keys ORDER BY generation DESC LIMIT 1")
    return KeyRow(*rows[0]) if rows else None


def _create(database: Database) -> None:
    if database.query(run, "PRAGMA user_version")[0][0]:
        return
    with database.write() as connection:
        # Another process may have made it since.
        if not run(connection, "PRAGMA user_version")[0][0]:
            run(connection, (Path(__file__).parent / "schema.sql").read_text(encoding="utf-8"))
            run(connection, f"PRAGMA user_version = {VERSION}")
            run(connection, f"PRAGMA application_id = {APPLICATION_ID}")
