"""What the statements of this room are run on: a connection of whichever engine holds the truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]


class Connection(Protocol):
    """A connection in a transaction. `apsw.Connection` is one."""

    @property
    def in_transaction(self) -> bool:
        """Whether what was changed can still be taken back."""

    def execute(self, statements: str, bindings: Any = None, /) -> Iterable[Any]:
        """Run SQL with values for its question marks, and return its rows."""

    def executemany(self, statements: str, sequenceofbindings: Any, /) -> Iterable[Any]:
        """Run SQL once for each row of values."""

    def last_insert_rowid(self) -> int:
        """Return the number of the row that was inserted last."""

    def changes(self) -> int:
        """Return how many rows the last statement changed."""


def run(connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[Row]:
    """Run SQL to its end and return all rows.

    A cursor that is not consumed leaves out what follows the first statement.
    """
    return list(connection.execute(sql, values))
