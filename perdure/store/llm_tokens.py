"""The language model's tokens of each day, counted over all processes and restarts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

from perdure.clock import Clock
from perdure.errors import TokenBudgetError
from perdure.store.sql import Backend, Connection, run

_PREFIX: Final = "llm_tokens:"
_DAYS: Final = 31
"""Are kept."""


class TokenMeter:
    """Sets tokens aside before they are used: what a killed process had set aside stays used."""

    def __init__(self, database: Backend, clock: Clock, budget: int) -> None:
        """Count in `database`, up to `budget` tokens in a day (UTC)."""
        self._database = database
        self._clock = clock
        self.budget = budget

    def reserve(self, tier: str, tokens: int) -> str:
        """Set tokens aside; return the day that they are taken from.

        Raises:
            TokenBudgetError: so many are not left; none were set aside.
            StoreError: they could not be counted.
        """
        day = self._today()
        with self._database.write() as connection:
            used = _read(connection, day)
            left = self.budget - sum(used.values())
            if tokens > left:
                raise TokenBudgetError(
                    f"{tokens} tokens are needed and {max(0, left)} of today's {self.budget} are left; "
                    "wait until midnight UTC, or raise llm_daily_tokens"
                )
            _write(connection, day, used | {tier: used.get(tier, 0) + tokens})
            run(
                connection,
                "DELETE FROM meta WHERE key GLOB ? AND key NOT IN "
                "(SELECT key FROM meta WHERE key GLOB ? ORDER BY key DESC LIMIT ?)",
                (f"{_PREFIX}*", f"{_PREFIX}*", _DAYS),
            )
        return day

    def settle(self, day: str, tier: str, reserved: int, used: int) -> None:
        """Take what was really used in the place of what was set aside.

        Raises:
            StoreError: it could not be written; what was set aside stays used.
        """
        with self._database.write() as connection:
            so_far = _read(connection, day)
            _write(connection, day, so_far | {tier: max(0, so_far.get(tier, 0) - reserved + used)})

    def used(self, day: str | None = None) -> dict[str, int]:
        """Return the tokens used by tier on a day ("2026-02-24"), today if none is given."""
        with self._database.read() as connection:
            return _read(connection, day or self._today())

    def _today(self) -> str:
        return datetime.fromtimestamp(self._clock.now(), UTC).date().isoformat()


def _read(connection: Connection, day: str) -> dict[str, int]:
    rows = run(connection, "SELECT value FROM meta WHERE key = ?", (_PREFIX + day,))
    return json.loads(rows[0][0]) if rows else {}


def _write(connection: Connection, day: str, used: dict[str, int]) -> None:
    run(connection, "INSERT OR REPLACE INTO meta VALUES (?, ?)", (_PREFIX + day, json.dumps(used)))
