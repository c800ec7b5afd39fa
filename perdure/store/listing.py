"""Lists and counts of facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perdure.errors import InputError
from perdure.store.fact import SELECT, Fact, folded_slot, from_row, live_sql, split_tags
from perdure.store.scope import BOUND, EVERYONE, OWNER, Audience, Scope
from perdure.store.search import View
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.text.clean import clean

MAX_LIMIT = 10_000
PAGE = 500
Progress = Callable[[int, int], None]
"""Called with how many of how many memories were looked at."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which of the facts that may be seen. None: any.

    Attributes:
        category: of this category.
        entity: about this entity, in any case.
        scope: of this scope only, as the caller means it (`Audience.meant`).
        after, before: said at or after, or before, this time (epoch seconds).
        pinned: pinned or not.
        review_state: approved, pending or rejected.
        ends: whether it fades and ends one day, or has ended.
        channel: came in this way; see `perdure.hooks.types.Channel`.
    """

    category: str | None = None
    entity: str | None = None
    scope: Scope | None = None
    after: float | None = None
    before: float | None = None
    pinned: bool | None = None
    review_state: str | None = None
    ends: bool | None = None
    channel: str | None = None

    @property
    def hint(self) -> str:
        """What tells SQLite how to find a page of facts, newest first, without reading and sorting all that fit.

        Of what is rare all that fit is less than all that is newer.
        """
        if self.review_state == "pending":
            return "INDEXED BY facts_waiting"
        rare = (self.entity, self.pinned, self.review_state, self.ends)
        return "INDEXED BY facts_said" if all(each is None for each in rare) else ""

    def sql(self, audience: Audience) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL condition and its values, the scope as the audience means it."""
        scope = None if self.scope is None else audience.meant(self.scope)
        wanted: list[tuple[str, Any]] = [
            ("facts.category = ?", _cleaned(self.category)),
            ("facts.entity_folded = ?", folded_slot(self.entity)),
            ("facts.scope = ?", None if scope is None else scope.kind),
            ("facts.scope_target = ?", None if scope is None else clean(scope.target)),
            ("coalesce(facts.source_date, facts.created_at) >= ?", self.after),
            ("coalesce(facts.source_date, facts.created_at) < ?", self.before),
            ("facts.pinned = ?", None if self.pinned is None else int(self.pinned)),
            ("facts.review_state = ?", _cleaned(self.review_state)),
            ("(facts.expires_at IS NOT NULL) = ?", None if self.ends is None else int(self.ends)),
            ("facts.channel = ?", self.channel),
        ]
        used = [(condition, value) for condition, value in wanted if value is not None]
        # As a literal, by which SQLite sees that the index of what waits will do.
        waits = ["facts.review_state = 'pending'"] if self.review_state == "pending" else []
        return " AND ".join(waits + [condition for condition, _ in used]) or "TRUE", tuple(value for _, value in used)


@dataclass(frozen=True, slots=True)
class Chosen(View):
    """A view of those facts alone that a filter chooses."""

    chosen: Filter = Filter()

    def sql(self) -> tuple[str, tuple[Any, ...]]:
        """Return the condition on `facts`, and its values."""
        seen, seen_values = View.sql(self)
        wanted, wanted_values = self.chosen.sql(self.audience)
        return f"{seen} AND {wanted}", (*seen_values, *wanted_values)


@dataclass(frozen=True, slots=True)
class Stats:
    """How many facts may be seen: in all, and by scope, category, channel and tag."""

    total: int
    by_scope: Mapping[str, int]
    by_category: Mapping[str, int]
    by_channel: Mapping[str, int]
    by_tag: Mapping[str, int]


def list_facts(connection: Connection, view: View, chosen: Filter, limit: int = 20, offset: int = 0) -> list[Fact]:
    """Return facts, newest first; of equals the one stored last.

    Raises:
        InputError: limit or offset are out of range.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InputError(f"limit is {limit}; it must be from 1 to {MAX_LIMIT}")
    if offset < 0:
        raise InputError(f"offset is {offset}; it must be 0 or more")
    condition, values = _condition(view, chosen)
    rows = run(
        connection,
        f"SELECT {SELECT} FROM facts {chosen.hint} WHERE {condition}"
        " ORDER BY coalesce(facts.source_date, facts.created_at) DESC, facts.seq DESC LIMIT ? OFFSET ?",
        (*values, limit, offset),
    )
    return [from_row(row) for row in rows]


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


def every(store: Store, view: View, progress: Progress = no_progress, condition: str = "TRUE") -> Iterator[Fact]:
    """Yield all facts of a view, oldest row first, a page at a time: no reader is held in between.

    Args:
        store: where they are.
        view: which.
        progress: see `Progress`.
        condition: a further condition in SQL, without values.
    """
    seen, values = view.sql()
    where = f"{seen} AND {condition}"
    with store.database.read() as connection:
        [(total,)] = run(connection, f"SELECT count(*) FROM facts WHERE {where}", values)
    after = done = 0
    sql = f"SELECT facts.seq, {SELECT} FROM facts WHERE {where} AND facts.seq > ? ORDER BY facts.seq LIMIT ?"
    while True:
        with store.database.read() as connection:
            rows = run(connection, sql, (*values, after, PAGE))
        yield from (from_row(tuple(row)) for _, *row in rows)
        done += len(rows)
        progress(min(done, total), total)
        if len(rows) < PAGE:
            return
        after = rows[-1][0]


def matching_ids(connection: Connection, view: View, chosen: Filter) -> list[str]:
    """Return the ids of all facts that a filter chooses."""
    condition, values = _condition(view, chosen)
    return [
        row[0] for row in run(connection, f"SELECT facts.id FROM facts WHERE {condition} ORDER BY facts.seq", values)
    ]


def stats(connection: Connection, view: View, chosen: Filter = Filter()) -> Stats:
    """Count what may be seen and a filter chooses."""
    condition, values = _condition(view, chosen)
    columns = "facts.scope, facts.scope_target, facts.category, facts.channel, facts.tags"
    sql = f"SELECT {columns}, count(*) FROM facts WHERE {condition} GROUP BY {columns}"
    scopes, categories, channels, tags = (Counter[str]() for _ in range(4))
    for kind, target, category, channel, told, count in run(connection, sql, values):
        scopes[str(Scope(kind, target))] += count
        categories[category] += count
        channels[channel] += count
        tags.update(dict.fromkeys(split_tags(told), count))
    return Stats(scopes.total(), *(dict(sorted(each.items())) for each in (scopes, categories, channels, tags)))


def scope_counts(connection: Connection, now: float) -> dict[str, int]:
    """Count the live facts of every scope of the store: for its owner, since it heeds no audience."""
    live, values = live_sql(now)
    sql = f"SELECT facts.scope, facts.scope_target, count(*) FROM facts WHERE {live} GROUP BY 1, 2"
    return dict(sorted((str(Scope(kind, target)), count) for kind, target, count in run(connection, sql, values)))


def unnamed_counts(connection: Connection, now: float) -> dict[str, int]:
    """Count, by scope, the live facts of agents and sessions that no named user sees; empty while nobody is named."""
    counts = scope_counts(connection, now)
    asked = [row[0] for row in run(connection, "SELECT DISTINCT scope FROM receipts")]
    known = {name: Scope(*name.partition(":")[::2]) for name in (*counts, *asked)}
    if all(scope.user in (None, OWNER, EVERYONE) for scope in known.values()):
        return {}
    return {name: count for name, count in counts.items() if known[name].kind in BOUND and known[name].user is None}


def _cleaned(text: str | None) -> str | None:
    return None if text is None else clean(text)


def _condition(view: View, chosen: Filter) -> tuple[str, tuple[Any, ...]]:
    seen, seen_values = view.sql()
    wanted, wanted_values = chosen.sql(view.audience)
    return f"{seen} AND {wanted}", (*seen_values, *wanted_values)
