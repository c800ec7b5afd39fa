"""What is kept of a language model: its tokens of each day, its wordings of queries, and turns that it is to read."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from perdure.clock import Clock
from perdure.errors import TokenBudgetError
from perdure.secrets.redact import redact
from perdure.store.sql import Backend, Connection, get_meta, marks, put_meta, run

_TOKENS: Final = "llm_tokens:"
_DAYS: Final = 31
"""Are kept."""


@dataclass(frozen=True, slots=True)
class TokenMeter:
    """Sets tokens aside before they are used, up to `budget` in a day (UTC).

    What a killed process had set aside stays used.
    """

    database: Backend
    clock: Clock
    budget: int

    def reserve(self, tier: str, tokens: int) -> str:
        """Set tokens aside; return the day that they are taken from.

        If so many are not left, none are set aside.
        """
        day = self._today()
        with self.database.write() as connection:
            used = _read(connection, day)
            left = self.budget - sum(used.values())
            if tokens > self.budget > 0:
                told = f"{tokens} tokens are needed, but a day has {self.budget}; raise llm.daily_tokens"
                raise TokenBudgetError(told, never=True)
            if tokens > left:
                raise TokenBudgetError(
                    f"{tokens} tokens are needed, but only {max(0, left)} of today's {self.budget} are left; "
                    "wait until midnight UTC, or raise llm.daily_tokens"
                )
            _write(connection, day, used | {tier: used.get(tier, 0) + tokens})
            kept = "SELECT key FROM meta WHERE instr(key, ?) = 1 ORDER BY key DESC LIMIT ?"
            sql = f"DELETE FROM meta WHERE instr(key, ?) = 1 AND key NOT IN ({kept})"
            run(connection, sql, (_TOKENS, _TOKENS, _DAYS))
        return day

    def settle(self, day: str, tier: str, reserved: int, used: int) -> None:
        """Take what was really used in the place of what was set aside.

        If that cannot be written, what was set aside stays used.
        """
        with self.database.write() as connection:
            so_far = _read(connection, day)
            _write(connection, day, so_far | {tier: max(0, so_far.get(tier, 0) - reserved + used)})

    def used(self, day: str | None = None) -> dict[str, int]:
        """Return the tokens used by tier on a day ("2026-02-24"), today if none is given."""
        return self.database.query(_read, day or self._today())

    def _today(self) -> str:
        return datetime.fromtimestamp(self.clock.now(), UTC).date().isoformat()


def _read(connection: Connection, day: str) -> dict[str, int]:
    used: dict[str, int] = json.loads(get_meta(connection, _TOKENS + day) or "{}")
    return used


def _write(connection: Connection, day: str, used: dict[str, int]) -> None:
    put_meta(connection, _TOKENS + day, json.dumps(used))


MAX_ENTRIES: Final = 500
_WORDINGS: Final = "expansion:"


def wordings_key(store_key: bytes, query: str) -> str:
    """Return the name under which a query's wordings are kept: it tells nothing of the query."""
    return hmac.new(store_key, query.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def put_wordings(connection: Connection, key: str, now: float, wordings: Sequence[str]) -> None:
    """Keep wordings, redacted; the oldest of more than `MAX_ENTRIES` are dropped."""
    value = json.dumps({"at": now, "wordings": [redact(wording).text for wording in wordings]}, ensure_ascii=False)
    put_meta(connection, _WORDINGS + key, value)
    newest = "SELECT key FROM meta WHERE instr(key, ?) = 1 ORDER BY json_extract(value, '$.at') DESC, key LIMIT ?"
    sql = f"DELETE FROM meta WHERE instr(key, ?) = 1 AND key NOT IN ({newest})"
    run(connection, sql, (_WORDINGS, _WORDINGS, MAX_ENTRIES))


def wordings_of(connection: Connection, key: str) -> tuple[str, ...] | None:
    """Return a query's wordings, or None if they are not known."""
    value = get_meta(connection, _WORDINGS + key)
    return tuple(json.loads(value)["wordings"]) if value else None


def clear_said(connection: Connection) -> None:
    """Forget all wordings, as those of a question can hold what its answer says, and all turns that wait."""
    for kind in (_WORDINGS, _TURNS):
        run(connection, "DELETE FROM meta WHERE instr(key, ?) = 1", (kind,))


MAX_TURNS: Final = 500
_TURNS: Final = "librarian_turn:"


def keep_turn(connection: Connection, at: float, turn: str) -> None:
    """Let a turn, as JSON without secrets, wait to be read; the oldest of more than `MAX_TURNS` are dropped."""
    put_meta(connection, f"{_TURNS}{at:017.6f}:{uuid.uuid4().hex}", turn)
    kept = "SELECT key FROM meta WHERE instr(key, ?) = 1 ORDER BY key DESC LIMIT ?"
    sql = f"DELETE FROM meta WHERE instr(key, ?) = 1 AND key NOT IN ({kept})"
    run(connection, sql, (_TURNS, _TURNS, MAX_TURNS))


def put_turns(connection: Connection, turns: Mapping[str, str]) -> None:
    """Give turns that wait, by their names, another form."""
    for name, turn in turns.items():
        put_meta(connection, name, turn)


def waiting_turns(connection: Connection) -> list[tuple[str, str]]:
    """Return the turns that wait, oldest first, each with its name."""
    return [(str(key), str(value)) for key, value in run(
        connection, "SELECT key, value FROM meta WHERE instr(key, ?) = 1 ORDER BY key", (_TURNS,)
    )]  # fmt: skip


def drop_turns(connection: Connection, names: Sequence[str]) -> bool:
    """Take turns out if all of them still wait, else none; return whether they did."""
    [(waiting,)] = run(connection, f"SELECT count(*) FROM meta WHERE key IN ({marks(names)})", names)
    if waiting == len(names):
        connection.executemany("DELETE FROM meta WHERE key = ?", [(name,) for name in names])
    return bool(waiting == len(names))
