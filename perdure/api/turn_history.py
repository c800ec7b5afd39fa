"""Past turns: prompts, recalls, replays, and marks of what should have come up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perdure.api.explain import INJECTED, Why, why
from perdure.engine.audiences import audience_of
from perdure.engine.engine import Engine
from perdure.errors import InputError, NotFoundError, expect
from perdure.hooks.types import TurnContext
from perdure.recall.receipt import Receipt
from perdure.store import receipts, search
from perdure.store.receipts import Kept
from perdure.store.scope import Audience, Scope
from perdure.store.search import View
from perdure.store.sql import Connection

MAX_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A past turn, as recorded in its receipt.

    Attributes:
        id: the receipt's.
        at: epoch seconds.
        session: the conversation, as its host names it.
        query: what was asked, redacted; empty if it was purged.
        silence: why nothing was searched, or None.
        texts: what was recalled, best first, if still visible; for a passage that has changed since, its location.
        came: their ids.
        marks: feedback by memory id, for memories still visible: whether each should have been recalled.
    """

    id: str
    at: float
    session: str | None
    query: str
    silence: str | None
    texts: tuple[str, ...]
    came: tuple[str, ...]
    marks: Mapping[str, bool]


def past(
    engine: Engine, context: TurnContext, limit: int, before: float | None, marked: bool, fact_id: str | None
) -> Sequence[PastTurn]:
    """Return turns of a caller, newest first; see `Turns.past`."""
    if not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InputError(f"limit is {limit!r}; it must be from 1 to {MAX_LIMIT}")
    expect(before, int | float | None, "epoch seconds", "before")
    expect(fact_id, str | None, "the full id of a memory", "fact_id")
    view = _view(engine, context)
    with engine.store.database.read() as connection:
        rows = receipts.listed(connection, view.audience, limit, before, marked, fact_id)
        return [turn for turn in _told(engine, connection, rows, view) if fact_id is None or fact_id in turn.came]


def one(engine: Engine, context: TurnContext, turn: str) -> PastTurn:
    """Return a turn of a caller.

    Raises:
        NotFoundError: there is no such turn.
    """
    view = _view(engine, context)
    with engine.store.database.read() as connection:
        return _told(engine, connection, [_kept(connection, turn, view.audience)], view)[0]


def replay(engine: Engine, context: TurnContext, turn: str) -> Why:
    """Return what a turn's prompt would recall today; see `Turns.replay`."""
    seen: list[Receipt] = []
    view = _view(engine, context)
    kept = engine.store.database.query(_asked, turn, view.audience)
    # As who had asked, where they did, and in no conversation: what was shown in it meanwhile would be left out.
    home, places = Scope.parse(kept.scope), kept.body.get("scopes", context.scopes)
    there = tuple(each for each in places if view.audience.may_read(Scope.parse(each)))
    asker = TurnContext(agent_id=home.agent, user_id=home.user, scopes=there, host=context.host)
    engine.recall(kept.body["query"], asker, receipt_to=seen.append)
    return why(engine.store, view, seen[0])


def mark(engine: Engine, context: TurnContext, turn: str, fact_id: str, wanted: bool | None) -> PastTurn:
    """Say whether a memory should have come up in a turn; see `Turns.mark`."""
    view = replace(_view(engine, context), everything=True)
    found = engine.store.database.query(_asked, turn, view.audience)
    fact = engine.store.database.query(search.by_prefix, fact_id, view)
    engine.store.database.apply(receipts.mark, found.id, view.audience, fact.id, wanted)
    if wanted:
        engine.lessons.learn([fact.id], found.body["query"], context)
    else:
        engine.lessons.unlearn(fact.id, found.body["query"], context)
    return one(engine, context, found.id)


def _view(engine: Engine, context: TurnContext) -> View:
    return View(audience_of(context), engine.clock.now(), everything=True)


def _kept(connection: Connection, turn: str, audience: Audience) -> Kept:
    named = receipts.by_prefix(connection, turn, audience)
    found = receipts.whole(connection, named, audience) if named else None
    if found is None:
        raise NotFoundError(f"this caller has no turn {turn[:40]!r}")
    return found


def _asked(connection: Connection, turn: str, audience: Audience) -> Kept:
    found = _kept(connection, turn, audience)
    if receipts.OPENING in found.body:
        raise InputError(f"{turn[:40]!r} is the start of a session, which has no prompt; name a turn")
    if receipts.REMINDER in found.body:
        raise InputError(f"{turn[:40]!r} is a reminder before a tool ran, which has no prompt; name a turn")
    return found


def _told(engine: Engine, connection: Connection, rows: Sequence[Kept], view: View) -> Sequence[PastTurn]:
    """Return turns from receipts, without memories that are gone or not visible."""
    named = {each["id"] for row in rows for each in _injected(row)} | {fact for row in rows for fact in _marks(row)}
    facts = search.by_ids(connection, list(named), view)
    # A passage has no place in the journal.
    places = {each["id"]: each["id"] for row in rows for each in _injected(row) if "change_seq" not in each}
    seen = {**places, **engine.files.standing(places, view.audience)}
    seen |= {name: fact.text for name, fact in facts.items()}
    return [
        PastTurn(
            row.id, row.at, row.session, row.body["query"], row.body.get("silence"),
            tuple(seen[each["id"]] for each in _injected(row) if each["id"] in seen),
            tuple(each["id"] for each in _injected(row) if each["id"] in seen),
            {fact_id: wanted for fact_id, wanted in _marks(row).items() if fact_id in facts},
        )
        for row in rows
    ]  # fmt: skip


def _injected(row: Kept) -> Sequence[Mapping[str, Any]]:
    return [each for each in row.body.get("candidates", ()) if each["verdict"] == INJECTED]


def _marks(row: Kept) -> Mapping[str, bool]:
    marks: Mapping[str, bool] = row.body.get(receipts.MARKS, {})
    return marks
