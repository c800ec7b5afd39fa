"""What was purged and must not come back: keyed hashes, from which nobody can guess a text."""

from __future__ import annotations

import hashlib
import hmac

from perdure.errors import StoreCorruptError
from perdure.store.sql import Connection, run
from perdure.text.normalise import fingerprint


def store_key(connection: Connection) -> bytes:
    """Return the secret of a store, from which all its hashes are made.

    Raises:
        StoreCorruptError: it is not there, or is damaged.
    """
    # Where the database is not this machine's, the key is never in it.
    apart: bytes | None = getattr(connection, "key", None)
    if apart is not None:
        return apart
    try:
        [(value,)] = run(connection, "SELECT value FROM meta WHERE key = 'store_key'")
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        raise StoreCorruptError("facts.db has lost its store key; it was left untouched. Restore a backup") from None


def is_purged(connection: Connection, key: bytes, text: str) -> bool:
    """Return whether a text was purged and so must not be stored again.

    Args:
        connection: a reader or writer.
        key: `Store.key`.
        text: in any spelling that has the same `fingerprint`.
    """
    return bool(run(connection, "SELECT 1 FROM tombstones WHERE key = ?", (_tombstone(key, text),)))


def bury(connection: Connection, key: bytes, text: str) -> None:
    """Keep a text from ever being stored again."""
    run(connection, "INSERT OR IGNORE INTO tombstones VALUES (?)", (_tombstone(key, text),))


def _tombstone(key: bytes, text: str) -> str:
    return hmac.new(key, fingerprint(text).encode(), hashlib.sha256).hexdigest()
