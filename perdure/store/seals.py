"""What is made with the secret of a store: seals of its rows, and hashes of what must not come back.

A seal is a keyed hash of a row of the truth, written with it, so that a changed bit is found: SQLite checks the
structure of its pages, not the content of a text. It is made in the transaction that changes the row, for every fact
that the journal names; the journal's own rows are sealed as a chain. A tombstone is a keyed hash of a text that was
purged, from which nobody can guess it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.errors import StoreCorruptError
from perdure.store.fact import COLUMNS
from perdure.store.sql import Connection, dialect, put, run
from perdure.text.normalise import fingerprint

SIZE = 16
UNSEALED = frozenset({"recall_count", "access_count", "injected_count", "last_accessed", "embedding_model"})
"""Written without a journal row, so not under the seal."""
_SEALED = ("seq", *(name for name in COLUMNS if name not in UNSEALED), "entity_folded", "key_folded")
_FACT = ", ".join((*_SEALED, *sorted(UNSEALED)))
"""The others are read as well: a fact with one that cannot be read is in no answer."""
_JOURNAL = "seq, at, action, fact_id, other_id, channel, host, session, batch, detail"
_PARTS = (
    ("v", "SELECT embedding_id, vector FROM vectors WHERE fact_id = ?"),
    ("l", "SELECT id, target_fact_id, link_type, strength, created_at FROM memory_links WHERE source_fact_id = ?"),
    ("t", "SELECT id, text, origin, created_at, removed_at FROM triggers WHERE fact_id = ?"),
    ("w", "SELECT trigger_id || '/' || embedding_id, vector FROM trigger_vectors"
          " WHERE trigger_id IN (SELECT id FROM triggers WHERE fact_id = ?)"),
)  # fmt: skip
_NOUNS = {"f": "fact", "v": "vector", "l": "link", "t": "trigger", "w": "vector"}


@dataclass(frozen=True, slots=True)
class Damage:
    """A row that is not as it was written."""

    kind: str  # "fact", "vector", "link", "trigger" or "journal"
    id: str  # of the fact it belongs to; of a journal row its number
    how: str  # "changed", "missing", or "foreign" if perdure did not write it
    part: str = ""  # the vector's space, behind its trigger's id if it has one; the link's or trigger's id


def seal(connection: Connection) -> None:
    """Seal what the transaction has changed: all journal rows without a seal, and the facts they name.

    To be called at the end of every transaction that writes a journal row.
    """
    rows = run(connection, f"SELECT {_JOURNAL} FROM journal WHERE seal IS NULL ORDER BY seq")
    if not rows:
        return
    before = run(connection, "SELECT seal FROM journal WHERE seq < ? ORDER BY seq DESC LIMIT 1", (rows[0][0],))
    last = before[0][0] if before else b""
    key = store_key(connection)
    for row in rows:
        last = _digest(key, (last, *row))
        run(connection, "UPDATE journal SET seal = ? WHERE seq = ?", (last, row[0]))
    for fact_id in dict.fromkeys(row[3] for row in rows):
        seal_fact(connection, fact_id)


def seal_fact(connection: Connection, fact_id: str) -> None:
    """Make the seals of a fact, its vectors, triggers and the links from it anew; drop them if it is gone."""
    run(connection, "DELETE FROM seals WHERE id = ? OR (id > ? AND id < ?)", (fact_id, f"{fact_id}/", f"{fact_id}0"))
    found = _sealed(connection, store_key(connection), fact_id)
    connection.executemany("INSERT INTO seals VALUES (?, ?)", list(found.items()))


def drop_parts(connection: Connection, fact_id: str) -> None:
    """Drop the seals of a fact's vectors, triggers and links. Its own stays: by it is known that the fact was lost."""
    run(connection, "DELETE FROM seals WHERE id > ? AND id < ?", (f"{fact_id}/", f"{fact_id}0"))


def seal_vector(connection: Connection, fact_id: str, space_id: str) -> None:
    """Seal one vector of a fact, and nothing else of it."""
    sql = "SELECT embedding_id, vector FROM vectors WHERE fact_id = ? AND embedding_id = ?"
    for row in run(connection, sql, (fact_id, space_id)):
        digest = _digest(store_key(connection), row)
        put(connection, "seals", id=f"{fact_id}/v/{space_id}", seal=digest)


def seal_trigger_vector(connection: Connection, trigger_id: str, space_id: str) -> None:
    """Seal one vector of a trigger, and nothing else of its fact."""
    sql = (
        "SELECT t.fact_id, v.trigger_id || '/' || v.embedding_id, v.vector FROM trigger_vectors v"
        " JOIN triggers t ON t.id = v.trigger_id WHERE v.trigger_id = ? AND v.embedding_id = ?"
    )
    for fact_id, *row in run(connection, sql, (trigger_id, space_id)):
        put(connection, "seals", id=f"{fact_id}/w/{row[0]}", seal=_digest(store_key(connection), row))


def is_intact(connection: Connection, key: bytes, seal_id: str) -> bool:
    """Return whether a fact, a link ("fact id/l/link id") or a trigger ("fact id/t/trigger id") fits its seal."""
    fact_id, mark, part = (*seal_id.split("/"), "", "")[:3]
    if mark:
        rows = [row for row in run(connection, dict(_PARTS)[mark], (fact_id,)) if row[0] == part]
    else:
        rows = [row[: len(_SEALED)] for row in run(connection, f"SELECT {_FACT} FROM facts WHERE id = ?", (fact_id,))]
    stored = run(connection, "SELECT seal FROM seals WHERE id = ?", (seal_id,))
    return [(_digest(key, row),) for row in rows] == stored != []


def damages(connection: Connection) -> Iterator[Damage]:
    """Yield every fact, vector, link, trigger and journal row that differs from its seal, is gone, or has none."""
    key = store_key(connection)
    # Damage may have made anything of an id.
    seals = {str(seal_id): stored for seal_id, stored in run(connection, "SELECT id, seal FROM seals")}
    raw = run(connection, dialect(connection).raw_ids)
    there = [(fact_id or b"").decode("utf-8", "replace") for (fact_id,) in raw]
    foreign = set(there) - seals.keys()
    [active] = run(connection, "SELECT max(id) FILTER (WHERE state = 'active') FROM embeddings")
    for fact_id in dict.fromkeys([*there, *sorted({seal_id.partition("/")[0] for seal_id in seals})]):
        for seal_id, digest in _sealed(connection, key, fact_id).items():
            stored = seals.pop(seal_id, None)
            damage = _damage(seal_id, "foreign" if stored is None else "changed")
            # The vectors of a space that does not answer are sealed when it does.
            passed = stored is None and damage.kind == "vector" and not damage.part.endswith(active[0] or "/")
            if stored != digest and not passed and (seal_id == fact_id or fact_id not in foreign):
                yield damage
    for seal_id in sorted(seals):
        damage = _damage(seal_id, "missing")
        lost = damage.id != seal_id and damage.id in seals  # with the whole fact
        dropped = damage.kind == "vector" and not damage.part.endswith(active[0] or "/")
        if not lost and not dropped:
            yield damage
    yield from _journal(connection, key)


def _journal(connection: Connection, key: bytes) -> Iterator[Damage]:
    last: bytes | None = b""
    highest = 0
    for (seq,) in run(connection, "SELECT seq FROM journal ORDER BY seq"):
        row = _row(connection, f"SELECT {_JOURNAL} FROM journal WHERE seq = ?", (seq,))
        [stored] = _row(connection, "SELECT seal FROM journal WHERE seq = ?", (seq,)) or (None,)
        if stored != _digest(key, (last, *row)):
            yield Damage("journal", str(seq), "changed")
        last, highest = stored, seq
    written = run(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'journal'")
    if written and written[0][0] > highest:
        yield Damage("journal", str(highest + 1), "missing")


def _sealed(connection: Connection, key: bytes, fact_id: str) -> dict[str, bytes]:
    row = _row(connection, f"SELECT {_FACT} FROM facts WHERE id = ?", (fact_id,))
    found = {fact_id: _digest(key, row[: len(_SEALED)])} if row else {}
    for mark, sql in _PARTS:
        try:
            parts = run(connection, sql, (fact_id,))
        except UnicodeDecodeError:
            parts = [("unreadable",)]
        found |= {f"{fact_id}/{mark}/{part[0]}": _digest(key, part) for part in parts}
    return found


def _row(connection: Connection, sql: str, values: Sequence[Any]) -> tuple[Any, ...]:
    # A flipped bit may leave bytes that are no text: that is a change, not a reason to stop looking.
    try:
        return next(iter(run(connection, sql, values)), ())
    except UnicodeDecodeError:
        return ("unreadable",)


def _damage(seal_id: str, how: str) -> Damage:
    fact_id, _, rest = seal_id.partition("/")
    mark, _, part = (rest or "f").partition("/")
    return Damage(_NOUNS.get(mark, "fact"), fact_id, how, part)


def _digest(key: bytes, values: Sequence[Any]) -> bytes:
    return hashlib.blake2b(repr(tuple(values)).encode("utf-8", "surrogatepass"), key=key, digest_size=SIZE).digest()


def store_key(connection: Connection) -> bytes:
    """Return the secret of a store, from which all its hashes are made."""
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

    Any spelling counts that has the same `fingerprint`.
    """
    return bool(run(connection, "SELECT 1 FROM tombstones WHERE key = ?", (_tombstone(key, text),)))


def bury(connection: Connection, key: bytes, text: str) -> None:
    """Keep a text from ever being stored again."""
    run(connection, "INSERT INTO tombstones VALUES (?) ON CONFLICT DO NOTHING", (_tombstone(key, text),))


def _tombstone(key: bytes, text: str) -> str:
    return hmac.new(key, fingerprint(text).encode(), hashlib.sha256).hexdigest()
