"""Receipts: what was considered in a turn and why, by ids and scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import apsw

from perdure.store.database import run

Body = Mapping[str, Any]
MIN_PREFIX = 8


def put(connection: apsw.Connection, receipt_id: str, at: float, session: str | None, scope: str, body: Body) -> None:
    """Keep a receipt. Its body holds ids, scores and the redacted query, never the text of a memory."""
    run(
        connection,
        "INSERT OR REPLACE INTO receipts VALUES (?, ?, ?, ?, ?)",
        (receipt_id, at, session, scope, json.dumps(body, ensure_ascii=False)),
    )


def get(connection: apsw.Connection, receipt_id: str, scope: str) -> Body | None:
    """Return a receipt's body, or None if there is none that this scope wrote."""
    rows = run(connection, "SELECT body FROM receipts WHERE id = ? AND scope = ?", (receipt_id, scope))
    return json.loads(rows[0][0]) if rows else None


def latest(connection: apsw.Connection, scope: str) -> str | None:
    """Return the id of the newest receipt that this scope wrote."""
    rows = run(connection, "SELECT id FROM receipts WHERE scope = ? ORDER BY at DESC, rowid DESC LIMIT 1", (scope,))
    return rows[0][0] if rows else None


def by_prefix(connection: apsw.Connection, prefix: str, scope: str) -> str | None:
    """Return the id of the newest receipt of this scope whose id begins so (at least 8 characters), or None."""
    if len(prefix) < MIN_PREFIX:
        return None
    sql = "SELECT id FROM receipts WHERE substr(id, 1, ?) = ? AND scope = ? ORDER BY at DESC LIMIT 1"
    rows = run(connection, sql, (len(prefix), prefix, scope))
    return rows[0][0] if rows else None


def drop_before(connection: apsw.Connection, at: float, limit: int) -> int:
    """Drop up to `limit` receipts that are older than `at`, epoch seconds; return how many there were."""
    sql = "DELETE FROM receipts WHERE rowid IN (SELECT rowid FROM receipts WHERE at < ? LIMIT ?) RETURNING 1"
    return len(run(connection, sql, (at, limit)))
