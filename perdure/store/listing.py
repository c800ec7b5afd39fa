"""Lists and counts of facts: of those that may be in answers, and of every one that is kept, with the reason."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from perdure.errors import InputError, NotFoundError, refused
from perdure.store.fact import SELECT, Fact, folded_slot, from_row, live_sql, read_facts, split_tags, to_column
from perdure.store.scope import BOUND, EVERYONE, OWNER, Audience, Scope
from perdure.store.search import View, by_prefix
from perdure.store.sql import Connection, Dialect, dialect, marks, run
from perdure.store.store import Store
from perdure.store.trust import AUTO_RECALLED
from perdure.text.clean import clean
from perdure.text.timestamps import Dated, Moment, moment

MAX_LIMIT = 10_000
PAGE = 500
Progress = Callable[[int, int], None]
"""Called with how many of how many memories were looked at."""
_DATE = "coalesce(facts.source_date, facts.created_at)"


class State(StrEnum):
    """Whether a memory may be recalled automatically, and if not, why."""

    PRESENT = "present"
    PENDING = "pending"
    """It is pending review."""
    REJECTED = "rejected"
    SEARCH_ONLY = "search-only"
    """It comes from an untrusted channel: only an explicit search finds it."""
    FORGOTTEN = "forgotten"
    FORMER = "former"
    """It was replaced or withdrawn."""
    EXPIRED = "expired"


_CHANNELS = ", ".join(f"'{channel.value}'" for channel in sorted(AUTO_RECALLED))
_STATE = (
    "CASE WHEN facts.forgotten_at IS NOT NULL THEN 'forgotten' WHEN facts.superseded_at IS NOT NULL THEN 'former'"
    " WHEN facts.expires_at <= ? THEN 'expired' WHEN facts.review_state <> 'approved' THEN facts.review_state"
    f" WHEN facts.channel NOT IN ({_CHANNELS}) THEN 'search-only' ELSE 'present' END"
)
"""`state_of` in SQL; its value is the time of asking."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which of the readable memories to choose. None: any."""

    category: str | None = None
    entity: str | None = None  # about this entity, case-insensitive
    scope: Scope | None = None  # of this scope only, resolved for the caller (`Audience.meant`)
    after: Moment | None = None  # said at or after this time
    before: Moment | None = None  # said before it
    pinned: bool | None = None
    review_state: str | None = None  # approved, pending or rejected
    ends: bool | None = None  # whether it has an expiry date
    channel: str | None = None  # from this channel; see `perdure.hooks.types.Channel`
    within: str | None = None  # about this entity, or one whose name continues after a full stop
    marks: tuple[tuple[str, Any], ...] = ()  # names and plain values of metadata, each alone or in a list

    @property
    def hint(self) -> str:
        """The index by which SQLite finds a page of facts, newest first, without reading and sorting all that fit.

        Of what is rare all that fit is less than all that is newer.
        """
        if self.review_state == "pending":
            return "facts_waiting"
        rare = (self.entity, self.pinned, self.review_state, self.ends)
        return "facts_said" if all(each is None for each in rare) else ""

    def holds(self, fact: Fact) -> bool:
        """Return whether a fact has the marks, and not just an object within its metadata."""
        pairs = [(fact.metadata.get(name), value) for name, value in self.marks]
        return all(there == value or (isinstance(there, list) and value in there) for there, value in pairs)

    def sql(self, audience: Audience) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL condition and its values, the scope as the audience means it."""
        scope = None if self.scope is None else audience.meant(self.scope)
        wanted: list[tuple[str, Any]] = [
            ("facts.category = ?", _cleaned(self.category, "category")),
            ("facts.entity_folded = ?", folded_slot(self.entity)),
            ("facts.scope = ?", None if scope is None else scope.kind),
            ("facts.scope_target = ?", None if scope is None else clean(scope.target)),
            (f"{_DATE} >= ?", moment(self.after)),
            (f"{_DATE} < ?", moment(self.before)),
            ("facts.pinned = ?", None if self.pinned is None else int(self.pinned)),
            ("facts.review_state = ?", _cleaned(self.review_state, "review_state")),
            ("(facts.expires_at IS NOT NULL) = ?", None if self.ends is None else int(self.ends)),
            ("facts.channel = ?", self.channel),
            ("instr(facts.entity || '.', ?) = 1", None if self.within is None else f"{self.within}."),
        ]
        used = [(condition, value) for condition, value in wanted if value is not None]
        # As a literal, by which SQLite sees that the index of what waits will do.
        waits = ["facts.review_state = 'pending'"] if self.review_state == "pending" else []
        marked = [_marked(name, value) for name, value in self.marks]
        conditions = waits + [condition for condition, _ in (*used, *marked)]
        values = (*(value for _, value in used), *(each for _, some in marked for each in some))
        return " AND ".join(conditions) or "TRUE", values


@dataclass(frozen=True, slots=True)
class Chosen(View):
    """A view of those facts alone that a filter chooses."""

    chosen: Filter = Filter()

    def sql(self, dialect: Dialect) -> tuple[str, tuple[Any, ...]]:
        """Return the condition on `facts`, and its values."""
        seen, seen_values = View.sql(self, dialect)
        wanted, wanted_values = self.chosen.sql(self.audience)
        return f"{seen} AND {wanted}", (*seen_values, *wanted_values)


@dataclass(frozen=True, slots=True)
class Stats:
    """Number of readable memories: in all, and by scope, category, channel and tag."""

    total: int
    by_scope: Mapping[str, int]
    by_category: Mapping[str, int]
    by_channel: Mapping[str, int]
    by_tag: Mapping[str, int]


@dataclass(frozen=True, slots=True, repr=False)
class Listed(Dated):
    """A memory, its state, and why it does not come up unasked, in words that begin with the state; None: it may."""

    fact: Fact
    state: State
    hidden: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Page(Dated):
    """A page of memories."""

    facts: tuple[Listed, ...]  # newest first; among equals, the one stored last
    total: int  # facts that match the filters, on all pages
    states: Mapping[State, int]  # number of these in each state
    behind: str | None  # cursor: id of the last fact of this page; None: there is no next page


def list_facts(connection: Connection, view: View, chosen: Filter, limit: int = 20, offset: int = 0) -> list[Fact]:
    """Return facts, newest first; of equals the one stored last."""
    check_page(limit, offset)
    condition, values = _condition(connection, view, chosen)
    return _newest_first(connection, chosen, condition, (*values, limit, offset))


def check_page(limit: int, offset: int = 0) -> None:
    """See that the limits of a page are in range."""
    if not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InputError(f"limit is {limit}; it must be from 1 to {MAX_LIMIT}")
    if not isinstance(offset, int) or offset < 0:
        raise InputError(f"offset is {offset}; it must be 0 or more")


def _newest_first(connection: Connection, chosen: Filter, condition: str, values: tuple[Any, ...]) -> list[Fact]:
    facts = f"facts {dialect(connection).by_index(chosen.hint) if chosen.hint else ''}"
    order = f"ORDER BY {_DATE} DESC, facts.seq DESC LIMIT ? OFFSET ?"
    return list(filter(chosen.holds, read_facts(connection, f"{facts} WHERE {condition} {order}", values)))


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


def every(store: Store, view: View, progress: Progress = no_progress, condition: str = "TRUE") -> Iterator[Fact]:
    """Yield all facts of a view, oldest row first, a page at a time: no reader is held in between.

    The further `condition` is SQL without values.
    """
    seen, values = view.sql(store.database.dialect)
    where = f"{seen} AND {condition}"
    [(total,)] = store.database.query(run, f"SELECT count(*) FROM facts WHERE {where}", values)
    done = 0
    sql = f"SELECT facts.seq, {SELECT} FROM facts WHERE {where} AND facts.seq > ? ORDER BY facts.seq LIMIT ?"
    for rows in store.database.pages(sql, values, PAGE):
        yield from (from_row(tuple(row)) for _, *row in rows)
        done += len(rows)
        progress(min(done, total), total)


def matching_ids(connection: Connection, view: View, chosen: Filter) -> list[str]:
    """Return the ids of all facts that a filter chooses."""
    condition, values = _condition(connection, view, chosen)
    rows = run(connection, f"SELECT facts.id FROM facts WHERE {condition} ORDER BY facts.seq", values)
    return [row[0] for row in rows]


def stats(connection: Connection, view: View, chosen: Filter = Filter()) -> Stats:
    """Count what may be seen and a filter chooses."""
    condition, values = _condition(connection, view, chosen)
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


def _marked(name: str, value: Any) -> tuple[str, tuple[str, ...]]:
    """Return a condition that holds where metadata has a value, alone or in a list, and its values.

    It is SQL that SQLite and PostgreSQL share: metadata is written in one form, in whose strings no quote stands bare.
    """
    plain = "replace(replace(facts.metadata, '}', ','), ']', ',')"
    named, told = (to_column("metadata", each).replace("}", ",").replace("]", ",") for each in (name, value))
    condition = f"(instr({plain}, ?) > 0 OR instr(facts.metadata, ?) > 0 AND instr({plain}, ?) > 0)"
    return condition, (f"{named}: {told},", f"{named}: [", f"{told},")


def _cleaned(text: str | None, name: str) -> str | None:
    if text is not None and not isinstance(text, str):
        raise refused(text, "a text", name)
    return None if text is None else clean(text)


def inventory(
    connection: Connection,
    view: View,
    chosen: Filter = Filter(),
    states: Collection[State] = (),
    limit: int = 20,
    offset: int = 0,
    behind: str | None = None,
) -> Page:
    """Return a page of facts, newest first.

    With `behind` no fact is skipped or shown twice, whatever is added or changed between two pages. With `everything`
    in the view, also what is in no answer is listed. `behind` is the id, or the beginning of it, of the fact that the
    page goes on behind.
    """
    check_page(limit, offset)
    condition, values = _condition(connection, view, chosen, states)
    counted = run(connection, f"SELECT {_STATE}, count(*) FROM facts WHERE {condition} GROUP BY 1", (view.now, *values))
    found = {State(state): count for state, count in counted}
    if behind is not None:
        condition += f" AND ({_DATE}, facts.seq) < (SELECT {_DATE}, facts.seq FROM facts WHERE id = ?)"
        values += (_place(connection, behind, view),)
    facts = _newest_first(connection, chosen, condition, (*values, limit + 1, offset))
    more = facts[limit - 1].id if len(facts) > limit else None
    listed = tuple(Listed(fact, state_of(fact, view.now), why_hidden(fact, view.now)) for fact in facts[:limit])
    return Page(listed, sum(found.values()), {state: found[state] for state in State if state in found}, more)


def states_of(names: Collection[str]) -> frozenset[State]:
    """Return states by their names."""
    unknown = sorted(set(names) - set(State))
    if unknown:
        raise InputError(f"state {unknown[0]!r} is unknown; use one of {', '.join(State)}")
    return frozenset(map(State, names))


def state_of(fact: Fact, now: float) -> State:
    """Return whether a fact may come up by itself at a time, and if not, why; of several reasons the first one here."""
    if fact.forgotten_at is not None:
        return State.FORGOTTEN
    if fact.superseded_at is not None:
        return State.FORMER
    if fact.expires_at is not None and fact.expires_at <= now:
        return State.EXPIRED
    if fact.review_state != "approved":
        return State(fact.review_state)
    return State.PRESENT if fact.channel in AUTO_RECALLED else State.SEARCH_ONLY


def why_hidden(fact: Fact, now: float) -> str | None:
    """Return in a few words why a fact does not come up by itself; None: it may."""
    match state_of(fact, now):
        case State.FORGOTTEN:
            return f"forgotten on {_day(fact.forgotten_at)}"
        case State.FORMER if fact.superseded_by is not None:
            return f"former: replaced by {fact.superseded_by[:8]}"
        case State.FORMER:
            return f"former: withdrawn on {_day(fact.superseded_at)}"
        case State.EXPIRED:
            return f"expired on {_day(fact.expires_at)}"
        case State.PENDING:
            reason = fact.metadata.get("review")
            return f"pending: {reason}" if reason else "pending review"
        case State.REJECTED:
            return "rejected in review"
        case State.SEARCH_ONLY:
            return f"search-only: came from {fact.channel.value}"
    return None


def _condition(
    connection: Connection, view: View, chosen: Filter, states: Collection[State] = ()
) -> tuple[str, tuple[Any, ...]]:
    condition, values = view.sql(dialect(connection))
    wanted, wanted_values = chosen.sql(view.audience)
    condition, values = f"{condition} AND {wanted}", (*values, *wanted_values)
    if states:
        condition += f" AND {_STATE} IN ({marks(states)})"
        values += (view.now, *(State(state).value for state in states))
    return condition, values


def _place(connection: Connection, behind: str, view: View) -> str:
    try:
        return by_prefix(connection, behind, View(view.audience, view.now, everything=True)).id
    except NotFoundError as error:
        raise NotFoundError(f"{error}; start again from the first page") from None


def _day(seconds: float | None) -> str:
    return "" if seconds is None else dt.datetime.fromtimestamp(seconds).astimezone().date().isoformat()
