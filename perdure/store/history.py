"""The versions of a fact, and what was done to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perdure.store import journal
from perdure.store.fact import Fact
from perdure.store.journal import Change
from perdure.store.search import View, by_ids, by_prefix
from perdure.store.sql import Connection


@dataclass(frozen=True, slots=True)
class History:
    """How a fact became what it is.

    Attributes:
        versions: the fact in all its versions, oldest first, also if it is superseded, expired or forgotten.
        changes: the journal's entries of all of them, oldest first.
    """

    versions: Sequence[Fact]
    changes: Sequence[Change]


def history(connection: Connection, fact_id: str, view: View) -> History:
    """Return the history of a fact: both ways along its chain of versions.

    Args:
        connection: a reader.
        fact_id: of any of the versions, or the beginning of it.
        view: whose facts; what the audience may not read ends the chain.

    Raises:
        InputError, NotFoundError, AmbiguousIdError: see `perdure.errors`.
    """
    whole = replace(view, everything=True)
    fact = by_prefix(connection, fact_id, whole)
    versions = {fact.id: fact}
    waiting = [fact]
    while waiting:
        fact = waiting.pop()
        near = {fact.supersedes_id, fact.superseded_by} - versions.keys() - {None}
        found = by_ids(connection, sorted(filter(None, near)), whole) if near else {}
        versions |= found
        waiting += found.values()
    ordered = sorted(versions.values(), key=lambda each: (each.created_at, each.superseded_at is None, each.change_seq))
    return History(ordered, journal.changes(connection, view.audience, 0, -1, of=versions))
