"""Every fact that is kept, with the word why it is in answers or not: what somebody looks through page by page."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from perdure.errors import InputError, NotFoundError
from perdure.store.fact import SELECT, Fact, from_row
from perdure.store.listing import MAX_LIMIT, Filter
from perdure.store.search import View, by_prefix
from perdure.store.sql import Connection, run
from perdure.store.trust import AUTO_RECALLED


class State(StrEnum):
    """Whether a fact may come up by itself, and if not, why."""

    PRESENT = "present"
    PENDING = "pending"
    """It waits for a review."""
    REJECTED = "rejected"
    SEARCH_ONLY = "search-only"
    """It came in by a way that nobody vouches for: an explicit search finds it."""
    FORGOTTEN = "forgotten"
    FORMER = "former"
    """Another took its place, or it was withdrawn."""
    EXPIRED = "expired"


_CHANNELS = ", ".join(f"'{channel.value}'" for channel in sorted(AUTO_RECALLED))
_STATE = (
    "CASE WHEN facts.forgotten_at IS NOT NULL THEN 'forgotten' WHEN facts.superseded_at IS NOT NULL THEN 'former'"
    " WHEN facts.expires_at <= ? THEN 'expired' WHEN facts.review_state <> 'approved' THEN facts.review_state"
    f" WHEN facts.channel NOT IN ({_CHANNELS}) THEN 'search-only' ELSE 'present' END"
)
"""`state_of` in SQL; its value is the time of asking."""
_DATE = "coalesce(facts.source_date, facts.created_at)"


@dataclass(frozen=True, slots=True)
class Listed:
    """A fact, its state, and in a few words that begin with it why it does not come up by itself; None: it does."""

    fact: Fact
    state: State
    hidden: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """A part of what is kept.

    Attributes:
        facts: newest first; of equals the one stored last.
        total: facts that the filters choose, on all pages.
        states: how many of them are in each state.
        behind: id of the last fact of this page, behind which the next one begins; None: there is no next one.
    """

    facts: tuple[Listed, ...]
    total: int
    states: Mapping[State, int]
    behind: str | None


def inventory(
    connection: Connection,
    view: View,
    chosen: Filter = Filter(),  # noqa: B008 - frozen
    states: Collection[State] = (),
    limit: int = 20,
    offset: int = 0,
    behind: str | None = None,
) -> Page:
    """Return a page of facts, newest first.

    With `behind` no fact is skipped or shown twice, whatever is added or changed between two pages.

    Args:
        connection: a reader.
        view: whose facts; with `everything` also what is in no answer.
        chosen: which of them.
        states: only in these; empty: in any.
        limit: so many at the most.
        offset: after so many others.
        behind: the page goes on behind this fact: its id, or the beginning of it.

    Raises:
        InputError: limit or offset are out of range.
        NotFoundError: there is no such fact to go on behind.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InputError(f"limit is {limit}; it must be from 1 to {MAX_LIMIT}")
    if offset < 0:
        raise InputError(f"offset is {offset}; it must be 0 or more")
    condition, values = _condition(view, chosen, states)
    counted = run(connection, f"SELECT {_STATE}, count(*) FROM facts WHERE {condition} GROUP BY 1", (view.now, *values))
    found = {State(state): count for state, count in counted}
    if behind is not None:
        condition += f" AND ({_DATE}, facts.seq) < (SELECT {_DATE}, facts.seq FROM facts WHERE id = ?)"
        values += (_place(connection, behind, view),)
    rows = run(
        connection,
        f"SELECT {SELECT} FROM facts {chosen.hint} WHERE {condition}"
        f" ORDER BY {_DATE} DESC, facts.seq DESC LIMIT ? OFFSET ?",
        (*values, limit + 1, offset),
    )
    facts = [from_row(row) for row in rows[:limit]]
    listed = tuple(Listed(fact, state_of(fact, view.now), why_hidden(fact, view.now)) for fact in facts)
    more = facts[-1].id if len(rows) > limit else None
    return Page(listed, sum(found.values()), {state: found[state] for state in State if state in found}, more)


def states_of(names: Collection[str]) -> frozenset[State]:
    """Return states by their names.

    Raises:
        InputError: there is no such state.
    """
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
            return f"pending: {reason}" if reason else "pending a review"
        case State.REJECTED:
            return "rejected in a review"
        case State.SEARCH_ONLY:
            return f"search-only: came in as {fact.channel.value}"
    return None


def _condition(view: View, chosen: Filter, states: Collection[State]) -> tuple[str, tuple[Any, ...]]:
    condition, values = view.sql()
    wanted, wanted_values = chosen.sql(view.audience)
    condition, values = f"{condition} AND {wanted}", (*values, *wanted_values)
    if states:
        condition += f" AND {_STATE} IN ({', '.join('?' * len(states))})"
        values += (view.now, *(State(state).value for state in states))
    return condition, values


def _place(connection: Connection, behind: str, view: View) -> str:
    try:
        return by_prefix(connection, behind, View(view.audience, view.now, everything=True)).id
    except NotFoundError as error:
        raise NotFoundError(f"{error}; begin anew with the first page") from None


def _day(seconds: float | None) -> str:
    return "" if seconds is None else dt.datetime.fromtimestamp(seconds).astimezone().date().isoformat()
