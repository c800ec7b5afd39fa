"""How much may be captured without a person looking at it: what is over a limit waits for review, nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.hooks.types import Channel
from perdure.store.scope import Scope
from perdure.store.sql import Connection, run

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Quota:
    """How many facts that the user said are kept in one scope before the rest waits for review.

    Attributes:
        turn: in one turn, for each message that it brings.
        session: in one conversation, within a day.
        day: within 24 hours, by the time at which they were said.
    """

    turn: int = 30
    session: int = 500
    day: int = 2_000


class Guard:
    """Counts what one turn adds to what was added before."""

    def __init__(
        self, connection: Connection, quota: Quota, scope: Scope, session: str | None, times: Sequence[float]
    ) -> None:
        """Count what the user has said before.

        Args:
            connection: a reader or writer.
            quota: the limits.
            scope: where the facts go.
            session: the conversation.
            times: when each message of the turn was said, epoch seconds.
        """
        self._quota = quota
        # A host may hand over many messages at once, as at the first turn after perdure was installed.
        self._most = quota.turn * max(1, len(times))
        self._turn = self._session = self._day = 0
        if times:
            # The pluses keep SQLite on the index of the date, which chooses the fewest rows.
            [(self._day, self._session)] = run(
                connection,
                "SELECT count(*), count(*) FILTER (WHERE provenance_session IS ?) FROM facts"
                " WHERE source_date > ? AND source_date <= ? AND +channel = ? AND +scope = ? AND +scope_target = ?"
                " AND extraction_method LIKE 'rule:%' AND review_state = 'approved'",
                (session, max(times) - DAY, max(times), Channel.USER.value, scope.kind, scope.target),
            )

    def reason(self) -> str | None:
        """Return which limit the next fact would be over, in words; None: it may be kept."""
        quota = self._quota
        for count, limit, what in (
            (self._turn, self._most, "in one turn"),
            (self._session, quota.session, "in one conversation"),
            (self._day, quota.day, "in a day"),
        ):
            if count >= limit:
                return f"over the limit of {limit} facts {what}"
        return None

    def count(self) -> None:
        """Take note that a fact was kept."""
        self._turn += 1
        self._session += 1
        self._day += 1


def held(reason: str) -> Mapping[str, Any]:
    """Return the attributes of a fact that waits for review."""
    return {"review_state": "pending", "metadata": {"review": reason}}
