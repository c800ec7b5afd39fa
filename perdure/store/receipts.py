"""Receipts: what was considered in a turn and why, by ids and scores."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.store.scope import Audience
from perdure.store.sql import Connection, Row, run
from perdure.store.sql import put as put_row
from perdure.text.clean import clean

Body = Mapping[str, Any]
MIN_PREFIX = 8
_KEPT = "id, at, session, scope, body, details"
DETAILS = ("candidates", "echo")
"""What of a body is written compressed, as it is nine tenths of it: ids, scores and keyed hashes, no words."""

COMPACTED = "compacted"
"""In a body: what it tells of has left the conversation."""
OPENING = "opening"
"""In a body: the project in which a conversation began, if it tells of its opening."""
LOOK = "look"
"""In a body: that somebody only looked at what a prompt would bring up. It is of no conversation, and no turn."""
REMINDER = "reminder"
"""In a body: it tells of a reminder before a tool ran; the query names the files or commands, each on a line."""
MARKS = "marks"
"""In a body: by fact id, whether somebody says that it should have come. Such receipts are kept for good."""


_NO_LOOK = f"json_extract(body, '$.{LOOK}') IS NULL"


@dataclass(frozen=True, slots=True)
class Kept:
    """A receipt as it is kept: its id, epoch seconds, the conversation, the scope of who asked, what it tells."""

    id: str
    at: float
    session: str | None
    scope: str
    body: Body


def put(connection: Connection, receipt_id: str, at: float, session: str | None, scope: str, body: Body) -> None:
    """Keep a receipt. Its body holds ids, scores and the redacted query, never the text of a memory."""
    plain = {name: value for name, value in body.items() if name not in DETAILS}
    details = {name: body[name] for name in DETAILS if name in body}
    packed = zlib.compress(json.dumps(details).encode()) if details else None
    text = json.dumps(plain, ensure_ascii=False)
    put_row(connection, "receipts", id=receipt_id, at=at, session=session, scope=scope, body=text, details=packed)


def listed(
    connection: Connection,
    audience: Audience,
    limit: int,
    before: float | None = None,
    marked: bool = False,
    naming: str | None = None,
) -> Sequence[Kept]:
    """Return up to `limit` receipts of what the audience has asked in turns, newest first.

    `naming` leaves, of the newest so many, those of which this fact was a candidate.
    """
    condition = f" AND json_extract(body, '$.{MARKS}') IS NOT NULL" if marked else ""
    chosen = f"at < ? AND {_NO_LOOK}{condition} ORDER BY at DESC, rowid DESC LIMIT ?"
    rows = _asked(connection, audience, _KEPT, chosen, math.inf if before is None else before, limit)
    wanted = (naming or "").encode()
    # To read what it tells takes longer than to see that it tells nothing of the fact.
    return [_kept(row) for row in rows if wanted in _details(row[-1])]


def pace(connection: Connection, audience: Audience, since: float) -> tuple[int, int, float]:
    """Return how many turns the audience has had since then, in how many conversations, and when the first one was."""
    unset = " AND ".join(f"json_extract(body, '$.{name}') IS NULL" for name in (OPENING, LOOK, REMINDER))
    columns = "COUNT(*), COUNT(DISTINCT session), MIN(at)"
    [(turns, conversations, first)] = _asked(connection, audience, columns, f"at >= ? AND {unset}", since)
    return turns, conversations, since if first is None else first


def whole(connection: Connection, receipt_id: str, audience: Audience) -> Kept | None:
    """Return a receipt of what the audience has asked, or None."""
    rows = _asked(connection, audience, _KEPT, "id = ?", receipt_id)
    return _kept(rows[0]) if rows else None


def mark(connection: Connection, receipt_id: str, audience: Audience, fact_id: str, wanted: bool | None) -> None:
    """Note in a receipt of the audience's whether a fact should have come; None takes that back."""
    for (text,) in _asked(connection, audience, "body", "id = ?", receipt_id):
        body = json.loads(text)
        marks = {name: value for name, value in body.pop(MARKS, {}).items() if name != fact_id}
        marks |= {} if wanted is None else {fact_id: wanted}
        body |= {MARKS: marks} if marks else {}
        run(connection, "UPDATE receipts SET body = ? WHERE id = ?", (json.dumps(body, ensure_ascii=False), receipt_id))


def of_session(connection: Connection, session: str | None, scope: str, since: float, limit: int) -> Sequence[Kept]:
    """Return up to `limit` receipts of a conversation since then, epoch seconds, newest first."""
    chosen = "session IS NOT DISTINCT FROM ? AND scope = ? AND at > ? ORDER BY at DESC LIMIT ?"
    sql = f"SELECT {_KEPT} FROM receipts WHERE {chosen}"
    return [_kept(row) for row in run(connection, sql, (session, scope, since, limit))]


def openings(connection: Connection, session: str | None, scope: str, since: float) -> frozenset[str]:
    """Return the projects in which a conversation was opened since then, as far as its model still sees that."""
    chosen = f"json_extract(body, '$.{OPENING}') IS NOT NULL AND json_extract(body, '$.{COMPACTED}') IS NULL"
    sql = (
        f"SELECT DISTINCT json_extract(body, '$.{OPENING}') FROM receipts"
        f" WHERE session IS NOT DISTINCT FROM ? AND scope = ? AND at > ? AND {chosen}"
    )
    return frozenset(project for (project,) in run(connection, sql, (session, scope, since)))


def was_asked(connection: Connection, session: str | None, scope: str, since: float) -> bool:
    """Return whether anything was looked up for a conversation since then that its model may still see."""
    unset = " AND ".join(
        f"json_extract(body, '$.{name}') IS NULL" for name in ("silence", OPENING, COMPACTED, REMINDER)
    )
    sql = f"SELECT 1 FROM receipts WHERE session IS NOT DISTINCT FROM ? AND scope = ? AND at > ? AND {unset} LIMIT 1"
    return bool(run(connection, sql, (session, scope, since)))


def reminded(connection: Connection, session: str | None, scope: str, since: float) -> frozenset[str]:
    """Return the files and commands of which a conversation was reminded since then."""
    sql = (
        "SELECT json_extract(body, '$.query') FROM receipts WHERE session IS NOT DISTINCT FROM ? AND scope = ?"
        f" AND at > ? AND json_extract(body, '$.{REMINDER}') IS NOT NULL"
    )
    return frozenset(told for (query,) in run(connection, sql, (session, scope, since)) for told in query.split("\n"))


def was_compacted(connection: Connection, session: str | None, scope: str, since: float) -> bool:
    """Return whether a conversation was compacted since then, as far as its receipts tell."""
    sql = (
        "SELECT 1 FROM receipts WHERE session IS NOT DISTINCT FROM ? AND scope = ? AND at > ?"
        f" AND json_extract(body, '$.{COMPACTED}') IS NOT NULL LIMIT 1"
    )
    return bool(run(connection, sql, (session, scope, since)))


def compacted(connection: Connection, session: str, scope: str) -> None:
    """Note in all receipts of a conversation that the model no longer sees what they tell of."""
    sql = f"UPDATE receipts SET body = json_set(body, '$.{COMPACTED}', 1) WHERE session = ? AND scope = ?"
    run(connection, sql, (session, scope))


def naming(connection: Connection, fact_ids: Sequence[str]) -> frozenset[str]:
    """Return the ids of all receipts that one of these facts was a candidate of."""
    wanted = [fact_id.encode() for fact_id in fact_ids]
    rows = run(connection, "SELECT id, body, details FROM receipts")
    texts = ((receipt_id, body.encode() + _details(packed)) for receipt_id, body, packed in rows)
    return frozenset(receipt_id for receipt_id, text in texts if any(fact_id in text for fact_id in wanted))


def latest(connection: Connection, audience: Audience, *, looks: bool = False) -> str | None:
    """Return the id of the newest receipt of what the audience has asked; `looks`: also outside of turns."""
    chosen = "TRUE" if looks else _NO_LOOK
    rows = _asked(connection, audience, "id", f"{chosen} ORDER BY at DESC, rowid DESC LIMIT 1")
    return rows[0][0] if rows else None


def by_prefix(connection: Connection, prefix: str, audience: Audience) -> str | None:
    """Return the id of the newest receipt of the audience's whose id begins so (at least 8 characters), or None."""
    prefix = clean(prefix)
    if len(prefix) < MIN_PREFIX:
        return None
    rows = _asked(connection, audience, "id", "substr(id, 1, ?) = ? ORDER BY at DESC LIMIT 1", len(prefix), prefix)
    return rows[0][0] if rows else None


def drop_before(connection: Connection, at: float, limit: int) -> int:
    """Drop up to `limit` receipts that are older than `at`, epoch seconds, and unmarked; return how many there were."""
    sql = (
        f"DELETE FROM receipts WHERE rowid IN (SELECT rowid FROM receipts WHERE at < ?"
        f" AND json_extract(body, '$.{MARKS}') IS NULL LIMIT ?) RETURNING 1"
    )
    return len(run(connection, sql, (at, limit)))


def _asked(connection: Connection, audience: Audience, columns: str, chosen: str, *values: object) -> list[Row]:
    """Return columns of the receipts of what an audience has asked that a condition, with what follows it, chooses."""
    asked, own = audience.asker()
    return run(connection, f"SELECT {columns} FROM receipts WHERE {asked} AND {chosen}", (*own, *values))


def _kept(row: Row) -> Kept:
    name, at, session, scope, body, packed = row
    return Kept(name, at, session, scope, {**json.loads(body), **json.loads(_details(packed))})


def _details(packed: bytes | None) -> bytes:
    return zlib.decompress(packed) if packed else b"{}"
