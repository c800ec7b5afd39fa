"""Turns that were: what each asked and got, what it would get today, and what somebody says should have come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perdure.api.explain import INJECTED, Why, why
from perdure.engine.engine import Engine, audience_of
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import TurnContext
from perdure.recall.receipt import Receipt
from perdure.store import receipts, search
from perdure.store.search import View

MAX_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn, as its receipt tells.

    Attributes:
        id: the receipt's.
        at: epoch seconds.
        session: the conversation, as its host names it.
        query: what was asked, redacted; empty if it was purged.
        silence: why nothing was looked for, or None.
        texts: what came up, best first, as far as it may still be seen; passages are not kept.
        came: ids of the memories and passages that came up.
        marks: by id of a memory, whether it should have come, where somebody has said so.
    """

    id: str
    at: float
    session: str | None
    query: str
    silence: str | None
    texts: tuple[str, ...]
    came: tuple[str, ...]
    marks: Mapping[str, bool]


def past(engine: Engine, context: TurnContext, limit: int, before: float | None, marked: bool) -> Sequence[PastTurn]:
    """Return turns of a caller, newest first; see `Turns.past`."""
    if not 1 <= limit <= MAX_LIMIT:
        raise InputError(f"limit is {limit}; it must be from 1 to {MAX_LIMIT}")
    view = _view(engine, context)
    with engine.store.database.read() as connection:
        rows = receipts.listed(connection, str(view.audience.home), limit, before, marked)
        came = {receipt.id: _injected(receipt.body) for receipt in rows}
        facts = search.by_ids(connection, list({each for ids in came.values() for each in ids}), view)
    return [
        PastTurn(
            receipt.id, receipt.at, receipt.session, receipt.body["query"], receipt.body.get("silence"),
            tuple(facts[each].text for each in came[receipt.id] if each in facts), came[receipt.id],
            receipt.body.get(receipts.MARKS, {}),
        )
        for receipt in rows
    ]  # fmt: skip


def one(engine: Engine, context: TurnContext, turn: str) -> PastTurn:
    """Return a turn of a caller.

    Raises:
        NotFoundError: there is no such turn.
    """
    explained = why(engine.store, _view(engine, context), turn)
    came = [each for each in explained.considered if each.verdict == INJECTED]
    with engine.store.database.read() as connection:
        found = receipts.whole(connection, explained.turn, str(audience_of(context).home))
    if found is None:
        raise NotFoundError(f"turn {turn[:40]!r} was removed meanwhile")
    texts, ids = tuple(each.text for each in came if each.text), tuple(each.id for each in came)
    return PastTurn(
        found.id, found.at, found.session, explained.query, explained.silence, texts, ids,
        found.body.get(receipts.MARKS, {}),
    )  # fmt: skip


def replay(engine: Engine, context: TurnContext, turn: str) -> Why:
    """Return what a turn's prompt would bring up today; see `Turns.replay`."""
    seen: list[Receipt] = []
    asked = one(engine, context, turn).query
    # In no conversation: what was shown in it meanwhile would be left out.
    engine.recall(asked, replace(context, session_id=None), receipt_to=seen.append)
    return why(engine.store, _view(engine, context), seen[0])


def mark(engine: Engine, context: TurnContext, turn: str, fact_id: str, wanted: bool | None) -> PastTurn:
    """Say whether a memory should have come up in a turn; see `Turns.mark`."""
    view = replace(_view(engine, context), everything=True)
    found = one(engine, context, turn)
    with engine.store.database.read() as connection:
        fact = search.by_prefix(connection, fact_id, view)
    with engine.store.database.write() as connection:
        receipts.mark(connection, found.id, str(view.audience.home), fact.id, wanted)
    return one(engine, context, found.id)


def _view(engine: Engine, context: TurnContext) -> View:
    return View(audience_of(context), engine.clock.now(), everything=True)


def _injected(body: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(each["id"] for each in body.get("candidates", ()) if each["verdict"] == INJECTED)
