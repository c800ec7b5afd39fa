"""The language model's tokens of each day, counted over all processes and restarts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from perdure.clock import Clock
from perdure.errors import TokenBudgetError
from perdure.store.sql import Backend, Connection, get_meta, put_meta, run

_PREFIX: Final = "llm_tokens:"
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

        Raises:
            TokenBudgetError: so many are not left; none were set aside.
            StoreError: they could not be counted.
        """
        day = self._today()
        with self.database.write() as connection:
            used = _read(connection, day)
            left = self.budget - sum(used.values())
            if tokens > left:
                raise TokenBudgetError(
                    f"{tokens} tokens are needed and {max(0, left)} of today's {self.budget} are left; "
                    "wait until midnight UTC, or raise llm_daily_tokens"
                )
            _write(connection, day, used | {tier: used.get(tier, 0) + tokens})
            kept = "SELECT key FROM meta WHERE key GLOB ? ORDER BY key DESC LIMIT ?"
            sql = f"DELETE FROM meta WHERE key GLOB ? AND key NOT IN ({kept})"
            run(connection, sql, (f"{_PREFIX}*", f"{_PREFIX}*", _DAYS))
        return day

    def settle(self, day: str, tier: str, reserved: int, used: int) -> None:
        """Take what was really used in the place of what was set aside.

        Raises:
            StoreError: it could not be written; what was set aside stays used.
        """
        with self.database.write() as connection:
            so_far = _read(connection, day)
            _write(connection, day, so_far | {tier: max(0, so_far.get(tier, 0) - reserved + used)})

    def used(self, day: str | None = None) -> dict[str, int]:
        """Return the tokens used by tier on a day ("2026-02-24"), today if none is given."""
        with self.database.read() as connection:
            return _read(connection, day or self._today())

    def _today(self) -> str:
        return datetime.fromtimestamp(self.clock.now(), UTC).date().isoformat()


def _read(connection: Connection, day: str) -> dict[str, int]:
    used: dict[str, int] = json.loads(get_meta(connection, _PREFIX + day) or "{}")
    return used


def _write(connection: Connection, day: str, used: dict[str, int]) -> None:
    put_meta(connection, _PREFIX + day, json.dumps(used))
