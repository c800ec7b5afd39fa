"""Other wordings of queries, as a language model gave them: asked once, kept for the next time."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Final

from perdure.secrets.redact import redact
from perdure.store.sql import Connection, get_meta, put_meta, run

MAX_ENTRIES: Final = 500
_PREFIX: Final = "expansion:"


def key_of(store_key: bytes, query: str) -> str:
    """Return the name under which a query's wordings are kept: it tells nothing of the query."""
    return hmac.new(store_key, query.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def put(connection: Connection, key: str, now: float, wordings: Sequence[str]) -> None:
    """Keep wordings, redacted; the oldest of more than `MAX_ENTRIES` are dropped."""
    value = json.dumps({"at": now, "wordings": [redact(wording).text for wording in wordings]}, ensure_ascii=False)
    put_meta(connection, _PREFIX + key, value)
    run(
        connection,
        "DELETE FROM meta WHERE key IN (SELECT key FROM meta WHERE key GLOB ? "
        "ORDER BY json_extract(value, '$.at') DESC, key LIMIT -1 OFFSET ?)",
        (f"{_PREFIX}*", MAX_ENTRIES),
    )


def get(connection: Connection, key: str) -> tuple[str, ...] | None:
    """Return a query's wordings, or None if they are not known."""
    value = get_meta(connection, _PREFIX + key)
    return tuple(json.loads(value)["wordings"]) if value else None


def clear(connection: Connection) -> None:
    """Forget all wordings: those of a question can hold what its answer says."""
    run(connection, "DELETE FROM meta WHERE key GLOB ?", (f"{_PREFIX}*",))
